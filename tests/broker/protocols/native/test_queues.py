"""Named queues over the native protocol, in bytes: DELIVERY, ACK, NACK, TERM, IN_PROGRESS (section 3.9)."""

import sys
from types import FrameType
from typing import Any

import pytest

from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.lane import NEED_MORE
from fanlight_broker.wire.message import Message
from tests.broker.protocols.native.world import Fields, Peer, World, frame, publish

DELIVERY, ACK, NACK, TERM, IN_PROGRESS = 32, 33, 34, 35, 36


def consume(
    world: World, filter: str = "orders.#", name: str = "billing", number: int = 7, **options: Any
) -> Peer:
    """A client with a consumer of a queue."""
    peer = world.connect()
    subscribe(peer, filter, name, number, **options)
    return peer


def subscribe(peer: Peer, filter: str, name: str, number: int = 7, **options: Any) -> dict[str, Any]:
    given = {"consumer": name, "durable": True, "ack": True, **options}
    peer.say(6, 1, number, filter, {key: value for key, value in given.items() if value is not None})
    answer, *deliveries = peer.frames()
    peer.received = b"".join(frame(*fields) for fields in deliveries) + peer.received
    assert answer[:2] == [7, 1], answer
    result: dict[str, Any] = answer[2]
    return result


def deliveries(peer: Peer) -> list[tuple[int, int, bytes]]:
    """(sequence, attempt, payload) of each DELIVERY that came."""
    return [(each[2], each[3], each[5]) for each in peer.frames() if each[0] == DELIVERY]


def payloads(peer: Peer) -> list[bytes]:
    return [payload for _, _, payload in deliveries(peer)]


@pytest.fixture(params=[False, True], ids=["fast", "plain"])
def world(request: pytest.FixtureRequest) -> World:
    return World(plain=request.param)


def test_a_delivery_has_the_bytes_of_the_specification(world: World) -> None:
    worker, publisher = consume(world), world.connect()
    publisher.send(publish("orders.eu", b"1", {"k": 1}))
    fields = b"\xa9orders.eu" + b"\xc4\x011" + b"\x81\xa1k\x01"
    head = b"\x97\x20" + b"\xce\0\0\0\x07" + b"\xcf\0\0\0\0\0\0\0\x01" + b"\xce\0\0\0\x01"
    body = head + fields
    assert worker.received == len(body).to_bytes(4, "big") + body


def test_what_one_consumer_gives_back_is_not_for_another_of_a_connection_that_ends(world: World) -> None:
    worker = consume(world)
    world.connect().send(publish("orders.eu", b"1"))
    assert payloads(worker) == [b"1"]
    subscribe(worker, "orders.#", "billing", 8)
    worker.vanish()
    assert [(attempt, payload) for _, attempt, payload in deliveries(consume(world))] == [(2, b"1")]


def test_an_acknowledged_message_does_not_come_again(world: World) -> None:
    worker, publisher = consume(world), world.connect()
    publisher.send(publish("orders.eu", b"1"), publish("orders.us", b"2"))
    assert deliveries(worker) == [(1, 1, b"1"), (2, 1, b"2")]
    worker.say(ACK, 7, 1)
    worker.vanish()
    assert deliveries(consume(world)) == [(3, 2, b"2")]


def test_the_queue_stays_while_nobody_is_connected(world: World) -> None:
    consume(world).vanish()
    world.connect().send(publish("orders.eu", b"1"), publish("other", b"2"))
    assert payloads(consume(world)) == [b"1"]


def test_consumers_of_one_queue_share_its_messages(world: World) -> None:
    workers = [consume(world) for _ in range(3)]
    world.connect().send(*(publish("orders.eu", b"%d" % n) for n in range(9)))
    got = [payloads(worker) for worker in workers]
    assert [len(each) for each in got] == [3, 3, 3]
    assert sorted(payload for each in got for payload in each) == [b"%d" % n for n in range(9)]


