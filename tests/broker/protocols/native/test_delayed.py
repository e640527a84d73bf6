"""Delayed messages by bytes (docs/native-protocol.md, 3.3)."""

from math import inf, nan
from typing import Any

import pytest

from tests.broker.protocols.native.test_synced import Durable
from tests.broker.protocols.native.world import World, frame, publish


def later(topic: str, payload: bytes, request: int | None = None, mark: Any = None, **options: Any) -> bytes:
    return frame(3, request, topic, payload, None, None, None, mark, options)


FIRST = 1_000_001  # ids without a store begin with the time in ms


def receipt(request: int, id: int) -> list[Any]:
    """Of a delayed message."""
    return [5, request, 0, None, None, True, id]


@pytest.fixture(params=["fast", "plain"])
def world(request: pytest.FixtureRequest) -> World:
    return World(plain=request.param == "plain")


def test_a_delayed_publish_gets_its_receipt_at_once_and_arrives_when_it_is_due(world: World) -> None:
    subscriber, publisher = world.connect(), world.connect()
    assert "delay" in publisher.info["features"]
    subscriber.say(6, None, 1, "a")
    publisher.send(
        publish("a", b"0", request=1), later("a", b"2", 2, delay=2), later("a", b"1", 3, delay=1.5),
        later("a", b"3", delay=2), later("a", b"now", 4, delay=0), publish("a", b"4", request=5),
    )  # fmt: skip
    assert publisher.frames() == [[5, 1, 1], receipt(2, FIRST), receipt(3, FIRST + 1), [5, 4, 1], [5, 5, 1]]
    assert [fields[3] for fields in subscriber.frames()] == [b"0", b"now", b"4"]
    world.pass_time(1.5)
    assert subscriber.frames() == [[4, 1, "a", b"1", None, None, None]]
    world.pass_time(1)
    assert [fields[3] for fields in subscriber.frames()] == [b"2", b"3"]


def test_headers_and_reply_arrive_and_options_do_not(world: World) -> None:
    subscriber, publisher = world.connect(), world.connect()
    subscriber.say(6, None, 1, "a")
    publisher.say(3, None, "a", b"x", {"k": [1, "z"]}, 0, "r.s", None, {"delay": 1, "other": [1]}, "later")
    world.pass_time(1)
    assert subscriber.frames() == [[4, 1, "a", b"x", {"k": [1, "z"]}, 0, "r.s"]]


def test_a_time_is_of_the_brokers_clock_and_one_that_is_over_is_now() -> None:
    world = World()
    world.broker.delayed._wall = lambda: 1.7e9 + world.now
    subscriber, publisher = world.connect(), world.connect()
    subscriber.say(6, None, 1, "a")
    wall = 1.7e9 + world.now
    publisher.send(later("a", b"in 10 s", 1, deliver_at=wall + 10), later("a", b"now", 2, deliver_at=int(wall - 5)))
    assert publisher.frames() == [receipt(1, int(wall * 1_000) + 1), [5, 2, 1]]
    assert [fields[3] for fields in subscriber.frames()] == [b"now"]
    world.pass_time(10)
    assert [fields[3] for fields in subscriber.frames()] == [b"in 10 s"]


