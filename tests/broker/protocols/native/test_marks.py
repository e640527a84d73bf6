"""Marks by bytes (docs/native-protocol.md, 3.8): a repetition is not routed and not counted as a message."""

from traceback import walk_tb
from typing import Any

import pytest

from fanlight_broker.core.limits import Limits
from tests.broker.protocols.native.world import KIB, World, frame, publish


def marked(topic: str, payload: bytes, *mark: Any, request: int | None = None, reply: str | None = None) -> bytes:
    return frame(3, request, topic, payload, None, None, reply, [*mark])


@pytest.fixture(params=["fast", "plain"])
def world(request: pytest.FixtureRequest) -> World:
    return World(plain=request.param == "plain")


def test_a_repetition_is_not_routed_and_its_receipt_says_so(world: World) -> None:
    subscriber, publisher = world.connect(), world.connect()
    subscriber.say(6, None, 1, "a")
    publisher.send(publish("a", b"-"), publish("a", b"-"))  # the route is known
    subscriber.frames()
    publisher.send(
        marked("a", b"0", "p", 0, 0, request=1) + marked("a", b"1", "p", 0, 1) + marked("a", b"1", "p", 0, 1)
        + marked("a", b"0", "p", 0, 0, request=2) + marked("a", b"2", "p", 0, 2, request=3)
        + marked("a", b"2", "p", 0, 2, request=4, reply="r")
    )  # fmt: skip
    assert publisher.frames() == [[5, 1, 1], [5, 2, 0, None, True], [5, 3, 1], [5, 4, 0, None, True]]
    assert [fields[:4] for fields in subscriber.frames()] == [[4, 1, "a", number] for number in (b"0", b"1", b"2")]
    assert (world.broker.marks.repeated, world.broker.ledger.messages_in) == (3, 5)
    assert world.broker.ledger.receipts == 4


def test_the_mark_and_what_is_behind_it_are_not_passed_on(world: World) -> None:
    subscriber, publisher = world.connect(), world.connect()
    subscriber.say(6, None, 1, "a")
    for sequence in range(2):
        publisher.say(3, None, "a", b"", {"k": 1}, 0, "r", ["p", 0, sequence], {"later": 1}, "later")
    assert subscriber.frames() == [[4, 1, "a", b"", {"k": 1}, 0, "r"]] * 2


def test_a_mark_moves_up_only_with_a_message_that_is_accepted(world: World) -> None:
    publisher = world.connect()
    publisher.send(marked("$SYS.a", b"", "p", 0, 0, request=1))
    publisher.say(3, 2, "a/+", b"", None, 1, None, ["p", 0, 0])
    publisher.say(3, 3, "a", b"", None, 1, "r/+", ["p", 0, 0])
    publisher.say(3, 4, "a", b"", None, 7, None, ["p", 0, 0])
    refused = [(number, code) for _, number, code, *_ in publisher.frames()]
    assert refused == [(1, "not_permitted"), (2, "invalid_topic"), (3, "invalid_topic"), (4, "unsupported")]
    assert len(world.broker.marks) == 0
    publisher.send(marked("a", b"", "p", 0, 0, request=5))
    assert publisher.next() == [5, 5, 0]


def test_nothing_in_its_batch_passes_a_message_that_was_refused_until_that_is_published_again(world: World) -> None:
    subscriber, publisher, other = world.connect(), world.connect(), world.connect()
    subscriber.say(6, None, 1, "a")
    publisher.send(
        marked("a", b"0", "p", 1, 0, request=1), marked("$SYS.a", b"1", "p", 1, 1, request=2),
        marked("a", b"2", "p", 1, 2, request=3), marked("a", b"2", "p", 1, 3), marked("a", b"q", "q", 1, 2, request=4),
    )  # fmt: skip
    answers = publisher.frames()
    assert [fields[1] for fields in answers if fields[0] == 5] == [1, 4]
    refused = [fields[1:3] for fields in answers if fields[0] != 5]
    assert refused == [[2, "not_permitted"], [3, "not_permitted"], [None, "not_permitted"]]
    assert [fields[3] for fields in subscriber.frames()] == [b"0", b"q"]
    publisher.send(marked("a", b"1", "p", 1, 1, request=5), marked("a", b"2", "p", 1, 2, request=6))
    assert publisher.frames() == [[5, 5, 1], [5, 6, 1]]
    publisher.send(marked("$SYS.a", b"", "p", 1, 3), marked("a", b"3", "p", 2, 0))
    publisher.send(marked("a", b"", "p", 1, 4, request=7))
    assert publisher.frames()[-1] == [5, 7, 0, None, True]
    assert [fields[3] for fields in subscriber.frames()] == [b"1", b"2", b"3"]
    other.send(marked("$SYS.a", b"", "p", 3, 0, request=1), marked("a", b"4", "p", 3, 1, request=2))
    assert [(number, code) for _, number, code, *_ in other.frames()] == [(1, "not_permitted"), (2, "not_permitted")]


