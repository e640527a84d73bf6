"""While the disk is stuck, acknowledgements wait for it: in a bounded number, and only those that must."""

from typing import Any

import pytest

from fanlight_broker.protocols.mqtt.packets import Publish, PubRel
from fanlight_broker.storage import archive as storage
from tests.broker.protocols.native.world import World as NativeWorld
from tests.broker.protocols.native.world import frame, publish
from tests.broker.storage.archived import Archived

MOST = 10
ONLY_A = ((b"a", "amqp"),)


def stuck(build: Any, **options: Any) -> Archived:
    """An archive of the topic `a`, whose disk is full, with room for MOST acknowledgements."""
    archived: Archived = build(receipts=True, filters=ONLY_A, **options)
    archived.disk.full = True
    archived.archive.receipts.most = MOST
    return archived


def recovers(archived: Archived) -> None:
    """The disk has room again, and everything that waited is done."""
    archived.disk.full = False
    while archived.archive.receipts.count or archived.archive.tap.taken != archived.archive.state.sequence:
        archived.settled()
        archived.loop.run_all()
        archived.world.turn()
    archived.loop.run_all()
    archived.world.turn()


def marked(payload: bytes, producer: str, sequence: int, request: int | None) -> bytes:
    return frame(3, request, "a", payload, None, None, None, [producer, 0, sequence])


def test_a_flood_of_pubrels_is_not_read_while_the_ring_is_full(build: Any) -> None:
    archived = stuck(build)
    peer = archived.world.connect("p")
    peer.publish("a", b"x", 1, packet_id=1)
    for number in range(1, 5 * MOST):
        peer.say(PubRel(number))
    assert archived.archive.receipts.count == MOST
    assert peer.held_back
    recovers(archived)
    assert not peer.held_back
    assert len(peer.packets()) == 5 * MOST, "a PUBACK, and a PUBCOMP for each PUBREL"


def test_a_message_that_is_repeated_again_and_again_is_not_read_while_the_ring_is_full(build: Any) -> None:
    archived = stuck(build, world=NativeWorld)
    peer = archived.world.connect()
    for request in range(5 * MOST):
        peer.send(marked(b"x", "p", 1, request))
    assert archived.archive.receipts.count == MOST
    assert peer.protocol.blocked
    recovers(archived)
    assert not peer.protocol.blocked
    assert len(peer.frames()) == 5 * MOST
    assert len(archived.rows()) == 1


def test_acknowledgements_of_a_connection_that_has_ended_keep_nothing_of_it(build: Any) -> None:
    archived = stuck(build)
    archived.archive.receipts.most = 1_000
    peer = archived.world.connect("p")
    peer.say(Publish("a", b"x", 2, packet_id=1))
    native = stuck(build, world=NativeWorld, folder="native")
    other = native.world.connect()
    other.send(marked(b"x", "p", 1, 1))
    other.send(marked(b"x", "p", 1, 2))
    for each, store in ((peer, archived), (other, native)):
        assert store.archive.receipts.count > 0
        each.protocol.lost("closed by the client")
        assert store.archive.receipts.count == 0


def test_a_full_ring_holds_back_nobody_whose_topic_is_not_archived(build: Any) -> None:
    native = stuck(build, world=NativeWorld, folder="native")
    busy, other = native.world.connect(), native.world.connect()
    for request in range(2 * MOST):
        busy.send(publish("a", b"x", request=request))
    assert busy.protocol.blocked
    other.frames()
    other.send(publish("n", b"x", request=1))
    assert not other.protocol.blocked
    assert len(other.frames()) == 1

    mqtt = stuck(build)
    careful, second = mqtt.world.connect("p"), mqtt.world.connect("q")
    for number in range(2 * MOST):
        careful.say(Publish("a", b"x", 1, packet_id=number + 1))
    assert careful.held_back
    assert len(second.publish("n", b"x", 1)) == 1
    assert not second.held_back


def test_marks_that_are_handed_over_take_no_room_that_a_receipt_was_promised(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MARKS_BYTES_MAX", 50_000)
    archived = stuck(build, world=NativeWorld, archive_buffer_bytes_max=1 << 20)
    archived.archive.receipts.most = 1_000
    peer, tap = archived.world.connect(), archived.archive.tap
    number = 0
    while archived.archive._pending.octets < 50_000:  # their messages are on a topic that is not archived
        peer.send(frame(3, None, "b", b"x", None, None, None, ["p" * 200 + str(number), 0, 1]))
        number += 1
    while tap.bytes + 60_000 < tap.bytes_max:
        peer.send(publish("a", bytes(50_000)))
    peer.send(publish("a", bytes(tap.bytes_max - tap.bytes - 200)))
    assert not tap.crowded
    taken, dropped = tap.taken, tap.dropped
    peer.send(marked(b"important", "q", 1, 9))
    assert (tap.taken, tap.dropped) == (taken, dropped)
    assert peer.protocol.blocked, "there is no room for it any more, so its publisher waits"
    recovers(archived)
    assert b"important" in [row["value"] for row in archived.rows()]
