"""The hottest topics, as the views show them."""

from broker.core.views import Views
from tests.broker.protocols.native.world import World, frame


def hot_topics(world: World) -> list[tuple[str, int]]:
    views = Views(world.broker, lambda: world.now, dict, lambda: True)
    return [(view["topic"], view["messages"]) for view in views.hot_topics(limit=10)]


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