def test_what_a_lost_connection_has_not_acknowledged_goes_to_another_in_order(world: World) -> None:
    first = consume(world)
    publisher = world.connect()
    publisher.send(*(publish("orders.eu", b"%d" % n) for n in range(3)))
    assert payloads(first) == [b"0", b"1", b"2"]
    second = consume(world)
    first.vanish()
    assert deliveries(second) == [(4, 2, b"0"), (5, 2, b"1"), (6, 2, b"2")]


def test_no_more_than_prefetch_are_unacknowledged(world: World) -> None:
    worker, publisher = consume(world, prefetch=2), world.connect()
    publisher.send(*(publish("orders.eu", b"%d" % n) for n in range(5)))
    assert deliveries(worker) == [(1, 1, b"0"), (2, 1, b"1")]
    worker.say(ACK, 7, 2)
    assert deliveries(worker) == [(3, 1, b"2")]
    worker.say(ACK, 7, 3, {"all": True})
    assert deliveries(worker) == [(4, 1, b"3"), (5, 1, b"4")]


def test_one_acknowledgement_for_all_up_to_a_sequence(world: World) -> None:
    worker, publisher = consume(world), world.connect()
    publisher.send(*(publish("orders.eu", b"%d" % n) for n in range(4)))
    worker.say(ACK, 7, 3, {"all": True, "more": 1})  # another form: in Python
    worker.vanish()
    assert payloads(consume(world)) == [b"3"]


def test_nack_redelivers_to_another_consumer_first(world: World) -> None:
    first = consume(world)
    publisher = world.connect()
    publisher.send(publish("orders.eu", b"1"))
    second = consume(world)
    first.say(NACK, 7, 1)
    assert deliveries(second) == [(2, 2, b"1")]


def test_nack_with_a_delay_waits(world: World) -> None:
    worker, publisher = consume(world), world.connect()
    publisher.send(publish("orders.eu", b"1"))
    worker.frames()
    worker.say(NACK, 7, 1, 10)
    world.pass_time(9.9)
    assert worker.frames() == []
    publisher.send(publish("orders.eu", b"2"))
    assert deliveries(worker) == [(2, 1, b"2")]
    world.pass_time(0.2)
    assert deliveries(worker) == [(3, 2, b"1")]


def test_term_discards_a_message(world: World) -> None:
    worker, publisher = consume(world), world.connect()
    publisher.send(publish("orders.eu", b"1"))
    worker.say(TERM, 7, 1, "no such customer")
    worker.vanish()
    assert payloads(consume(world)) == []


def test_what_is_not_acknowledged_in_time_is_delivered_again(world: World) -> None:
    worker, publisher = consume(world, ack_wait=5), world.connect()
    publisher.send(publish("orders.eu", b"1"), publish("orders.eu", b"2"))
    assert deliveries(worker) == [(1, 1, b"1"), (2, 1, b"2")]
    world.pass_time(4)
    worker.say(IN_PROGRESS, 7, 1)
    world.pass_time(2)
    assert deliveries(worker) == [(3, 2, b"2")]
    worker.say(ACK, 7, 2)  # late: it is another delivery now
    world.pass_time(3.5)
    assert deliveries(worker) == [(4, 2, b"1")]


def test_an_acknowledgement_of_nothing_has_no_effect(world: World) -> None:
    worker = consume(world)
    for kind in (ACK, NACK, TERM, IN_PROGRESS):
        worker.say(kind, 7, 99)
    worker.say(11, 1)
    assert worker.frames() == [[12, 1]]


def test_an_acknowledgement_for_no_consumer_is_an_error(world: World) -> None:
    worker = consume(world)
    for kind in (ACK, NACK, TERM, IN_PROGRESS):
        worker.say(kind, 8, 1)
        answer = worker.next()
        assert answer[:3] == [13, None, "no_such_subscription"]


