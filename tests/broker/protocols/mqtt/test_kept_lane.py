"""QoS 2 and retained publishes in the compiled lane, beside the way through Python: the same packets, the same state.

Two brokers get the same bytes. In one every PUBLISH is for Python (`Lane.plain`), and so is every PUBREL.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.enforcement import UNKNOWN
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import (
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Subscribe,
    Subscription,
    Unsubscribe,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.message import Message
from tests.broker.protocols.mqtt.test_synced import DAY, Durable
from tests.broker.protocols.mqtt.world import Peer, connect

VERSIONS = pytest.mark.parametrize("version", [V3, V5])
TOPICS = ("a", "b", "state/1")
PAYLOADS = (b"", b"on", b"off", b"x" * 200)
LIMITS = {
    "unreleased_messages_max": 3, "retained_messages_max": 2, "retained_bytes_max": 1_500, "inflight_messages_max": 3,
    "queue_messages_max": 4,
}  # fmt: skip


class Broker:
    """One of the two, with a publisher and a subscriber."""

    def __init__(self, version: Version, *, plain: bool, lasting: bool) -> None:
        self.world, self.version, self.plain, self.lasting = Durable(**LIMITS), version, plain, lasting
        self.peers: dict[str, Peer] = {}
        self.out: list[bytes] = []
        for name in ("publisher", "subscriber"):
            self.reconnect(name)

    def reconnect(self, name: str) -> None:
        if name in self.peers:
            self.peers[name].vanish()
        fields: dict[str, object] = {"clean_start": not self.lasting}
        if self.lasting and self.version is V5:
            fields["session_expiry_interval"] = DAY
        peer = self.peers[name] = self.world.open(self.version)
        peer.say(connect(name, self.version, **fields))
        self.world.sync()
        peer.protocol.lane.badge = UNKNOWN if self.plain else None

    def say(self, name: str, packet: Packet) -> None:
        octets = encode(packet, self.version)
        if self.plain and isinstance(packet, PubRel) and self.version is V5:
            octets = octets[:1] + b"\x03" + octets[2:] + b"\0"  # with its reason code: Python decodes it
        self.peers[name].send(octets)

    def took(self) -> dict[str, bytes]:
        found = {name: peer.received for name, peer in self.peers.items()}
        for peer in self.peers.values():
            peer.received = b""
        return found

    def state(self) -> dict[str, object]:
        broker, now = self.world.broker, self.world.now
        messages = {topic: broker.retained.get(topic.encode(), "mqtt", now) for topic in TOPICS}
        sessions = {session.name: session for session in broker.sessions}
        return {
            "retained": {topic: said(message) for topic, message in messages.items()},
            "origins": [entry.origin for id in range(broker.retained.places) if (entry := broker.retained.entry(id))],
            "counts": (len(broker.retained), broker.retained.nbytes, broker.retained.refused, broker.retained.expired),
            "stored": (broker.ledger.stored, broker.ledger.stored_messages, broker.ledger.messages_in),
            "shares": [(share.account.stored, share.account.retained, share.held) for share in broker.shares],
            "unreleased": {name: session.unreleased.in_use() for name, session in sessions.items()},
            "flights": {
                name: [(flight.tag, flight.message is None) for flight in session.window.flights()]
                for name, session in sessions.items()
            },
            "journal": (self.world.journal.position.appended, self.world.journal.unreleased,
                        {topic: said(message) for topic, message in self.world.journal.kept.items()}),
            "waiting": broker.acknowledgements.waiting,
            "gone": [peer.gone for peer in self.peers.values()],
        }  # fmt: skip


def said(message: Message | None) -> tuple[bytes, int, bytes, float] | None:
    return None if message is None else (message.payload, message.qos, message.fields, message.expires_at)


@dataclass
class Step:
    """One thing that happens at both."""

    kind: str
    number: int = 0
    topic: int = 0
    qos: int = 0
    retain: bool = False
    payload: int = 0
    dup: bool = False
    expiry: int | None = None
    more: "list[Step]" = field(default_factory=list)

    def packet(self, version: Version) -> Packet | None:
        topic = TOPICS[self.topic]
        match self.kind:
            case "publish":
                properties = NONE
                if self.expiry is not None and version is V5:
                    properties = Properties(message_expiry_interval=self.expiry)
                return Publish(
                    topic, PAYLOADS[self.payload], self.qos, self.retain, self.dup and self.qos > 0,
                    self.number if self.qos else None, properties,
                )  # fmt: skip
            case "release":
                return PubRel(self.number)
            case "acknowledge":
                return PubAck(self.number)
            case "received":
                return PubRec(self.number)
            case "complete":
                return PubComp(self.number)
            case "subscribe":
                return Subscribe(9, (Subscription(topic, self.qos, retain_as_published=version is V5),))
            case "unsubscribe":
                return Unsubscribe(9, (topic,))
        return None


KINDS = (*8 * ["publish"], *4 * ["release"], "acknowledge", *2 * ["received"], *2 * ["complete"],
         *2 * ["subscribe"], "unsubscribe", *3 * ["sync"], "wait", "away", "back")  # fmt: skip
STEPS = st.lists(st.builds(
    Step, kind=st.sampled_from(KINDS), number=st.integers(1, 5), topic=st.integers(0, 2),
    qos=st.sampled_from([0, 1, 2, 2]), retain=st.booleans(), payload=st.integers(0, 3), dup=st.booleans(),
    expiry=st.sampled_from([None, None, 0, 5, 60]),
), max_size=50)  # fmt: skip


def happen(broker: Broker, step: Step) -> None:
    sender = "publisher" if step.kind in ("publish", "release") else "subscriber"
    packet = step.packet(broker.version)
    if packet is not None:
        if broker.peers[sender].gone:
            broker.reconnect(sender)
        broker.say(sender, packet)
        return
    match step.kind:
        case "sync":
            broker.world.sync(step.number)
        case "wait":
            broker.world.pass_time(4.0)
        case "away":
            broker.reconnect("publisher")
        case "back":
            broker.reconnect("subscriber")


@settings(max_examples=100, deadline=None)
@given(STEPS, st.sampled_from([V3, V5]), st.booleans())
def test_the_lane_does_what_python_does(steps: list[Step], version: Version, lasting: bool) -> None:
    compiled = Broker(version, plain=False, lasting=lasting)
    plain = Broker(version, plain=True, lasting=lasting)
    happen_to = (compiled, plain)
    for step in [Step("subscribe", topic=0, qos=2), Step("subscribe", topic=2, qos=1), *steps]:
        for broker in happen_to:
            happen(broker, step)
        assert compiled.took() == plain.took(), step
        assert compiled.state() == plain.state(), step


# -- that it is the lane, and what it leaves to Python ----------------------------------------------------------------


def left_to_python(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What enters Python from now on."""
    found: list[str] = []
    publish, handle = peer.protocol.publish, peer.protocol.handle

    def published(now: float) -> bool:
        found.append("PUBLISH")
        return publish(now)

    def handled(now: float) -> None:
        found.append(f"{peer.protocol.lane.first_byte >> 4}")
        handle(now)

    monkeypatch.setattr(peer.protocol, "publish", published)
    monkeypatch.setattr(peer.protocol, "handle", handled)
    return found


