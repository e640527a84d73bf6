"""Queues that begin in the archive (`deliver`): what was before, then what is published, each message once."""

from collections.abc import Callable
from typing import Any

import pytest

from fanlight_archive import Writer
from fanlight_broker.core import filling
from fanlight_broker.core.queue_views import queue_view
from fanlight_broker.storage import replays as reading
from tests.broker.protocols.native.world import Fields, Peer, World, publish
from tests.broker.storage.archived import Archived

OK, ENDED, ERROR, DELIVERY, ACK = 7, 9, 13, 32, 33
Build = Callable[..., Archived]


@pytest.fixture
def archived(build: Build) -> Archived:
    return build(world=World)


def say(archived: Archived, first: int, end: int, topic: str = "stock.A") -> None:
    """Messages that tell their number."""
    peer = archived.world.connect()
    for number in range(first, end):
        peer.send(publish(topic, b"%d" % number))
    peer.vanish()


def fill(archived: Archived, first: int, end: int, topic: str = "stock.A") -> None:
    """The same, in the archive."""
    say(archived, first, end, topic)
    archived.settled()


def consume(archived: Archived, deliver: Any, name: str = "q", **options: Any) -> Peer:
    peer = archived.world.connect()
    peer.say(6, 1, 7, "stock.#", {
        "consumer": name, "ack": True, "durable": True, "deliver": deliver, "prefetch": 1_000, **options,
    })
    return peer


def until(archived: Archived, peer: Peer, condition: Callable[[list[Fields]], bool]) -> list[Fields]:
    """The frames up to when the condition holds, with all turns that it takes."""
    found: list[Fields] = []

    def there() -> bool:
        archived.world.turn()
        found.extend(peer.frames())
        return condition(found)

    archived.loop.run_until(there)
    return found


def filled(archived: Archived, name: str = "q") -> Callable[[list[Fields]], bool]:
    return lambda frames: archived.world.broker.queues.find(name).filling is None


def numbers(frames: list[Fields]) -> list[int]:
    return [int(fields[5]) for fields in frames if fields[0] == DELIVERY]


@pytest.mark.parametrize(("deliver", "expected"), [
    ({}, [0, 1, 2, 3, 4]),
    ({"offset": 3}, [3, 4]),
    ({"offset": 3, "epoch": 1}, [3, 4]),
    ({"offset": 5}, []),
    ({"since": 0}, [0, 1, 2, 3, 4]),
    ({"since": 2**62}, []),
    ("new", []),
    ("last", []),
    (None, []),
])  # fmt: skip
def test_a_queue_begins_where_it_is_to_and_goes_on_with_what_is_published(
    archived: Archived, deliver: Any, expected: list[int]
) -> None:
    fill(archived, 0, 5)
    fill(archived, 5, 6, "forex.A")
    peer = consume(archived, deliver)
    frames = until(archived, peer, filled(archived))
    assert frames[0][:2] == [OK, 1]
    say(archived, 6, 8)
    assert numbers(frames + peer.frames()) == [*expected, 6, 7]


def test_the_selector_of_a_queue_holds_for_what_it_begins_with_and_for_what_is_published(archived: Archived) -> None:
    publisher = archived.world.connect()

    def sell(*prices: int) -> None:
        publisher.send(*(publish("stock.A", b"%d" % price, {"price": price}) for price in prices))

    sell(5, 50, 6, 60)
    archived.settled()
    peer = consume(archived, {"since": 0}, where="price > 9 AND $time > 0")
    frames = until(archived, peer, filled(archived))
    assert numbers(frames) == [50, 60]
    sell(7, 70)
    assert numbers(peer.frames()) == []  # this broker has no clock of the wall: $time is absent
    assert archived.world.broker.ledger.filtered == 2
    again = consume(archived, {"offset": 2}, "later", where="price > 9")
    assert numbers(until(archived, again, filled(archived, "later"))) == [60, 70]
    sell(8, 80)
    assert numbers(again.frames()) == [80]


