"""The hottest topics, as the views show them."""

import pytest

from fanlight_broker.core.inspection import BrokerInspection
from tests.broker.protocols.native.world import World, frame


def fastest(inspection: BrokerInspection) -> list[tuple[str, float]]:
    return [(view["topic"], view["per_second"]) for view in inspection.hot_topics(limit=2, by_rate=True)]


def hot_topics(world: World) -> list[tuple[str, int]]:
    inspection = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)
    return [(view["topic"], view["messages"]) for view in inspection.hot_topics(limit=10)]


def test_the_hottest_topic_comes_first() -> None:
    world = World()
    publisher = world.connect()
    publisher.send(frame(3, None, "cold", b"") + 3 * frame(3, None, "hot", b""))
    assert hot_topics(world) == [("hot", 3), ("cold", 1)]


def test_a_topic_stays_hot_when_a_subscriber_comes_and_goes() -> None:
    world = World()
    publisher, subscriber = world.connect(), world.connect()
    publisher.send(3 * frame(3, None, "hot", b""))
    subscriber.send(frame(6, None, 1, "#"))
    publisher.send(frame(3, None, "hot", b""))
    subscriber.send(frame(8, None, 1))
    assert hot_topics(world) == [("hot", 4)]  # also while nobody has worked out a new route
    publisher.send(frame(3, None, "hot", b""))
    assert world.broker.router.invalidated == 2
    assert hot_topics(world) == [("hot", 5)]


def test_by_rate_the_topic_with_most_messages_since_the_last_reading_comes_first() -> None:
    world = World()
    publisher = world.connect()
    inspection = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)
    publisher.send(1_000 * frame(3, None, "old", b"") + frame(3, None, "slow", b""))
    assert fastest(inspection) == [("old", None), ("slow", None)]  # there is nothing to measure the first one against
    world.now += 2
    publisher.send(10 * frame(3, None, "new", b"") + 4 * frame(3, None, "slow", b""))
    assert fastest(inspection) == [("new", 5.0), ("slow", 2.0)]
    world.now += 2
    assert fastest(inspection) == [("old", 0.0), ("new", 0.0)]


def test_two_who_look_at_the_same_time_see_the_same_rates() -> None:
    world = World()
    publisher = world.connect()
    inspection = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)
    fastest(inspection)
    world.now += 2
    publisher.send(10 * frame(3, None, "new", b""))
    assert fastest(inspection) == [("new", 5.0)]
    world.now += 0.01
    assert fastest(inspection) == [("new", pytest.approx(10 / 2.01))]  # not over the hundredth of a second


def test_the_rate_of_a_topic_whose_route_was_forgotten_goes_on() -> None:
    world = World()
    publisher, subscriber = world.connect(), world.connect()
    inspection = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)
    publisher.send(3 * frame(3, None, "hot", b""))
    fastest(inspection)
    world.now += 1
    subscriber.send(frame(6, None, 1, "#"))
    publisher.send(frame(3, None, "hot", b""))
    assert fastest(inspection) == [("hot", 1.0)]