def test_unsubscribing_returns_what_is_not_acknowledged(world: World) -> None:
    worker, publisher = consume(world), world.connect()
    publisher.send(publish("orders.eu", b"1"))
    worker.frames()
    worker.say(8, 2, 7)
    assert worker.next() == [7, 2, {"delivered": 1, "dropped": 0}]
    assert subscribe(worker, "orders.#", "billing")["waiting"] == 1
    assert deliveries(worker) == [(2, 2, b"1")]


def test_the_number_of_a_consumer_is_in_use(world: World) -> None:
    worker = consume(world)
    worker.say(6, 2, 7, "a")
    worker.say(6, 3, 7, "orders.#", {"consumer": "billing", "ack": True})
    answers = worker.frames()
    assert [each[:3] for each in answers] == [[13, 2, "subscription_in_use"], [13, 3, "subscription_in_use"]]


def test_a_queue_keeps_its_filter_and_options(world: World) -> None:
    consume(world, queue={"messages_max": 10})
    other = world.connect()
    for wanted in ({"queue": {"messages_max": 11}}, {"queue": {"overflow": "drop_oldest"}}):
        other.say(6, 1, 1, "orders.#", {"consumer": "billing", "ack": True, "durable": True, **wanted})
        assert other.next()[:3] == [13, 1, "consumer_in_use"]
    other.say(6, 1, 1, "invoices.#", {"consumer": "billing", "ack": True, "durable": True})
    assert other.next()[2:] == [
        "consumer_in_use", "the queue 'billing' exists with another filter; leave that out, or choose another name",
        {"consumer": "billing", "option": "filter"},
    ]
    subscribe(other, "orders.#", "billing", queue={"messages_max": 10})
    subscribe(other, "orders.#", "billing", 8)


def test_a_queue_that_is_not_durable_ends_with_its_last_consumer(world: World) -> None:
    first = consume(world, durable=None)
    second = consume(world, durable=None)
    first.vanish()
    world.connect().send(publish("orders.eu", b"1"))
    assert payloads(second) == [b"1"]
    second.vanish()
    assert len(world.broker.queues) == 0
    assert payloads(consume(world, durable=None)) == []
    assert len(world.broker.router) == 1


def test_a_message_that_was_delivered_too_often_is_a_dead_letter(world: World) -> None:
    worker = consume(world, queue={"deliveries_max": 2, "dead_letter": "dead.orders"})
    undertaker, publisher = world.connect(), world.connect()
    undertaker.say(6, None, 1, "dead.#")
    publisher.send(publish("orders.eu", b"1", {"k": "v"}))
    worker.say(NACK, 7, 1)
    assert undertaker.frames() == []
    worker.say(NACK, 7, 2)
    letter = undertaker.next()
    assert letter[:4] == [4, 1, "dead.orders", b"1"]
    headers = letter[4]
    assert headers.pop("x-death-first") == headers.pop("x-death-time")
    assert headers == {
        "k": "v", "x-death-topic": "orders.eu", "x-death-count": 1, "x-death-queue": "billing",
        "x-death-reason": "deliveries", "x-death-deliveries": 2,
    }
    assert worker.frames()[-1][3] == 2
    assert len(world.broker.queues.find("billing").inside) == 0


def test_dead_letters_that_return_to_their_queue_end(world: World) -> None:
    worker = consume(world, queue={"deliveries_max": 1, "dead_letter": "orders.again"}, prefetch=1)
    world.connect().send(publish("orders.eu", b"1"))
    for sequence in range(1, 40):
        worker.say(NACK, 7, sequence)
    assert len(payloads(worker)) == 17
    assert len(world.broker.queues.find("billing").inside) == 0


def test_rejected_messages_are_dead_letters(world: World) -> None:
    worker = consume(world, queue={"dead_letter": "dead.orders"})
    undertaker, publisher = world.connect(), world.connect()
    undertaker.say(6, None, 1, "dead.#")
    publisher.send(publish("orders.eu", b"1"))
    worker.say(TERM, 7, 1)
    assert undertaker.next()[4]["x-death-reason"] == "rejected"


