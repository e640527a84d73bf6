"""The archive of a broker: what passes is written, and receipts wait for it (docs/archive.md)."""

import errno
from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Writer
from fanlight_broker.core.limits import Durability
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from fanlight_broker.protocols.mqtt.version import V5
from tests.broker.protocols.native.world import World as NativeWorld
from tests.broker.protocols.native.world import publish
from tests.broker.storage.archived import Archived


def test_what_passes_is_archived_with_who_published_it_and_how(build: Any) -> None:
    archived = build()
    peer = archived.world.connect("sensor")
    peer.publish("home/kitchen", b"21", 1, retain=True)
    peer.publish("home/hall", b"", 0)
    archived.settled()
    first, second = archived.rows()
    assert first["timestamp"].timestamp() > 1_700_000_000
    kept = {
        "topic": "home/kitchen", "value": b"21", "client": "sensor", "protocol": "mqtt 5.0", "syntax": "mqtt", "qos": 1,
    }  # fmt: skip
    assert {name: first[name] for name in kept} == kept
    assert (first["offset"], second["offset"], first["retain"], second["retain"]) == (0, 1, True, False)
    assert second["value"] == b""
    assert archived.archive.counters()["archive_messages"] == 2


def test_messages_that_are_joined_to_runs_are_archived_each(build: Any) -> None:
    archived = build()
    listener, peer = archived.world.connect("s"), archived.world.connect("p")
    listener.subscribe("a")
    peer.say(*(Publish("a", b"%050d" % number, 0) for number in range(100)))
    archived.settled()
    assert [int(row["value"]) for row in archived.rows()] == list(range(100))
    assert len(listener.messages()) == 100


def test_only_topics_that_a_filter_matches_are_archived_in_either_syntax(build: Any) -> None:
    archived = build(filters=((b"home.#", "amqp"), (b"garden/+", "mqtt")))
    peer = archived.world.connect("p")
    for topic in ("home/kitchen", "garden/tree", "garden/tree/leaf", "street", "home"):
        peer.publish(topic, b"", 0)
    archived.settled()
    assert [row["topic"] for row in archived.rows()] == ["home/kitchen", "garden/tree", "home"]


def test_topics_that_begin_with_a_dollar_are_archived_only_by_their_name(build: Any) -> None:
    archived = build(filters=((b"#", "amqp"), (b"$jobs.#", "amqp")))
    peer = archived.world.connect("p")
    for topic in ("$jobs/1", "$inbox/x", "a"):
        peer.publish(topic, b"", 0)
    archived.settled()
    assert [row["topic"] for row in archived.rows()] == ["$jobs/1", "a"]


def test_headers_content_type_reply_and_correlation_are_archived(build: Any) -> None:
    archived = build()
    peer = archived.world.connect("p", V5)
    peer.publish(
        "a", b"x", 0, content_type="text/plain", response_topic="r/1", correlation_data=b"\x01",
        user_properties=(("k", "v"), ("k", "w")),
    )  # fmt: skip
    peer.publish("a", b"y", 0)
    archived.settled()
    first, second = archived.rows()
    assert first["headers"] == [{"key": "k", "value": b"v"}, {"key": "k", "value": b"w"}]
    assert (first["content_type"], first["reply_topic"], first["correlation"]) == ("text/plain", "r/1", b"\x01")
    assert [second[name] for name in ("headers", "content_type", "reply_topic", "correlation")] == [None] * 4


def test_a_batch_that_is_not_full_is_written_after_its_time(build: Any) -> None:
    archived = build()
    archived.world.connect("p").publish("a", b"", 0)
    assert len(archived.loop.later) == 1
    archived.loop.time_passes()
    archived.loop.run_until(lambda: archived.archive.state.end == 1)


@pytest.mark.parametrize("durability", list(Durability))
def test_a_receipt_waits_until_the_message_is_in_the_archive(build: Any, durability: Durability) -> None:
    archived = build(receipts=True, durability=durability)
    peer = archived.world.connect("p")
    for _ in range(2):  # the second on a route that is known
        syncs = archived.disk.syncs
        assert peer.publish("a", b"x", 1) == []
        archived.settled()
        (answer,) = peer.packets()
        assert isinstance(answer, PubAck)
        assert (archived.disk.syncs > syncs) == (durability is not Durability.NONE)
    assert len(archived.rows()) == 2


