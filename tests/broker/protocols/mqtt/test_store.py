"""What is stored before it is acknowledged (MQTT 5, 4.3): one order, whatever the QoS and the lane.

Topics that are not stored do not wait, unless something before them does: acknowledgements keep their order.
"""

import pytest

from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.core.recorder import NoRecorder
from fanlight_broker.protocols.mqtt.packets import PubAck, PubComp, PubRec, PubRel
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.archive_tap import ArchiveTap
from fanlight_broker.wire.receipts import Receipts
from tests.broker.protocols.mqtt.world import World


class SlowRecorder(NoRecorder):
    """Has stored what its tap has taken when the test says so."""

    awaited = True

    def __init__(self, world: World) -> None:
        self.begun = 0
        self.acknowledgements, self.world = world.broker.acknowledgements, world
        self.tap = ArchiveTap(
            rows_max=1_000, bytes_max=1 << 20, batch_bytes_max=1 << 20, begun=lambda: None, full=lambda columns: None
        )

    @property
    def taken(self) -> int:  # type: ignore[override]
        return self.tap.taken

    @property
    def receipts(self) -> Receipts:
        return self.acknowledgements.receipts

    def hurry(self) -> None:
        self.begun += 1

    def flush(self) -> None:
        self.acknowledgements.release(self.world.now, self.tap.taken)


def storing() -> tuple[World, SlowRecorder]:
    """A broker that stores what is published to `a`."""
    world = World()
    store = SlowRecorder(world)
    world.broker.router.archive_selection = ArchiveSelection(store.tap, [(b"a", "mqtt")])
    world.broker.record_to(store)
    return world, store


@pytest.mark.parametrize("version", [V3, V5])
def test_no_acknowledgement_before_the_store_has_what_it_acknowledges(version: Version) -> None:
    world, store = storing()
    listener, peer = world.connect("s", version), world.connect("p", version)
    listener.subscribe("a", qos=2)
    for qos, answer in ((1, PubAck), (2, PubRec), (1, PubAck)):  # the last on a route that is known
        assert peer.publish("a", b"x", qos) == []
        assert store.receipts.count == 1
        store.flush()
        world.turn()
        (acknowledged,) = peer.packets()
        assert isinstance(acknowledged, answer)
        assert acknowledged.reason_code is ReasonCode.SUCCESS
    assert peer.publish("a", b"x", 1, packet_id=9) == []
    peer.say(PubRel(2))
    assert peer.packets() == []
    store.flush()
    world.turn()
    assert [type(packet) for packet in peer.packets()] == [PubAck, PubComp]
    assert [message.qos for message in listener.messages()] == [1, 2, 1, 1]


def test_a_refusal_waits_its_turn_behind_what_was_accepted() -> None:
    world, store = storing()
    peer = world.connect("p")
    assert peer.publish("a", b"x", 1, packet_id=1) == []
    assert peer.publish("$SYS/x", b"x", 1, packet_id=2) == []
    store.flush()
    world.turn()
    first, second = peer.packets()
    assert isinstance(first, PubAck)
    assert isinstance(second, PubAck)
    assert (first.packet_id, first.reason_code) == (1, ReasonCode.NO_MATCHING_SUBSCRIBERS)
    assert (second.packet_id, second.reason_code) == (2, ReasonCode.NOT_AUTHORIZED)


@pytest.mark.mqtt("MQTT-4.6.0-2")
@pytest.mark.parametrize("version", [V3, V5])
def test_acknowledgements_of_stored_and_other_topics_are_in_the_order_of_their_publishes(version: Version) -> None:
    world, store = storing()
    peer = world.connect("p", version)

    def acknowledged() -> list[int]:
        world.turn()
        return [packet.packet_id for packet in peer.packets() if isinstance(packet, PubAck)]

    peer.publish("other", b"x", 0)  # from now on both routes are known
    peer.publish("a", b"x", 0)
    assert [each.packet_id for each in peer.publish("other", b"x", 1, packet_id=1) if isinstance(each, PubAck)] == [1]
    assert peer.publish("a", b"x", 1, packet_id=2) == []
    assert peer.publish("other", b"x", 1, packet_id=3) == []
    assert peer.publish("$SYS/x", b"x", 1, packet_id=4) == []
    assert peer.publish("other", b"x", 1, packet_id=5) == []
    assert peer.protocol.lane.pending_acks == 4
    store.flush()
    assert acknowledged() == [2, 3, 4, 5]
    assert peer.protocol.lane.pending_acks == 0
    assert [each.packet_id for each in peer.publish("other", b"x", 1, packet_id=6) if isinstance(each, PubAck)] == [6]
    assert store.receipts.count == 0


@pytest.mark.parametrize("version", [V3, V5])
def test_known_routes_stay_in_the_lane_whether_they_are_stored_or_not(
    version: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, store = storing()
    peer = world.connect("p", version)
    entries: list[bytes] = []
    publish = peer.protocol.publish

    def counted(now: float) -> bool:
        entries.append(peer.protocol.lane.message.topic)
        return publish(now)

    monkeypatch.setattr(peer.protocol, "publish", counted)
    packets = []
    for number in range(1, 101):
        packets += peer.publish("other", b"x", 1, packet_id=number)
        packets += peer.publish("a", b"x", 1, packet_id=100 + number)
        if number % 10 == 0:
            store.flush()
            world.turn()
            packets += peer.packets()
    assert entries == []  # not even those that found the routes
    acknowledged = [packet.packet_id for packet in packets if isinstance(packet, PubAck)]
    assert acknowledged == [n for number in range(1, 101) for n in (number, 100 + number)]
    assert store.begun == 10


def test_a_full_ring_holds_back_those_whose_acknowledgement_would_wait() -> None:
    world, store = storing()
    peer, other = world.connect("p"), world.connect("q")
    store.receipts.most = 3
    for number in range(1, 6):
        peer.publish("a", b"x", 1, packet_id=number)
    assert (store.receipts.count, peer.held_back, world.broker.acknowledgements.held_back) == (3, True, 1)
    assert len(other.publish("b", b"x", 1)) == 1
    store.flush()
    world.turn()
    assert not peer.held_back
    store.flush()
    world.turn()
    assert [packet.packet_id for packet in peer.packets() if isinstance(packet, PubAck)] == [1, 2, 3, 4, 5]


def test_a_connection_that_ends_leaves_nothing_to_acknowledge() -> None:
    world, store = storing()
    gone, other = world.connect("gone"), world.connect("other")
    for number in range(1, 4):
        for peer in (gone, other):
            peer.publish("a", b"x", 1, packet_id=number)
    assert store.receipts.count == 6
    gone.vanish()
    assert (store.receipts.count, gone.protocol.lane.pending_acks) == (3, 0)
    store.flush()
    world.turn()
    assert [packet.packet_id for packet in other.packets() if isinstance(packet, PubAck)] == [1, 2, 3]
    assert store.receipts.count == 0