def test_messages_expire_in_their_queue(world: World) -> None:
    consume(world, queue={"message_ttl": 5, "dead_letter": "dead.orders"}).vanish()
    undertaker, publisher = world.connect(), world.connect()
    undertaker.say(6, None, 1, "dead.#")
    publisher.send(publish("orders.eu", b"1"))
    world.pass_time(3)
    publisher.send(publish("orders.eu", b"2"))
    world.pass_time(3)
    assert undertaker.next()[4]["x-death-reason"] == "expired"
    assert payloads(consume(world)) == [b"2"]


@pytest.mark.parametrize(
    ("overflow", "kept", "dead"),
    [("drop_newest", [b"0", b"1"], []), ("drop_oldest", [b"1", b"2"], []), ("dead_letter", [b"1", b"2"], [b"0"])],
)
def test_a_full_queue(world: World, overflow: str, kept: list[bytes], dead: list[bytes]) -> None:
    options = {"messages_max": 2, "overflow": overflow}
    if overflow == "dead_letter":
        options["dead_letter"] = "dead.orders"
    consume(world, queue=options).vanish()
    undertaker = world.connect()
    undertaker.say(6, None, 1, "dead.#")
    world.connect().send(*(publish("orders.eu", b"%d" % n) for n in range(3)))
    assert [fields[3] for fields in undertaker.frames()] == dead
    assert payloads(consume(world)) == kept


def test_a_full_queue_refuses_its_publishers_until_it_has_room(world: World) -> None:
    worker, publisher, other = consume(world, queue={"messages_max": 2}, prefetch=1), world.connect(), world.connect()
    other.say(6, None, 1, "orders.#")
    publisher.send(*(publish("orders.eu", b"%d" % n, request=n) for n in range(1, 5)))
    assert [fields[:3] for fields in publisher.frames()] == [
        [5, 1, 2], [5, 2, 2], [5, 3, 2], [13, 4, "queue_full"],
    ]
    assert len(other.frames()) == 3  # a message that is refused goes nowhere
    publisher.send(publish("orders.eu", b"5"))
    assert publisher.next()[:3] == [13, None, "queue_full"]
    worker.say(ACK, 7, 1)
    publisher.send(publish("orders.eu", b"6", request=6))
    assert publisher.next() == [5, 6, 2]
    worker.say(ACK, 7, 2)
    worker.say(ACK, 7, 3)
    worker.say(ACK, 7, 4)
    assert payloads(worker) == [b"1", b"2", b"3", b"6"]


def test_only_one_consumer_is_active_until_it_goes(world: World) -> None:
    first = consume(world, queue={"single_active": True}, prefetch=1)
    second = consume(world)
    publisher = world.connect()
    publisher.send(publish("orders.eu", b"1"), publish("orders.eu", b"2"))
    assert payloads(first) == [b"1"]
    assert payloads(second) == []
    first.vanish()
    assert payloads(second) == [b"1", b"2"]


def test_an_unused_queue_ends_after_its_time(world: World) -> None:
    worker = consume(world, queue={"expires": 60})
    world.pass_time(100)
    assert len(world.broker.queues) == 1
    worker.vanish()
    world.pass_time(59)
    assert len(world.broker.queues) == 1
    world.pass_time(2)
    assert len(world.broker.queues) == 0


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"consumer": "q"}, "unsupported"),
        ({"consumer": "q", "ack": True, "group": "g"}, "unsupported"),
        ({"consumer": "q", "ack": True, "credit": 1}, "unsupported"),
        ({"ack": True}, "unsupported"),
        ({"consumer": "q", "ack": True, "deliver": "sideways"}, "unsupported"),
    ],
)
def test_options_that_do_not_go_together(world: World, options: dict[str, Any], code: str) -> None:
    peer = world.connect()
    peer.say(6, 1, 1, "a", options)
    assert peer.next()[:3] == [13, 1, code]
    assert len(world.broker.queues) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"consumer": "", "ack": True}, {"consumer": "q" * 256, "ack": True}, {"consumer": 1, "ack": True},
        {"consumer": "q", "ack": True, "prefetch": 0}, {"consumer": "q", "ack": True, "ack_wait": -1},
        {"consumer": "q", "ack": True, "queue": {"overflow": "burst"}},
    ],
)
def test_malformed_options_end_the_connection(world: World, options: dict[str, Any]) -> None:
    peer = world.connect()
    peer.say(6, 1, 1, "a", options)
    assert [fields[0] for fields in peer.frames()] == [13, 14]