def test_a_receipt_of_what_is_not_archived_does_not_wait(build: Any) -> None:
    archived = build(receipts=True, filters=((b"a", "amqp"),))
    assert len(archived.world.connect("p").publish("b", b"x", 1)) == 1


def test_a_full_disk_is_told_and_routing_goes_on(build: Any) -> None:
    archived = build()
    world, archive = archived.world, archived.archive
    listener, peer = world.connect("s"), world.connect("p")
    listener.subscribe("a")
    archived.disk.full = True
    peer.publish("a", b"1", 0)
    archive.tap.flush()
    archived.loop.run_until(lambda: archive.trouble is not None)
    assert "No space left on device" in str(archive.trouble)
    assert archive.gauges()["archive_healthy"] == 0
    peer.publish("a", b"2", 0)
    assert [message.payload for message in listener.messages()] == [b"1", b"2"]
    archived.disk.full = False
    archived.settled()
    archived.loop.run_until(lambda: archive.trouble is None)
    assert [row["value"] for row in archived.rows()] == [b"1", b"2"]
    assert archive.counters()["archive_lost"] == 0


def test_a_plain_message_counts_with_its_topic_and_payload_once_in_either_protocol(build: Any) -> None:
    mqtt, native = build(), build(world=NativeWorld, folder="native")
    mqtt.world.connect("p").publish("a", bytes(200), 0)
    native.world.connect().send(publish("a", bytes(200)))
    assert mqtt.archive.tap.bytes == native.archive.tap.bytes < 300


def test_while_the_buffer_is_full_messages_without_a_receipt_are_dropped_and_counted(build: Any) -> None:
    archived = build(archive_buffer_bytes_max=1 << 20)
    peer = archived.world.connect("p")
    archived.disk.full = True
    for _ in range(40):
        peer.publish("a", bytes(32 * 1024), 0)
    counters = archived.archive.counters()
    assert counters["archive_dropped"] == 40 - archived.archive.tap.taken > 0
    assert archived.archive.gauges()["archive_buffer_bytes"] <= (1 << 20) + 33 * 1024
    archived.disk.full = False
    archived.settled()
    assert len(archived.rows()) == archived.archive.tap.taken
    assert archived.archive.tap.bytes == 0


def test_who_wants_receipts_is_held_back_while_the_buffer_is_full_and_others_are_not(build: Any) -> None:
    archived = build(receipts=True, archive_buffer_bytes_max=1 << 20)
    world = archived.world
    careful, careless = world.connect("careful"), world.connect("careless")
    archived.disk.full = True
    for number in range(40):
        careful.say(Publish("a", bytes(32 * 1024), 1, packet_id=number + 1))
        careless.publish("a", bytes(10), 0)
    assert careful.held_back
    assert not careless.held_back
    assert archived.archive.counters()["archive_held_back"] == 1
    archived.disk.full = False
    archived.loop.run_until(lambda: not careful.held_back and len(world.broker.clients) == 2)
    while archived.archive.tap.taken != archived.archive.state.sequence or careful.held_back:
        archived.settled()
        archived.loop.run_all()
        world.turn()
    assert len([packet for packet in careful.packets() if isinstance(packet, PubAck)]) == 40
    assert len([row for row in archived.rows() if row["client"] == "careful"]) == 40


@pytest.mark.parametrize("durability", [Durability.INTERVAL, Durability.BATCH])
def test_a_sync_that_fails_takes_back_what_was_written_and_it_is_written_again_in_a_new_epoch(
    build: Any, durability: Durability
) -> None:
    archived = build(receipts=True, durability=durability)
    peer = archived.world.connect("p")
    peer.publish("a", b"1", 1)
    archived.settled()
    assert len(peer.packets()) == 1
    archived.disk.rotten = True
    peer.publish("a", b"2", 1)
    archived.archive.tap.flush()
    archived.loop.run_until(lambda: archived.archive.trouble is not None)
    archived.world.turn()
    assert peer.packets() == []
    archived.disk.rotten = False
    archived.settled()
    assert len(peer.packets()) == 1
    assert [row["value"] for row in archived.rows()] == [b"1", b"2"]
    assert archived.archive.state.epoch == 2
    assert archived.archive.counters()["archive_lost"] == 0