def test_messages_of_the_archive_are_as_they_were_published(archived: Archived) -> None:
    publisher = archived.world.connect()
    headers = {"content-type": "text/plain", "a": "x", "many": ["1", "2"]}
    publisher.send(publish("stock.A", b"0", headers, None, "r.1"), publish("stock/B", b"1", None, 1))
    archived.settled()
    _, first, second = until(archived, consume(archived, {}), filled(archived))
    assert first == [DELIVERY, 7, 1, 1, "stock.A", b"0", headers, None, "r.1"]
    assert second[3:6] + second[7:] == [1, "stock/B", b"1", 1]


@pytest.mark.parametrize("prefetch", [1, 3, 1_000])
@pytest.mark.parametrize("published", [1, 20])
def test_no_message_is_missing_or_there_twice_while_a_publisher_goes_on(
    archived: Archived, prefetch: int, published: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PART_BYTES", 100)
    monkeypatch.setattr(filling, "AHEAD", 8)
    fill(archived, 0, 100)
    count = 100
    publisher = archived.world.connect()
    peer = consume(archived, {"offset": 10}, prefetch=prefetch)
    got: list[int] = []

    def there() -> bool:
        nonlocal count
        for _ in range(published):  # between any two steps of the filling, as long as it fills
            if count < 600 and archived.world.broker.queues.find("q").filling is not None:
                publisher.send(publish("stock.A", b"%d" % count))
                count += 1
        archived.world.turn()
        for fields in peer.frames():
            if fields[0] == DELIVERY:
                got.append(int(fields[5]))
                peer.say(ACK, 7, fields[2])
        archived.loop.call_soon(lambda: None)
        return archived.world.broker.queues.find("q").filling is None and len(got) >= count - 10

    archived.loop.run_until(there)
    assert got == list(range(10, count))
    assert count > 100
    assert len(archived.world.broker.queues.find("q").inside) == 0


def test_the_archive_is_read_as_the_queue_has_room(archived: Archived, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PART_BYTES", 200)
    fill(archived, 0, 60)
    peer = consume(archived, {}, prefetch=1, queue={"messages_max": 20})
    inside = None
    got: list[int] = []
    while len(got) < 60:
        (frame,) = [fields for fields in until(archived, peer, lambda frames: bool(numbers(frames)))
                    if fields[0] == DELIVERY]
        inside = archived.world.broker.queues.find("q").inside
        assert len(inside.queue) <= 20
        got.append(int(frame[5]))
        peer.say(ACK, 7, frame[2])
    assert got == list(range(60))


def test_what_is_published_at_the_end_counts_for_the_bounds_and_its_publisher_is_refused(archived: Archived) -> None:
    fill(archived, 0, 3)
    peer = consume(archived, {}, prefetch=1, queue={"messages_max": 5})
    queue = archived.world.broker.queues.find("q")
    archived.loop.run_until(lambda: queue.inside.holding)
    publisher = archived.world.connect()
    publisher.send(*(publish("stock.A", b"%d" % n, request=n) for n in range(3, 12)))
    codes = [fields[2] for fields in publisher.frames()]
    assert codes[0] == 1
    assert codes[-1] == "queue_full"
    accepted = codes.count(1)
    archived.loop.run_until(lambda: queue.filling is None)
    archived.world.turn()
    for sequence in range(1, 20):
        peer.say(ACK, 7, sequence)
    assert numbers(peer.frames()) == list(range(3 + accepted))


def test_a_queue_says_that_it_is_being_filled(archived: Archived) -> None:
    fill(archived, 0, 10)
    peer = consume(archived, {}, prefetch=1, queue={"messages_max": 4})
    until(archived, peer, lambda frames: bool(numbers(frames)))
    queue = archived.world.broker.queues.find("q")
    assert queue_view(queue, archived.world.now)["filling"] is True
    archived.world.broker.queues.end(queue)
    archived.world.turn()
    assert peer.next()[:3] == [ENDED, 7, "consumer_deleted"]
    archived.loop.run_until(lambda: archived.archive.replays.running == 0)
    assert archived.world.broker.ledger.stored_messages == 0


def test_consumers_that_come_meanwhile_wait_for_the_answer_as_well(archived: Archived) -> None:
    fill(archived, 0, 4)
    first, second = consume(archived, {}), consume(archived, {"offset": 99})  # it exists: where it begins is decided
    assert (first.frames(), second.frames()) == ([], [])
    until(archived, first, filled(archived))
    assert second.frames()[0][:2] == [OK, 1]


@pytest.mark.parametrize(("deliver", "code", "details"), [
    ({"offset": 9}, "messages_gone", {"first": 5, "end": 9}), ({"offset": 1, "epoch": 9}, "replay_failed", None),
])  # fmt: skip
def test_an_offset_that_the_archive_does_not_have_is_an_error_and_there_is_no_queue(
    archived: Archived, deliver: dict[str, int], code: str, details: dict[str, int] | None
) -> None:
    fill(archived, 0, 5)
    peers = [consume(archived, deliver), consume(archived, deliver)]
    for peer in peers:
        (error,) = until(archived, peer, bool)
        assert error[:3] == [ERROR, 1, code]
        assert details is None or error[4] == details
    assert len(archived.world.broker.queues) == 0
    peers[0].say(6, 2, 7, "stock.#")
    assert peers[0].next() == [OK, 2]


def test_messages_that_retention_removes_before_they_are_read_end_the_queue(
    archived: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PART_BYTES", 100)
    fill(archived, 0, 50)
    peer = consume(archived, {"offset": 0, "epoch": 1}, prefetch=1, queue={"messages_max": 4})
    until(archived, peer, lambda frames: bool(numbers(frames)))
    read: Any = archived.world.broker.queues.find("q").filling
    writer: Writer = archived.archive.writer_thread.writer
    assert read is not None
    assert writer.end == 50
    read._reading._gone = reading.Gone(9, 20, "retention has removed them")
    for sequence in range(1, 60):
        peer.say(ACK, 7, sequence)
    frames = until(archived, peer, lambda frames: any(fields[0] == ENDED for fields in frames))
    assert frames[-1][2] == "messages_gone"
    assert len(archived.world.broker.queues) == 0


def test_a_client_that_leaves_before_the_answer_leaves_nothing_behind(archived: Archived) -> None:
    fill(archived, 0, 5)
    consume(archived, {}, durable=None).vanish()
    assert len(archived.world.broker.queues) == 0
    archived.loop.run_until(lambda: archived.archive.replays.running == 0)


def test_too_many_readers_of_the_archive_are_refused(build: Build) -> None:
    archived = build(world=World, archive_replays_max=1)
    fill(archived, 0, 5)
    consume(archived, {})
    peer = consume(archived, {}, name="other")
    assert peer.next()[:3] == [ERROR, 1, "limit_exceeded"]
    assert len(archived.world.broker.queues) == 1


def test_without_an_archive_it_is_an_error() -> None:
    world = World()
    peer = world.connect()
    peer.say(6, 1, 7, "stock.#", {"consumer": "q", "ack": True, "deliver": {"since": 5}})
    assert peer.next() == [
        ERROR, 1, "unsupported",
        "this broker keeps no archive, so a queue cannot begin with archived messages", {"option": "deliver"},
    ]
    assert len(world.broker.queues) == 0


@pytest.mark.parametrize("deliver", [{"offset": 1, "since": 2}, {"offset": -1}, {"since": "yesterday"}, 5])
def test_a_malformed_place_ends_the_connection(archived: Archived, deliver: Any) -> None:
    assert [fields[0] for fields in consume(archived, deliver).frames()] == [ERROR, 14]
