"""Queues with priorities: what is taken first, what comes back where, and what a full one drops (section 3.9)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.operating import peek
from tests.broker.protocols.native.test_queues import ACK, NACK, TERM, consume, deliveries, payloads
from tests.broker.protocols.native.world import Peer, World, publish

ANYTHING = st.none() | st.booleans() | st.floats() | st.text(max_size=4) | st.binary(max_size=4) | st.integers(-20, 20)


@pytest.fixture(params=[False, True], ids=["fast", "plain"])
def world(request: pytest.FixtureRequest) -> World:
    return World(plain=request.param)


def declare(world: World, **queue: Any) -> None:
    consume(world, queue={"priorities": 10, **queue}).vanish()


def fill(world: World, *messages: tuple[bytes, Any]) -> Peer:
    publisher = world.connect()
    publisher.send(*(
        publish("orders.eu", payload, {"k": "v", "priority": priority}) if priority is not None
        else publish("orders.eu", payload) for payload, priority in messages
    ))
    return publisher


def test_higher_priorities_come_first_and_each_in_order(world: World) -> None:
    declare(world)
    fill(world, (b"a", 1), (b"b", 9), (b"c", None), (b"d", 1), (b"e", 5), (b"f", 9), (b"g", 0))
    assert payloads(consume(world)) == [b"b", b"f", b"e", b"a", b"d", b"c", b"g"]


def test_a_queue_without_priorities_keeps_the_order_of_arrival(world: World) -> None:
    consume(world).vanish()
    fill(world, (b"a", 1), (b"b", 9), (b"c", None))
    assert payloads(consume(world)) == [b"a", b"b", b"c"]


def test_priorities_above_those_of_the_queue_count_as_its_highest(world: World) -> None:
    declare(world, priorities=3)
    fill(world, (b"a", 1), (b"b", 2), (b"c", 9), (b"d", 300), (b"e", 2))
    assert payloads(consume(world)) == [b"b", b"c", b"d", b"e", b"a"]


@pytest.mark.parametrize("value", ["7", b"7"])
def test_a_priority_may_be_text_as_it_is_from_other_protocols(world: World, value: object) -> None:
    declare(world)
    fill(world, (b"a", 6), (b"b", value), (b"c", 8))
    assert payloads(consume(world)) == [b"c", b"b", b"a"]


def priority_of(value: object) -> int:
    """By the specification."""
    if isinstance(value, int) and not isinstance(value, bool):
        return min(max(value, 0), 9)
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return int(text) if isinstance(text, str) and len(text) == 1 and text in "0123456789" else 0


@given(ANYTHING | st.lists(ANYTHING, max_size=3))
def test_whatever_the_header_is_the_message_has_a_priority(value: Any) -> None:
    world = World()
    declare(world)
    sent = [(b"a", 4), (b"b", value), (b"c", None), (b"d", 4)]
    fill(world, *sent)
    expected = sorted(sent, key=lambda message: -priority_of(message[1]))
    assert payloads(consume(world)) == [payload for payload, _ in expected]


def test_a_message_that_comes_back_is_the_next_of_its_priority(world: World) -> None:
    declare(world)
    publisher = fill(world, (b"a", 1), (b"b", 5), (b"c", 5))
    worker = consume(world, prefetch=1)
    assert deliveries(worker) == [(1, 1, b"b")]
    publisher.send(publish("orders.eu", b"urgent", {"priority": 9}))
    worker.say(NACK, 7, 1)
    assert deliveries(worker) == [(2, 1, b"urgent")]
    worker.say(ACK, 7, 2)
    assert deliveries(worker) == [(3, 2, b"b")]
    worker.vanish()
    assert deliveries(consume(world)) == [(4, 3, b"b"), (5, 1, b"c"), (6, 1, b"a")]


def test_a_message_that_was_delayed_is_taken_by_its_priority(world: World) -> None:
    declare(world)
    publisher = fill(world, (b"a", 5))
    worker = consume(world, prefetch=1)
    worker.say(NACK, 7, 1, 10)
    assert deliveries(worker) == [(1, 1, b"a")]
    publisher.send(publish("orders.eu", b"b", {"priority": 3}))
    assert deliveries(worker) == [(2, 1, b"b")]
    publisher.send(publish("orders.eu", b"c", {"priority": 4}), publish("orders.eu", b"d", {"priority": 6}))
    world.pass_time(10.5)
    for sequence in (2, 3, 4):
        worker.say(ACK, 7, sequence)
    assert payloads(worker) == [b"d", b"a", b"c"]


@pytest.mark.parametrize("overflow", ["drop_oldest", "dead_letter"])
def test_a_full_queue_drops_the_oldest_of_the_lowest_priority(world: World, overflow: str) -> None:
    declare(world, messages_max=3, overflow=overflow, dead_letter="dead.orders")
    undertaker = world.connect()
    undertaker.say(6, None, 1, "dead.#")
    fill(world, (b"a", 5), (b"b", 1), (b"c", 1), (b"d", 5), (b"e", 9), (b"f", 9), (b"low", 0))
    assert [fields[3] for fields in undertaker.frames()] == [b"b", b"c", b"a", b"low"]
    inside = world.broker.queues.find("billing").inside
    assert (inside.published, inside.discards, len(inside)) == (7, 4, 3)
    assert payloads(consume(world)) == [b"e", b"f", b"d"]


def test_messages_of_every_priority_expire(world: World) -> None:
    declare(world, message_ttl=5)
    publisher = fill(world, (b"a", 0))
    world.pass_time(3)
    publisher.send(publish("orders.eu", b"b", {"priority": 9}), publish("orders.eu", b"c", {"priority": 1}))
    queue = world.broker.queues.find("billing").inside
    assert queue.waiting_since == 1_000
    world.pass_time(3)
    assert (len(queue), queue.discards, queue.waiting_since) == (2, 1, 1_003)
    assert payloads(consume(world)) == [b"b", b"c"]


def test_what_a_queue_with_priorities_takes_is_given_back(world: World) -> None:
    declare(world)
    ledger = world.broker.ledger
    fill(world, (b"a", 1), (b"b", 9), (b"c", 4))
    queue = world.broker.queues.find("billing")
    assert [message.payload for message, _, _ in peek(queue.inside.queue, 2)] == [b"b", b"c"]
    assert ledger.stored_messages == 3
    worker = consume(world, prefetch=1)
    worker.say(TERM, 7, 1)
    assert queue.inside.purge() == 1
    assert ledger.stored_messages == 1
    worker.say(ACK, 7, 2)
    assert (ledger.stored_messages, len(queue.inside)) == (0, 0)


def test_priorities_are_read_from_stored_messages_after_a_restart(world: World) -> None:
    creator = world.connect()
    client = creator.protocol.client
    assert client is not None
    queue = world.broker.queues.begin(
        client.subscriber, "billing", ((b"orders.#", "amqp"),), QueueOptions(priorities=10), world.now
    )
    for number, headers in ((17, b""), (18, b"\x81\xa8priority\x03")):
        fields = b"\xa9orders.eu\xc4\x01%d" % (number % 10) + headers
        stored = Message(FORMAT, b"orders.eu", 0, b"%d" % (number % 10), fields=fields, format_data=4 + bool(headers))
        queue.inside.queue.restore(stored, None, number)
    assert payloads(consume(world)) == [b"8", b"7"]


@pytest.mark.parametrize("priorities", [0, 11, -1, "3"])
def test_there_are_one_to_ten_priorities(world: World, priorities: object) -> None:
    peer = world.connect()
    peer.say(6, 1, 1, "a", {"consumer": "q", "ack": True, "queue": {"priorities": priorities}})
    assert [fields[0] for fields in peer.frames()] == [13, 14]


def test_an_existing_queue_keeps_its_priorities(world: World) -> None:
    declare(world, priorities=3)
    peer = world.connect()
    peer.say(6, 1, 1, "orders.#", {"consumer": "billing", "ack": True, "durable": True, "queue": {"priorities": 4}})
    assert peer.next()[2::2] == ["consumer_in_use", {"consumer": "billing", "option": "priorities"}]