def test_what_a_queue_takes_is_given_back(world: World) -> None:
    consume(world, durable=None).vanish()  # the index has its first size now
    ledger, router = world.broker.ledger, world.broker.router

    def used() -> tuple[int, ...]:
        filters = ledger.subscriptions.used - router.index_bytes
        return ledger.stored, ledger.stored_messages, filters, ledger.sessions.used

    first: list[Fields] = []
    before = used()
    worker, publisher = consume(world, durable=None), world.connect()
    publisher.send(*(publish("orders.eu", b"%d" % n) for n in range(20)))
    worker.say(NACK, 7, 1, 30)
    first = worker.frames()
    assert len(first) == 20
    assert ledger.stored_messages == before[1] + 20
    worker.vanish()
    assert used() == before
    publisher.vanish()
    assert len(world.broker.shares) == 0


def read(peer: Peer, octets: bytes) -> list[str]:
    """What a compiled transport does with one read. Returns the Python functions that were called."""
    inbox = peer.protocol.inbox
    with memoryview(inbox.next_buffer()) as buffer:
        buffer[: len(octets)] = octets
    inbox.received(len(octets))
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        event = peer.protocol.lane.advance(peer.world.now)
    finally:
        sys.setprofile(None)
    assert event == NEED_MORE
    return called


def test_publisher_to_consumer_to_acknowledgement_runs_without_python() -> None:
    world = World()
    worker, publisher = consume(world, prefetch=3), world.connect()
    publisher.send(publish("orders.eu", b"0"))  # its route is known from now on
    assert payloads(worker) == [b"0"]
    worker.protocol.outbox.write(frame(11, None))  # it is dirty: nothing has to be scheduled
    assert read(publisher, b"".join(publish("orders.eu", b"%d" % n) for n in range(1, 8))) == []
    assert read(worker, frame(ACK, 7, 1) + frame(ACK, 7, 2)) == []
    assert read(worker, frame(ACK, 7, 5, {"all": True})) == []
    world.turn()
    assert payloads(worker) == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]


def test_a_queue_is_begun_without_a_client_as_after_a_restart(world: World) -> None:
    creator = world.connect()
    client = creator.protocol.client
    assert client is not None
    queue = world.broker.queues.begin(
        client.subscriber, "billing", ((b"orders.#", "amqp"),), QueueOptions(), world.now
    )
    stored = Message(FORMAT, b"orders.eu", 0, b"1", fields=b"\xa9orders.eu\xc4\x011", format_data=4)
    queue.inside.queue.restore(stored, None, 17)
    creator.vanish()
    world.connect().send(publish("orders.eu", b"2"))
    assert deliveries(consume(world)) == [(1, 1, b"1"), (2, 1, b"2")]


def test_a_queue_whose_filter_is_wrong_is_not_there(world: World) -> None:
    peer = world.connect()
    peer.say(6, 1, 7, "a/#/b", {"consumer": "q", "ack": True, "durable": True, "syntax": 1})
    assert peer.next()[:3] == [13, 1, "invalid_filter"]
    assert len(world.broker.queues) == 0
    subscribe(peer, "a/#", "q", syntax=1)
