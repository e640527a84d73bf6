"""REPLAY: what is in the archive, then what is published, without a gap (docs/native-protocol.md, section 3.7)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Archive, Writer
from fanlight_broker.core import replay as replays
from fanlight_broker.core.content import Content
from fanlight_broker.core.limits import Durability
from fanlight_broker.protocols.native import convert, frames
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.storage import replays as reading
from tests.archive.messages import batch
from tests.broker.protocols.native.world import Fields, Peer, World, frame, publish
from tests.broker.storage.archived import Archived
from tests.captured_logs import capture_logs

REPLAY, REPLAY_END, MESSAGE, OK, ERROR, ENDED = 48, 49, 4, 7, 13, 9
Build = Callable[..., Archived]


@pytest.fixture
def archived(build: Build) -> Archived:
    return build(world=World)


def fill(archived: Archived, first: int, end: int, topic: str = "stock.A") -> None:
    """Messages that tell their number, in the archive."""
    peer = archived.world.connect()
    for number in range(first, end):
        peer.send(publish(topic, b"%d" % number))
    peer.vanish()
    archived.settled()


def identity(archived: Archived) -> str:
    with Archive(archived.folder) as reader:
        return reader.id


def until(archived: Archived, peer: Peer, kind: int) -> list[Fields]:
    """The frames up to one of a kind, with all turns that it takes."""
    found: list[Fields] = []

    def there() -> bool:
        archived.world.turn()
        found.extend(peer.frames())
        return any(fields[0] == kind for fields in found)

    archived.loop.run_until(there)
    return found


def payloads(frames: list[Fields]) -> list[int]:
    return [int(fields[3]) for fields in frames if fields[0] == MESSAGE]


def test_all_that_is_archived_comes_with_offset_and_time_and_then_what_is_live(archived: Archived) -> None:
    fill(archived, 0, 5)
    peer, other = archived.world.connect(), archived.world.connect()
    assert peer.info["features"] == ["replay", "marks", "queues", "delay", "cancel", "where"]
    peer.say(REPLAY, 1, 7, "stock.*", {})
    frames = until(archived, peer, REPLAY_END)
    kept = {"epoch": 1, "archive": identity(archived), "start": 0, "end": 5, "offset": 0, "oldest_end": None}
    assert frames[0] == [OK, 1, {**kept, "bytes": frames[0][2]["bytes"]}]
    assert payloads(frames) == [0, 1, 2, 3, 4]
    message = frames[1]
    assert message[:7] == [MESSAGE, 7, "stock.A", b"0", None, None, None]
    assert (message[7], len(message)) == (0, 9)
    assert message[8] == archived.rows()[0]["timestamp"].timestamp() * 1e6
    assert frames[-1] == [REPLAY_END, 7, 5, 1]
    other.send(publish("stock.B", b"5"))
    assert peer.next() == [MESSAGE, 7, "stock.B", b"5"]


@pytest.mark.parametrize(("options", "expected"), [
    ({"offset": 3}, [3, 4]),
    ({"offset": 3, "epoch": 1}, [3, 4]),
    ({"offset": 5}, []),
    ({"since": 0}, [0, 1, 2, 3, 4]),
    ({"since": 2**62}, []),
    ({"since": 2**64 - 1}, []),
])  # fmt: skip
def test_a_replay_begins_at_an_offset_or_a_time(
    archived: Archived, options: dict[str, int], expected: list[int]
) -> None:
    fill(archived, 0, 5)
    peer = archived.world.connect()
    peer.say(REPLAY, 1, 7, "#", options)
    assert payloads(until(archived, peer, REPLAY_END)) == expected


def test_only_messages_that_the_filter_matches_come_whatever_their_spelling(archived: Archived) -> None:
    fill(archived, 0, 2, "stock.A")
    fill(archived, 2, 4, "forex.A")
    peer = archived.world.connect()
    peer.send(publish("stock/B", b"4", None, 1))
    archived.settled()
    peer.say(REPLAY, 1, 7, "stock/+", {"syntax": 1})
    assert payloads(until(archived, peer, REPLAY_END)) == [0, 1, 4]


def test_headers_and_reply_topic_come_as_they_were_published(archived: Archived) -> None:
    peer = archived.world.connect()
    headers = {"content-type": "text/plain", "a": "x", "many": ["1", "2"]}
    peer.send(publish("a", b"0", headers, None, "r.1"))
    archived.settled()
    peer.say(REPLAY, 1, 7, "a", {})
    (message,) = [fields for fields in until(archived, peer, REPLAY_END) if fields[0] == MESSAGE]
    assert message[4:7] == [headers, None, "r.1"]


def test_a_replay_of_the_past_only_ends_where_the_archive_was_when_it_was_asked_for(archived: Archived) -> None:
    fill(archived, 0, 3)
    peer = archived.world.connect()
    peer.send(publish("stock.A", b"3"), frame(REPLAY, 1, 7, "#", {"past_only": True}), publish("stock.A", b"4"))
    frames = until(archived, peer, ENDED)
    assert payloads(frames) == [0, 1, 2, 3]
    assert frames[-2:] == [[REPLAY_END, 7, 4, 1], [ENDED, 7, "end", 4, 0]]
    peer.say(6, 2, 7, "#", None)  # its number may be used again
    assert peer.next() == [OK, 2]


@pytest.mark.parametrize(("options", "expected"), [
    ({"offset": 1, "end": 3}, [1, 2]),
    ({"since": 0, "end": 3}, [0, 1, 2]),
    ({"end": 99}, [0, 1, 2, 3, 4]),
    ({"offset": 3, "end": 3}, []),
    ({"offset": 3, "end": 0}, []),
    ({"offset": 3, "end": 99, "past_only": True}, [3, 4]),
])  # fmt: skip
def test_a_replay_ends_before_an_offset_or_with_what_there_is(
    archived: Archived, options: dict[str, Any], expected: list[int]
) -> None:
    fill(archived, 0, 5)
    peer = archived.world.connect()
    peer.say(REPLAY, 1, 7, "#", options)
    frames = until(archived, peer, ENDED)
    assert payloads(frames) == expected
    assert frames[0][2]["offset"] == options.get("offset", 0)
    end = max(options.get("offset", 0), min(options["end"], 5))
    assert frames[-2:] == [[REPLAY_END, 7, end, 1], [ENDED, 7, "end", len(expected), 0]]


def test_a_replay_that_ends_at_0_tells_where_the_archive_is_and_where_it_would_begin(archived: Archived) -> None:
    fill(archived, 0, 5)
    peer = archived.world.connect()
    peer.send(publish("stock.A", b"5"), frame(REPLAY, 1, 7, "#", {"since": 2**62, "end": 0}))
    begun = until(archived, peer, ENDED)[0]
    kept = {"epoch": 1, "archive": identity(archived), "start": 0, "end": 6, "offset": 6, "oldest_end": None}
    assert begun == [OK, 1, {**kept, "bytes": begun[2]["bytes"]}]
    assert 0 < begun[2]["bytes"] <= sum(each.stat().st_size for each in archived.folder.glob("*.arrows*"))


def test_what_is_published_while_a_replay_runs_comes_once_and_in_its_place(
    archived: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PART_BYTES", 200)
    fill(archived, 0, 300)
    peer, other = archived.world.connect(), archived.world.connect()
    peer.say(REPLAY, 1, 7, "#", {})
    number, found = 300, []

    def over() -> bool:
        nonlocal number
        other.send(publish("stock.A", b"%d" % number))  # one each time that anything moves
        number += 1
        found.extend(peer.frames())
        return any(fields[0] == REPLAY_END for fields in found)

    archived.loop.run_until(over)
    archived.world.turn()
    found.extend(peer.frames())
    assert payloads(found) == list(range(number))
    assert number > 320


def test_when_more_comes_than_may_wait_reading_goes_on_and_nothing_is_missing(
    archived: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "WAITING_MAX", 3)
    fill(archived, 0, 10)
    peer, other = archived.world.connect(), archived.world.connect()
    peer.say(REPLAY, 1, 7, "#", {})
    number, found = 10, []

    def over() -> bool:
        nonlocal number
        running = [replay for replay, _ in peer.protocol.replays._running.values()]
        if running and running[0].state is replays.ReplayState.JOINING and running[0].joins < 3:
            for _ in range(10):
                other.send(publish("stock.A", b"%d" % number))
                number += 1
        archived.world.turn()
        found.extend(peer.frames())
        return any(fields[0] == REPLAY_END for fields in found)

    archived.loop.run_until(over)
    other.send(publish("stock.A", b"%d" % number))
    found.extend(peer.frames())
    assert number > 20
    assert payloads(found) == list(range(number + 1))


def test_a_client_that_does_not_read_is_not_read_for(archived: Archived, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PART_BYTES", 500)
    fill(archived, 0, 200)
    peer = archived.world.connect()
    peer.reads = False
    peer.say(REPLAY, 1, 7, "#", {})
    archived.loop.run_until(lambda: peer.protocol.outbox.size > 0)
    archived.loop.run_all()
    assert peer.protocol.outbox.size < 1_000
    peer.read_all()
    assert payloads(until(archived, peer, REPLAY_END)) == list(range(200))


def test_it_is_shown_who_reads_and_how_far(archived: Archived, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PART_BYTES", 500)
    fill(archived, 0, 200)
    peer = archived.world.connect()
    peer.reads = False
    peer.say(REPLAY, 1, 7, "stock.*", {})
    (row,) = archived.archive.replay_views()
    assert (row["filter"], row["queue"]) == ("stock.*", None)
    assert (row["offset"] is None) == (row["behind"] is None)  # whether its thread has read anything yet, nobody knows
    assert (row["client"], row["protocol"]) == (peer.protocol.client.subscriber.name, "native")
    archived.loop.run_until(lambda: peer.protocol.outbox.size > 0)
    (row,) = archived.archive.replay_views()
    assert 0 < row["offset"] == row["messages"] < 200
    assert row["behind"] == 200 - row["offset"]
    peer.read_all()
    until(archived, peer, REPLAY_END)
    assert archived.archive.replay_views() == []


def test_a_replay_that_is_unsubscribed_or_whose_client_goes_ends_at_once(archived: Archived) -> None:
    fill(archived, 0, 10)
    peer = archived.world.connect()
    peer.send(frame(REPLAY, 1, 7, "#", {}), frame(6, 2, 7, "#", None), frame(10, 7, 5), frame(8, 3, 7))
    refused, credit, ended = peer.frames()
    assert refused[:3] == [ERROR, 2, "subscription_in_use"]
    assert credit[:3] == [ERROR, None, "no_such_subscription"]
    assert ended == [OK, 3, {"delivered": 0, "dropped": 0}]
    peer.say(REPLAY, 4, 7, "#", {})
    peer.vanish()
    archived.loop.run_all()
    assert archived.archive.replays.running == 0
    assert archived.world.broker.ledger.used == 0


def test_a_replay_that_goes_on_while_the_archive_stops_ends_in_peace(
    archived: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PART_BYTES", 500)
    fill(archived, 0, 200)
    going_on, leaving = archived.world.connect(), archived.world.connect()
    for peer in (going_on, leaving):
        peer.reads = False
        peer.say(REPLAY, 1, 7, "#", {})
    archived.loop.run_until(lambda: all(peer.protocol.outbox.size > 0 for peer in (going_on, leaving)))
    archived.archive.stop()  # in another thread than the loop's, which runs on
    going_on.read_all()  # and asks for more
    leaving.vanish()
    archived.loop.run_all()
    assert archived.archive.replays.running == 1
    assert archived.archive.replays.open == set()


@pytest.mark.parametrize(("fields", "code"), [
    ((7, "a.**", {}), None),
    ((7, "#", {"offset": 1, "since": 2}), "protocol_error"),
    ((7, "+/x#", {"syntax": 1}), "invalid_filter"),
    ((7, "#", {"syntax": 9}), "unsupported"),
    ((7, "#", {"offset": 9, "epoch": 1}), "messages_gone"),
    ((7, "#", {"offset": 2**64 - 1}), "messages_gone"),
    ((7, "#", {"offset": 0, "epoch": 5}), "replay_failed"),
])  # fmt: skip
def test_what_cannot_be_replayed_is_answered_with_an_error(
    archived: Archived, fields: tuple[Any, ...], code: str | None
) -> None:
    fill(archived, 0, 1)
    peer = archived.world.connect()
    peer.say(REPLAY, 1, *fields)
    answer = until(archived, peer, OK if code is None else ERROR)[0]
    assert answer[1] == 1
    assert code is None or answer[2] == code


def test_a_replay_goes_live_where_it_should_when_the_disk_had_been_full(archived: Archived) -> None:
    """Several batches are written together then: it is live behind the first of them."""
    fill(archived, 0, 3)
    peer, other = archived.world.connect(), archived.world.connect()
    archived.disk.full = True
    other.send(publish("stock.A", b"3"))
    peer.say(REPLAY, 1, 7, "#", {})
    replay, _ = peer.protocol.replays._running[7]

    def joining() -> bool:
        archived.world.turn()
        return replay.state is replays.ReplayState.JOINING and archived.archive.trouble is not None

    archived.loop.run_until(joining)
    for number in (4, 5):
        other.send(publish("stock.A", b"%d" % number))
        archived.archive.tap.flush()
    archived.disk.full = False
    frames = until(archived, peer, REPLAY_END)
    archived.world.turn()
    assert payloads(frames + peer.frames()) == [0, 1, 2, 3, 4, 5]


def test_an_error_that_nobody_thought_of_is_answered_and_lets_go(
    archived: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("unheard of")

    fill(archived, 0, 1)
    monkeypatch.setattr(reading.ArchiveReading, "_mask", broken)
    peer = archived.world.connect()
    peer.say(REPLAY, 1, 7, "#", {})
    answer = until(archived, peer, ERROR)[0]
    assert answer[2] == "replay_failed"
    assert archived.archive.replays.running == 0


def test_a_filter_that_matches_nothing_holds_up_no_other_replay(
    archived: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one thread for all: it takes turns."""
    monkeypatch.setattr(reading, "BATCHES_MAX", 1)
    for number in range(5):
        fill(archived, number, number + 1)  # a batch each
    turns: list[int] = []
    gather = reading.ArchiveReading._gather

    def counted(self: reading.ArchiveReading, end: int | None) -> replays.ReplayPart:
        part = gather(self, end)
        turns.append(part.offset)
        return part

    monkeypatch.setattr(reading.ArchiveReading, "_gather", counted)
    peer = archived.world.connect()
    peer.say(REPLAY, 1, 7, "forex.#", {})
    frames = until(archived, peer, REPLAY_END)
    assert turns == [1, 2, 3, 4, 5, 5, 5]  # each batch, the end, and the end once it is known where it goes live
    assert payloads(frames) == []