@VERSIONS
@pytest.mark.parametrize("lasting", [False, True])
def test_an_exchange_of_quality_2_on_a_known_route_does_not_enter_python(
    version: Version, lasting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(version, plain=False, lasting=lasting)
    broker.say("subscriber", Subscribe(1, (Subscription("a", 2),)))
    broker.world.sync()
    broker.say("publisher", Publish("a", b"first", 0))
    broker.took()
    publisher, subscriber = broker.peers["publisher"], broker.peers["subscriber"]
    entered = left_to_python(publisher, monkeypatch), left_to_python(subscriber, monkeypatch)
    for name, packet, answered in (
        ("publisher", Publish("a", b"x", 2, packet_id=7), "publisher"),
        ("subscriber", PubRec(1), "subscriber"),
        ("subscriber", PubComp(1), ""),
        ("publisher", PubRel(7), "publisher"),
    ):
        broker.say(name, packet)
        broker.world.sync()
        if answered:
            assert broker.peers[answered].received
    assert entered == ([], [])
    assert publisher.packets() == [PubRec(7), PubComp(7)]
    assert subscriber.packets() == [Publish("a", b"x", 2, packet_id=1), PubRel(1)]


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_retained_message_of_a_known_topic_does_not_enter_python(
    version: Version, qos: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(version, plain=False, lasting=False)
    publisher, retained = broker.peers["publisher"], broker.world.broker.retained
    broker.say("publisher", Publish("a", b"first", qos, True, packet_id=1 if qos else None))
    entered = left_to_python(publisher, monkeypatch)
    monkeypatch.setattr(type(retained), "put", None)
    for number, payload in enumerate((b"x", b"longer", b"y"), 2):
        broker.say("publisher", Publish("a", payload, qos, True, packet_id=number if qos else None))
        if qos == 2:
            broker.say("publisher", PubRel(number))
        found = retained.get(b"a", "mqtt", 0.0)
        assert found is not None
        assert found.payload == payload
    assert entered == []


def test_a_later_message_may_live_longer_than_the_one_before() -> None:
    """The deadline that was set for the first one is not the second one's."""
    broker = Broker(V5, plain=False, lasting=False)
    world, retained = broker.world, broker.world.broker.retained
    for seconds in (5, 60):
        broker.say("publisher", Publish("a", b"x", 0, True, properties=Properties(message_expiry_interval=seconds)))
    broker.say("publisher", Publish("b", b"x", 0, True, properties=Properties(message_expiry_interval=5)))
    broker.say("publisher", Publish("b", b"x", 0, True))
    world.pass_time(10.0)
    assert (len(retained), retained.expired) == (2, 0)
    world.pass_time(100.0)
    assert (len(retained), retained.expired) == (1, 1)
    assert retained.get(b"b", "mqtt", world.now) is not None


def test_two_principals_in_turn_are_each_charged_for_what_they_retain() -> None:
    broker = Broker(V5, plain=False, lasting=False)
    other = broker.world.open(V5)
    other.address = "198.51.100.7"
    other.say(connect("other", V5))
    shares = {share.principal: share for share in broker.world.broker.shares}

    def paying() -> list[str]:
        return [name for name, share in shares.items() if share.account.retained]

    other.say(Publish("a", b"first", 0, True))
    for payload in (b"x", b"y" * 50):
        broker.say("publisher", Publish("a", payload, 0, True))
        assert paying() == ["address 192.0.2.1"]
        other.say(Publish("a", payload, 0, True))
        assert paying() == ["address 198.51.100.7"]
    entry = broker.world.broker.retained.entry(0)
    assert entry is not None
    assert entry.origin == "other"


@VERSIONS
def test_a_cleared_topic_is_known_again_with_its_next_message(version: Version) -> None:
    broker = Broker(version, plain=False, lasting=False)
    retained = broker.world.broker.retained
    for payload, count in ((b"x", 1), (b"", 0), (b"y", 1), (b"z", 1), (b"", 0)):
        broker.say("publisher", Publish("a", payload, 0, True))
        found = retained.get(b"a", "mqtt", 0.0)
        assert (len(retained), found.payload if found else b"") == (count, payload)
    assert retained.nbytes == broker.world.broker.ledger.stored == 0