def test_an_error_that_refuses_many_does_not_grow_with_them(world: World) -> None:
    publisher = world.connect()
    publisher.send(*(marked("$SYS.a", b"", "p", 0, number) for number in range(50)))
    assert len(publisher.frames()) == 50
    ((_, error),) = publisher.protocol.refusals._first.values()
    assert sum(1 for _ in walk_tb(error.__traceback__)) < 10


def test_a_connection_remembers_refusals_of_so_many_producers(world: World) -> None:
    publisher = world.connect()
    publisher.send(*(marked("$SYS.a", b"", f"p{number}", 0, 0) for number in range(101)))
    publisher.frames()
    publisher.send(marked("a", b"", "p0", 0, 1, request=1), marked("a", b"", "p1", 0, 1, request=2))
    answers = publisher.frames()
    assert answers[0] == [5, 1, 0]
    assert answers[1][1:3] == [2, "not_permitted"]


def test_a_mark_is_its_users() -> None:
    world = World()
    anna, bert = world.connect(user="anna"), world.connect(user="bert")
    bert.send(marked("a", b"", "p", 2**64 - 1, 2**64 - 1, request=1))
    anna.send(marked("a", b"", "p", 0, 0, request=1), marked("a", b"", "p", 0, 0, request=2))
    assert anna.frames() == [[5, 1, 0], [5, 2, 0, None, True]]
    assert {(mark.user, mark.producer) for mark in world.broker.marks} == {("anna", "p"), ("bert", "p")}


def test_the_same_producer_may_go_on_in_another_connection(world: World) -> None:
    first, second, subscriber = world.connect(), world.connect(), world.connect()
    subscriber.say(6, None, 1, "a")
    first.send(marked("a", b"0", "p", 0, 0), marked("a", b"1", "p", 0, 1))
    for number in range(3):
        second.send(marked("a", b"%d" % number, "p", 0, number))
    first.send(marked("a", b"2", "p", 0, 2))
    assert [fields[3] for fields in subscriber.frames()] == [b"0", b"1", b"2"]


def test_a_message_that_is_held_back_moves_its_mark_when_it_goes_on(world: World) -> None:
    world.broker.use(Limits(outbox_bytes_max=64 * KIB))
    subscriber, publisher = world.connect(), world.connect()
    subscriber.say(6, None, 1, "a")
    subscriber.reads = False
    publisher.send(*(marked("a", bytes(60 * KIB), "p", 0, number) for number in range(4)))
    assert publisher.held_back
    (mark,) = world.broker.marks
    assert mark.sequence < 3
    subscriber.read_all()
    while publisher.held_back:
        subscriber.read_all()
    assert len(subscriber.frames()) == 4
    (mark,) = world.broker.marks
    assert (mark.sequence, world.broker.marks.repeated) == (3, 0)


def test_a_producer_too_many_is_forgotten() -> None:
    world = World(marks_max=2)
    publisher = world.connect()
    publisher.send(*(marked("a", b"", name, 0, 0) for name in "pqr"), marked("a", b"", "p", 0, 0, request=1))
    assert publisher.next() == [5, 1, 0]
    assert world.broker.marks.forgotten == 2


def test_a_stranger_cannot_have_the_next_message_of_a_producer_swallowed() -> None:
    world = World()
    victim, stranger, subscriber = world.connect(), world.open(), world.connect()
    subscriber.say(6, None, 1, "a")
    stranger.address = "192.0.2.66"
    stranger.send(frame(1, 1, {}))
    stranger.frames()
    victim.send(marked("a", b"0", "invoice-service", 0, 0, request=1))
    stranger.send(marked("a", b"evil", "invoice-service", 2**63, 1, request=1))
    assert stranger.next()[1:3] == [1, "not_permitted"]
    victim.send(marked("a", b"1", "invoice-service", 0, 1, request=2))
    assert victim.frames() == [[5, 1, 1], [5, 2, 1]]
    assert [fields[3] for fields in subscriber.frames()] == [b"0", b"1"]


def test_a_neighbour_at_the_same_address_cannot_move_the_mark_far() -> None:
    world = World()
    victim, neighbour = world.connect(), world.connect()
    victim.send(marked("a", b"0", "p", 0, 0, request=1))
    neighbour.send(marked("a", b"evil", "p", 0, 2**63, request=1))
    assert neighbour.next()[1:3] == [1, "not_permitted"]
    victim.send(marked("a", b"1", "p", 0, 1, request=2))
    assert victim.frames() == [[5, 1, 0], [5, 2, 0]]
    assert world.broker.marks.refused == 1