def test_a_batch_that_could_not_be_told_is_lost_once_though_a_sync_fails_behind_it(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def untold(columns: object) -> object:
        asked.append(columns)
        raise ValueError("what is this?")

    archived = build(durability=Durability.INTERVAL)
    peer = archived.world.connect("p")
    peer.publish("a", b"0", 0)
    archived.archive.tap.flush()
    archived.loop.run_until(lambda: archived.archive.state.sequence == 1)  # the next sync is not due yet
    archived.disk.rotten = True
    peer.publish("a", b"1", 0)
    archived.archive.tap.flush()
    archived.loop.run_until(lambda: archived.archive.state.written == 2)
    with monkeypatch.context() as patch:
        patch.setattr("fanlight_broker.storage.writer_thread.batch_of", untold)
        peer.publish("a", b"2", 0)
        archived.archive.tap.flush()
        archived.loop.run_until(lambda: bool(asked))
    archived.loop.run_until(lambda: archived.archive.trouble is not None)
    archived.disk.rotten = False
    archived.settled()
    assert [row["value"] for row in archived.rows()] == [b"0", b"1"]
    counters = archived.archive.counters()
    assert (counters["archive_messages"], counters["archive_lost"]) == (2, 1)


def test_a_disk_that_stays_rotten_is_tried_again_at_its_time_and_not_with_each_batch(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fanlight_broker.storage.writer_thread.RETRY_SECONDS", 3_600.0)
    archived = build(durability=Durability.INTERVAL)
    peer, archive = archived.world.connect("p"), archived.archive
    archived.disk.rotten = True
    peer.publish("a", b"0", 0)
    archive.tap.flush()
    archived.loop.run_until(lambda: archive.trouble is not None)
    syncs, heard = archived.disk.syncs, []
    hear = archive._heard
    monkeypatch.setattr(archive, "_heard", lambda progress: (heard.append(progress), hear(progress)))
    for number in range(1, 6):
        peer.publish("a", b"%d" % number, 0)
        archive.tap.flush()
        archived.loop.run_until(lambda number=number: len(heard) >= number)
    assert archived.disk.syncs == syncs
    assert archive.state.epoch == 1
    archived.disk.rotten = False
    archive.stop()
    assert [row["value"] for row in archived.rows()] == [b"%d" % number for number in range(6)]


def test_an_error_that_nobody_thought_of_makes_the_archive_unwell_and_does_not_end_it(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived = build()

    def broken(batch: Any, marks: Any) -> int:
        raise RuntimeError("unheard of")

    peer = archived.world.connect("p")
    with monkeypatch.context() as patch:
        patch.setattr(archived.archive.writer_thread.writer, "append", broken)
        peer.publish("a", b"x", 0)
        archived.archive.tap.flush()
        archived.loop.run_until(lambda: archived.archive.trouble is not None)
    assert "unheard of" in archived.archive.trouble
    archived.settled()
    assert [row["value"] for row in archived.rows()] == [b"x"]


def test_retention_goes_on_while_nothing_can_be_written_for_it_may_make_room(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fanlight_broker.storage.writer_thread.RETENTION_SECONDS", 0.0)
    archived = build()
    writer, retained = archived.archive.writer_thread.writer, []

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(writer, "append", full)
        patch.setattr(writer, "remove_old", lambda **_: retained.append(archived.archive.trouble) or [])
        archived.world.connect("p").publish("a", b"x", 0)
        archived.archive.tap.flush()
        archived.loop.run_until(lambda: any(retained))
    assert any(retained)
    archived.settled()


def test_stopping_writes_what_was_taken_and_closes_the_archive(tmp_path: Path) -> None:
    archived = Archived(tmp_path / "archive")
    archived.world.connect("p").publish("a", b"last", 0)
    archived.archive.stop()
    assert [row["value"] for row in archived.rows()] == [b"last"]
    writer = Writer(archived.folder)
    assert writer.recovered.sentences() == []
    writer.close()


def test_stopping_does_not_wait_for_a_disk_that_stays_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanlight_broker.storage.writer_thread.CLOSE_SECONDS_MAX", 0.0)
    archived = Archived(tmp_path / "archive")
    archived.world.connect("p").publish("a", b"x", 0)
    archived.disk.full = True
    archived.archive.stop()
    archived.loop.run_all()
    assert archived.archive.counters()["archive_lost"] == 1
    assert archived.rows() == []
