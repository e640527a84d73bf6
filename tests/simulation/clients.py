"""MQTT clients that do what the specification asks of them, and remember across connections what it says they must.

Their state is that of section 4.1: a publisher's unacknowledged messages, a subscriber's identifiers received with
QoS 2. What they are promised and what they get they report to the history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    Subscription,
)
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.version import V5, Version
from tests.simulation.history import RETAINED, Followed, History, Violation
from tests.simulation.network import Link
from tests.simulation.schedule import Schedule
from tests.simulation.selecting import Fields, fields_of

SESSION_SECONDS = 1_000_000
PACKET_MAX = 1 << 20


class Network(Protocol):
    """Where clients connect to."""

    schedule: Schedule
    history: History

    def dial(self, client: "Client", version: Version) -> Link | None:
        """A new connection; None while nobody listens."""
        ...


class Client:
    """Keeps a persistent session and comes back when its connection ends.

    brief  its session ends with the connection
    """

    def __init__(self, network: Network, name: str, version: Version, *, brief: bool = False) -> None:
        self.network, self.name, self.version, self.brief = network, name, version, brief
        self.history, self.schedule, self.random = network.history, network.schedule, network.schedule.random
        self.link: Link | None = None
        self.connected = False  # CONNACK was received
        self.met = False  # the broker has had a session for it
        self.patience = 2.0  # seconds until it connects again, at most
        self._decoder = PacketDecoder(PACKET_MAX)
        self.schedule.soon(self.connect)

    def connect(self) -> None:
        if self.link is not None:
            return
        self.link = self.network.dial(self, self.version)
        if self.link is None:
            self.schedule.soon(self.connect, most=self.patience)
            return
        self.connected, self._decoder = False, PacketDecoder(PACKET_MAX)
        properties = NONE if self.version is not V5 else Properties(
            session_expiry_interval=None if self.brief else SESSION_SECONDS,
            receive_maximum=self.random.choice((None, 1, 3, 20)),
        )
        self.send(Connect(self.name, self.version, clean_start=self.brief, properties=properties))

    def send(self, packet: Packet) -> None:
        if self.link is not None:
            self.link.write(encode(packet, self.version))

    def receive(self, link: Link, octets: bytes) -> None:
        if link is not self.link:
            return
        self._decoder.feed(octets)
        while link is self.link and (raw := self._decoder.next_packet()) is not None:
            packet = decode(raw.first_byte, raw.body, self.version)
            if isinstance(packet, ConnAck):
                if packet.reason_code != 0:
                    raise Violation(f"{self.name} was refused: {packet}")
                if self.met and not self.brief and not packet.session_present:
                    raise Violation(f"the broker has forgotten the session of {self.name}")
                self.connected = self.met = True
                self.begin(packet)
            elif isinstance(packet, Disconnect):
                raise Violation(f"{self.name} was disconnected: {packet}")
            else:
                self.handle(packet)

    def begin(self, connack: ConnAck) -> None:
        """The connection is there."""

    def handle(self, packet: Packet) -> None:
        raise Violation(f"{self.name} got {packet}")

    def closed(self, link: Link) -> None:
        if link is self.link:
            self.link, self.connected = None, False
            self.schedule.soon(self.connect, most=self.patience)

    def leave(self) -> None:
        """Disconnect as a well-behaved client does."""
        if self.link is not None and self.connected:
            self.send(Disconnect())

    @property
    def idle(self) -> bool:
        """Has it nothing left to do?"""
        return self.connected


@dataclass
class Outgoing:
    payload: bytes
    topic: str
    qos: int
    retain: bool
    received: bool = False  # PUBREC has come


class Publisher(Client):
    """Publishes with all qualities of service, a few messages unacknowledged."""

    def __init__(
        self, network: Network, name: str, version: Version, topics: Sequence[str], count: int, window: int
    ) -> None:
        self.topics, self.left, self.window = topics, count, window
        self.number = 0
        self.outgoing: dict[int, Outgoing] = {}  # by packet identifier, in order
        self.quota = 65_535
        super().__init__(network, name, version)
        self.schedule.soon(self.publish)

    def begin(self, connack: ConnAck) -> None:
        self.quota = connack.properties.receive_maximum or 65_535
        for packet_id, message in self.outgoing.items():
            if message.received:
                self.send(PubRel(packet_id))
            else:
                self._write(packet_id, message, dup=True)

    def publish(self) -> None:
        if self.left:
            self.schedule.soon(self.publish, most=0.2)
        room = len(self.outgoing) < min(self.window, self.quota)
        if not (self.left and room and self.connected):
            return
        self.left -= 1
        self.number += 1
        topic, qos = self.random.choice(self.topics), self.random.choice((0, 1, 1, 2, 2))
        if self.random.random() < 0.1:
            topic, qos = f"{RETAINED}{self.name}/{self.number % 2}", 2
        payload = self.history.publish(self.name, self.number, topic, qos, self.fields)
        message = Outgoing(payload, topic, qos, topic.startswith(RETAINED))
        packet_id = next(id for id in range(1, 65_536) if id not in self.outgoing) if qos else 0
        if qos:
            self.outgoing[packet_id] = message
        self._write(packet_id, message, dup=False)

    @property
    def fields(self) -> Fields:
        """Of the message with the present number: user properties, which 3.1.1 has not."""
        return fields_of(self.number) if self.version is V5 else {}

    def _write(self, packet_id: int, message: Outgoing, *, dup: bool) -> None:
        fields = self.history.sent[message.payload].fields
        properties = Properties(user_properties=tuple(fields.items())) if fields else NONE
        self.send(
            Publish(message.topic, message.payload, message.qos, message.retain, dup, packet_id or None, properties)
        )

    def handle(self, packet: Packet) -> None:
        match packet:
            case PubAck():
                self._accepted(self.outgoing.pop(packet.packet_id), packet)
            case PubRec():
                message = self.outgoing[packet.packet_id]
                message.received = True
                self._accepted(message, packet)
                self.send(PubRel(packet.packet_id))
            case PubComp():
                self.outgoing.pop(packet.packet_id, None)
            case _:
                super().handle(packet)

    def _accepted(self, message: Outgoing, packet: PubAck | PubRec) -> None:
        if packet.reason_code >= 0x80:
            raise Violation(f"{self.name}: {packet} for {message}")
        self.history.accepted(message.payload)

    @property
    def idle(self) -> bool:
        return self.connected and not self.left and not self.outgoing


class Subscriber(Client):
    """Has one subscription; acknowledges sooner or later."""

    def __init__(
        self, network: Network, name: str, version: Version, filter: str, qos: int, group: str | None = None, *,
        brief: bool = False, where: str | None = None,
    ) -> None:
        assert where is None or version is V5
        self.filter, self.qos, self.where = filter, qos, where
        self.key = name if group is None else f"$share/{group}"
        self.subscribed = False
        self.unreleased: set[int] = set()
        self.pending = 0  # acknowledgements that it has not sent yet
        super().__init__(network, name, version, brief=brief)
        self.history.followed.setdefault(self.key, Followed(filter, qos, shared=group is not None, where=where))

    def begin(self, connack: ConnAck) -> None:
        self.pending = 0
        if self.brief:
            self.subscribed = False
            self.unreleased.clear()
        if not self.subscribed:
            shared = self.filter if self.key == self.name else f"{self.key}/{self.filter}"
            said = NONE if self.where is None else Properties(user_properties=(("where", self.where),))
            self.send(Subscribe(1, (Subscription(shared, self.qos),), said))

    def handle(self, packet: Packet) -> None:
        match packet:
            case SubAck():
                self.subscribed = True
                if not self.brief:  # else nothing is kept for it
                    self.history.subscribed(self.key)
            case Publish():
                self._got(packet)
            case PubRel():
                self.unreleased.discard(packet.packet_id)
                self.send(PubComp(packet.packet_id))
            case _:
                super().handle(packet)

    def _got(self, packet: Publish) -> None:
        if packet.retain:
            # Sent for each SUBSCRIBE, which is repeated when its SUBACK was lost.
            self.history.read_retained(self.key, packet.payload)
        elif packet.packet_id is None or packet.packet_id not in self.unreleased:
            self.history.delivered(self.key, packet.payload, packet.topic, packet.qos, dup=packet.dup)
        if packet.qos == 2:
            assert packet.packet_id is not None
            self.unreleased.add(packet.packet_id)
            self._later(PubRec(packet.packet_id))
        elif packet.qos == 1:
            assert packet.packet_id is not None
            self._later(PubAck(packet.packet_id))

    def _later(self, answer: Packet) -> None:
        """Acknowledgements are sent in the order of the messages (4.6), at once or a little later."""
        self.pending += 1
        self.schedule.after(0.05, self._answer, self.link, answer)

    def _answer(self, link: Link, answer: Packet) -> None:
        if link is self.link:
            self.pending -= 1
            self.send(answer)

    @property
    def idle(self) -> bool:
        return self.connected and self.subscribed and not self.pending and not self.unreleased


class Reader(Client):
    """Subscribes to all retained messages, once."""

    def __init__(self, network: Network) -> None:
        super().__init__(network, "reader", V5)
        self.values: dict[str, bytes] = {}

    def begin(self, connack: ConnAck) -> None:
        self.send(Subscribe(1, (Subscription(RETAINED + "#", 0),)))

    def handle(self, packet: Packet) -> None:
        match packet:
            case Publish(retain=True):
                self.values[packet.topic] = packet.payload
            case SubAck():
                pass
            case _:
                super().handle(packet)
