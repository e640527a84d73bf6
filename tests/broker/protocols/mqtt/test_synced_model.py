"""Publishes, syncs, reads and lost connections in any order: no acknowledgement early, none out of order, none lost."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.protocols.mqtt.packets import PubAck, PubComp, Publish, PubRec, PubRel
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.test_store import SlowRecorder
from tests.broker.protocols.mqtt.test_synced import Durable
from tests.broker.protocols.mqtt.world import Peer

TOPICS = ("durable", "archived", "both/durable", "none", "retained")


@dataclass
class Awaited:
    """An acknowledgement, and how far journal and archive must be before it may come."""

    kind: type
    packet_id: int
    synced: int
    recorded: int


@dataclass
class Publisher:
    peer: Peer
    packet_id: int = 0
    awaited: list[Awaited] = field(default_factory=list)
    unreleased: list[int] = field(default_factory=list)


class Model:
    def __init__(self, version: Version) -> None:
        self.world, self.version = Durable(), version
        self.archive = SlowRecorder(self.world)
        filters = [(b"archived", "mqtt"), (b"both/#", "mqtt")]
        self.world.broker.router.archive_selection = ArchiveSelection(self.archive.tap, filters)
        self.world.broker.record_to(self.archive)
        self.world.broker.acknowledgements.receipts.most = 8
        self.listener = self.world.durable("s", version, "durable", "+/durable")
        self.position = self.world.journal.position
        self.publishers = [self.publisher() for _ in range(3)]
        self.numbers = 0
        self.tagged: dict[bytes, int] = {}  # payload of QoS 2 -> how far the journal must be before it may be sent
        self.delivered: list[bytes] = []
        self.sent: list[bytes] = []

    def publisher(self) -> Publisher:
        return Publisher(self.world.connect("", self.version, clean_start=True))

    def publish(self, one: Publisher, topic: str, qos: int) -> None:
        if one.peer.held_back:
            return
        self.numbers += 1
        one.packet_id += 1
        payload = b"%d" % self.numbers
        before, taken = self.position.appended, self.archive.taken
        one.peer.say(Publish(topic, payload, qos, retain=topic == "retained", packet_id=one.packet_id if qos else None))
        if one.peer.held_back:
            one.peer.vanish()  # what it sent is not accepted: it may be left out of the model
            self.publishers[self.publishers.index(one)] = self.publisher()
            return
        changed = self.position.appended if self.position.appended != before else 0
        recorded = self.archive.taken if self.archive.taken != taken else 0
        if qos:
            one.awaited.append(Awaited(PubAck if qos == 1 else PubRec, one.packet_id, changed, recorded))
        if "durable" in topic and qos:
            assert changed, "the durable session gets it"
            self.sent.append(payload)
            if qos == 2:
                self.tagged[payload] = changed

    def release(self, one: Publisher) -> None:
        if one.unreleased and not one.peer.held_back:
            packet_id = one.unreleased.pop(0)
            one.peer.say(PubRel(packet_id))
            one.awaited.append(Awaited(PubComp, packet_id, 0, 0))

    def act(self, what: str, who: int, nth: int) -> None:
        one = self.publishers[who]
        match what:
            case "publish":
                self.publish(one, TOPICS[nth % len(TOPICS)], 1 + nth // len(TOPICS) % 2 if nth < 15 else 0)
            case "release":
                self.release(one)
            case "sync":
                self.world.sync(nth)
            case "flush":
                self.archive.flush()
                self.world.turn()
            case "read":
                self.read()
            case "vanish" if nth < 4:
                one.peer.vanish()
                self.publishers[who] = self.publisher()
            case "reconnect" if nth < 8:
                self.read()
                self.listener.vanish()
                self.listener = self.world.knock("s", self.version)
                assert self.listener.received == b""
                self.world.sync()
                self.listener.packets()  # its messages come again: they are not new
                self.listener.say(*(
                    PubAck(flight.tag) if flight.message is not None and flight.message.qos == 1 else PubRec(flight.tag)
                    for flight in self.listener.protocol.session.window.flights()
                ))  # fmt: skip

    def read(self) -> None:
        """The durable session's client takes what came."""
        for packet in self.listener.packets():
            match packet:
                case Publish() if packet.qos:
                    self.delivered.append(packet.payload)
                    assert self.position.synced >= self.tagged.get(packet.payload, 0), "sent before its tag is synced"
                    answer = PubAck if packet.qos == 1 else PubRec
                    self.listener.say(answer(packet.packet_id or 0))
                case PubRel():
                    self.listener.say(PubComp(packet.packet_id))

    def check(self) -> None:
        for one in self.publishers:
            for packet in one.peer.packets():
                assert isinstance(packet, PubAck | PubRec | PubComp)
                awaited = one.awaited.pop(0)
                assert (type(packet), packet.packet_id) == (awaited.kind, awaited.packet_id), "not in order"
                assert awaited.synced <= self.position.synced, "before its sync"
                assert awaited.recorded <= self.archive.receipts.recorded, "before the archive has it"
                if awaited.kind is PubRec:
                    one.unreleased.append(awaited.packet_id)
            if one.awaited and not self.world.broker.acknowledgements.receipts.count:
                raise AssertionError(f"nothing waits, and {one.awaited} have not come")


ACTIONS = [*6 * ["publish"], *2 * ["release"], *3 * ["sync"], "flush", *2 * ["read"], "vanish", "reconnect"]
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(0, 19)), max_size=80)


@settings(max_examples=100, deadline=None)
@given(STEPS, st.sampled_from([V3, V5]))
def test_acknowledgements_come_in_order_and_none_before_its_sync(
    steps: list[tuple[str, int, int]], version: Version
) -> None:
    model = Model(version)
    for step in steps:
        model.act(*step)
        model.check()
    for _ in range(len(steps) + 2):  # each round what was answered may report something again
        model.archive.flush()
        model.world.sync()
        model.read()
        model.check()
    assert [one.awaited for one in model.publishers] == [[], [], []]
    assert model.world.broker.acknowledgements.receipts.count == 0
    window = model.listener.protocol.session.window
    assert (window.unsent, len(window.queue)) == (0, 0)
    if not any(what == "reconnect" for what, _, _ in steps):
        assert model.delivered == model.sent