WRONG: dict[str, dict[str, Any]] = {
    "negative": {"delay": -1},
    "not a number": {"delay": nan},
    "endless": {"deliver_at": inf},
    "a str": {"delay": "5"},
    "a bool": {"delay": True},
    "both": {"delay": 1, "deliver_at": 2e9},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_delay_that_is_none_is_a_protocol_error(world: World, what: str) -> None:
    publisher = world.connect()
    publisher.send(later("a", b"x", 7, **WRONG[what]))
    error, goodbye = publisher.frames()
    assert error[:3] == [13, 7, "protocol_error"]
    assert "PUBLISH option" in error[3]
    assert goodbye[:2] == [14, "protocol_error"]
    assert len(world.broker.delayed) == 0


def test_options_with_keys_that_are_no_text_are_a_protocol_error(world: World) -> None:
    publisher = world.connect()
    publisher.say(3, 7, "a", b"x", None, None, None, None, {1: 2})
    error, _ = publisher.frames()
    assert error[:3] == [13, 7, "protocol_error"]


def test_a_delay_above_the_limit_is_refused_and_the_connection_stays() -> None:
    world = World(delay_seconds_max=60, delayed_messages_max=1, share_percent=100)
    publisher = world.connect()
    publisher.send(later("a", b"x", 1, delay=61), later("a", b"x", 2, delay=60), later("a", b"x", 3, delay=60))
    publisher.send(later("a", b"x", 4, delay=1e300), later("$SYS.a", b"x", 5, delay=1),
                   later("$stream.q.0.a", b"x", 6, delay=1))  # fmt: skip
    answers = publisher.frames()
    assert [fields[:3] for fields in answers] == [
        [13, 1, "limit_exceeded"], [5, 2, 0], [13, 3, "limit_exceeded"], [13, 4, "limit_exceeded"],
        [13, 5, "not_permitted"], [13, 6, "not_permitted"],
    ]  # fmt: skip
    assert answers[0][4] == {"limit": "delay_seconds_max", "value": 60.0}
    assert world.broker.delayed.refused == 3


def test_a_repeated_mark_is_not_delayed_again(world: World) -> None:
    subscriber, publisher = world.connect(), world.connect()
    subscriber.say(6, None, 1, "a")
    publisher.send(*(later("a", b"x", number, ["p", 0, 1], delay=5) for number in (1, 2)))
    assert publisher.frames() == [receipt(1, FIRST), [5, 2, 0, None, True]]
    world.pass_time(5)
    assert len(subscriber.frames()) == 1


def test_the_publisher_does_not_get_it_back_if_it_does_not_want_it(world: World) -> None:
    publisher, other = world.connect(), world.connect()
    publisher.say(6, None, 1, "a", {"no_echo": True})
    other.say(6, None, 1, "a")
    publisher.send(later("a", b"x", delay=1))
    world.pass_time(1)
    assert (publisher.frames(), len(other.frames())) == ([], 1)
    publisher.send(later("a", b"x", delay=1))
    publisher.vanish()
    world.pass_time(1)
    assert len(other.frames()) == 1


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_the_receipt_of_a_delayed_message_waits_until_it_is_synced(plain: bool) -> None:
    world = Durable(plain=plain)
    publisher = world.connect()
    publisher.send(later("a", b"x", 1, delay=5), publish("a", b"x", request=2))
    assert publisher.frames() == [[5, 2, 0]]
    world.sync()
    assert publisher.frames() == [receipt(1, FIRST)]


def test_a_store_that_refuses_or_is_full_holds_for_delayed_messages_too() -> None:
    world = Durable()
    publisher = world.connect()
    world.journal.position.refusing = True
    publisher.send(later("other", b"x", 1, delay=5), later("other", b"x", delay=5))
    assert publisher.next()[:3] == [13, 1, "limit_exceeded"]
    assert len(world.broker.delayed) == 1, "nobody waits for the second"
    world.journal.position.refusing, world.journal.position.full = False, True
    publisher.send(later("other", b"y", 2, delay=5))
    assert publisher.protocol.blocked
    world.journal.position.full = False
    world.sync()
    assert not publisher.protocol.blocked
    world.sync()
    assert publisher.next()[:2] == [5, 2]


def test_one_that_is_due_waits_while_the_store_has_no_room_for_it() -> None:
    world = Durable()
    consumer, publisher = world.consumer(), world.connect()
    publisher.send(later("orders.eu", b"x", delay=5))
    world.journal.position.full = True
    world.pass_time(5)
    assert consumer.frames() == []
    world.journal.position.full = False
    world.pass_time(2)
    assert [fields[0] for fields in consumer.frames()] == [32]