def test_a_replay_of_what_a_failed_sync_took_back_is_broken_off(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its offsets may name other messages now."""
    archived = build(world=World, durability=Durability.NONE)
    fill(archived, 0, 5)
    monkeypatch.setattr(replays.Replay, "_join", lambda replay: held.append(replay))
    held: list[replays.Replay] = []
    peer = archived.world.connect()
    peer.say(REPLAY, 1, 7, "#", {})
    archived.loop.run_until(lambda: held)
    archived.world.turn()
    assert payloads(peer.frames()) == [0, 1, 2, 3, 4]
    monkeypatch.undo()
    writer = archived.archive.writer_thread.writer
    archived.disk.rotten = True
    with pytest.raises(OSError, match="Input/output error"):
        writer.sync()
    archived.disk.rotten = False
    fill(archived, 5, 6)
    assert (writer.epoch, writer.end) == (2, 1)
    held[0]._ask()
    assert until(archived, peer, ENDED)[-1][:3] == [ENDED, 7, "messages_gone"]


def test_the_bytes_are_those_of_the_vectors(archived: Archived) -> None:
    vectors = json.loads(Path("docs/native-protocol-vectors.json").read_text(encoding="utf-8"))
    found = {vector["name"]: bytes.fromhex(vector["bytes"]) for vector in vectors["frames"]}
    fill(archived, 0, 8, "forex.eur")
    peer = archived.world.connect()
    peer.send(found["replay"])
    end = found["replay_end"][:6] + b"\x07\x08\x01"  # of subscription 7, at offset 8, in epoch 1

    def ended() -> bool:
        archived.world.turn()
        return peer.received.endswith(end)

    archived.loop.run_until(ended)
    # Type, subscription in its fixed form, and topic; then offset and timestamp in theirs.
    assert peer.received.count(found["message_replayed"][4:21]) == 3
    assert peer.received.count(b"\xc0\xc0\xc0\xcf" + bytes(7) + b"\x05\xcf") == 1
    assert payloads(peer.frames()) == [5, 6, 7]


@pytest.mark.parametrize(("topic", "syntax", "payload"), [
    ("a.b", 0, b"x"), ("a/ü" * 30, 1, b""), ("a", 0, bytes(300)), ("a", 0, bytes(70_000)),
])  # fmt: skip
def test_the_quick_way_to_write_a_replayed_message_gives_the_bytes_of_the_other(
    topic: str, syntax: int, payload: bytes
) -> None:
    content = Content(topic=topic.encode(), syntax=syntax, payload=payload)
    message = convert.write(FORMAT, content)
    assert message is not None
    assert frames.replayed_plainly(7, topic.encode(), syntax, payload, 5, 6) == frames.replayed(7, message, 5, 6)


def test_there_are_only_so_many_replays_at_once(build: Build) -> None:
    archived = build(world=World, archive_replays_max=1)
    peer = archived.world.connect()
    peer.send(frame(REPLAY, 1, 7, "#", {}), frame(REPLAY, 2, 8, "#", {}))
    assert peer.next()[:3] == [ERROR, 2, "limit_exceeded"]


def test_a_broker_without_an_archive_does_not_know_replay() -> None:
    peer = World().connect()
    assert peer.info["features"] == ["marks", "queues", "delay", "cancel", "where"]
    peer.say(REPLAY, 1, 7, "#", {})
    assert peer.next()[:3] == [ERROR, None, "unsupported"]


def test_what_damage_took_ends_a_replay_by_position_and_is_passed_over_by_others(build: Build, tmp_path: Path) -> None:
    """Offsets 2 to 3 are in no segment; a reader that keeps positions gets what is before them first."""
    writer = Writer(tmp_path / "archive", segment_bytes=1)
    for number in range(3):
        writer.append(batch(2 * number, 2))
    writer.close()
    (tmp_path / "archive" / f"{2:020d}.arrows").unlink()
    archived = build(world=World)
    peer = archived.world.connect()
    peer.say(REPLAY, 1, 7, "stock.#", {"offset": 0, "epoch": 1})
    found = until(archived, peer, ENDED)
    assert payloads(found) == [0, 1]
    assert found[-1][:3] == [ENDED, 7, "messages_gone"]
    with capture_logs() as logs:
        peer.say(REPLAY, 2, 8, "stock.#", {"offset": 0})
        assert payloads(until(archived, peer, REPLAY_END)) == [0, 1, 4, 5]
    assert [(entry["first"], entry["end"]) for entry in logs if entry["event"] == "replay_passed_over"] == [(2, 4)]
    peer.say(REPLAY, 3, 9, "stock.#", {"offset": 4, "epoch": 1})
    assert payloads(until(archived, peer, REPLAY_END)) == [4, 5]


def test_a_selector_holds_for_what_is_archived_and_for_what_is_live(archived: Archived) -> None:
    publisher = archived.world.connect()
    for number in range(6):
        publisher.send(publish("stock.A", b"%d" % number, {"price": number, "region": "eu" if number % 2 else "us"}))
    archived.settled()
    peer = archived.world.connect()
    where = "price > 1 AND region = 'eu' AND $client IS NOT NULL AND $qos = 0 AND $word[2] = 'A'"
    peer.say(REPLAY, 1, 7, "stock.*", {"where": where})
    frames = until(archived, peer, REPLAY_END)
    assert payloads(frames) == [3, 5]
    assert frames[-1] == [REPLAY_END, 7, 6, 1]
    for number, region in ((7, "us"), (8, "eu"), (0, "eu")):
        publisher.send(publish("stock.A", b"%d" % number, {"price": number, "region": region}))
    assert payloads(peer.frames()) == [8]
    peer.say(REPLAY, 2, 8, "stock.*", {"where": "price >"})
    assert peer.next()[:3] == [ERROR, 2, "invalid_selector"]
