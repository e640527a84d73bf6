"""MQTT connections without sockets: see ../world.py. What the test sends and gets are packets, or their bytes."""

from typing import Any

from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Connect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    Subscription,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.version import V5, Version
from tests.broker.protocols import world
from tests.broker.protocols.world import KIB


class World(world.World):
    """One broker and its MQTT connections. Keywords are limits."""

    def __init__(self, *, receive_bytes: int = 64 * KIB, options: MqttOptions | None = None, **limits: Any) -> None:
        super().__init__(receive_bytes=receive_bytes, **limits)
        self.options = options or MqttOptions()
        self.counts = Counts()

    def open(self, version: Version = V5) -> "Peer":
        """A connection that has sent nothing yet."""
        return Peer(self, version)

    def connect(self, client_id: str = "", version: Version = V5, **fields: Any) -> "Peer":
        """A connection that is through its handshake. Keywords are CONNECT's fields, or its properties'."""
        peer = self.open(version)
        peer.say(connect(client_id, version, **fields))
        connack = peer.next()
        assert isinstance(connack, ConnAck), connack
        assert connack.reason_code == 0, connack
        peer.connack = connack
        return peer


class Peer(world.Peer):
    """The client's end of an MQTT connection."""

    protocol: MqttConnection

    def __init__(self, world: World, version: Version) -> None:
        super().__init__(world)
        self.version = version
        self.connack: ConnAck | None = None
        self.packet_id = 0
        self.protocol = MqttConnection(world.options, world.counts, world.broker, self, world.shared, world.now)

    def say(self, *packets: Packet) -> None:
        """Send packets, in one read."""
        self.send(b"".join(encode(packet, self.version) for packet in packets))

    def packets(self) -> list[Packet]:
        """What came since the last call; half a packet is an error."""
        found = packets_of(self.received, self.version)
        self.received = b""
        return found

    def next(self) -> Packet:
        """The one packet that came since the last call."""
        (only,) = self.packets()
        return only

    def subscribe(self, *filters: str | Subscription, qos: int = 0, **properties: Any) -> tuple[int, ...]:
        """Subscribe, and return the codes of SUBACK. What else came stays to be read."""
        self.packet_id += 1
        wanted = tuple(Subscription(each, qos) if isinstance(each, str) else each for each in filters)
        self.say(Subscribe(self.packet_id, wanted, Properties(**properties) if properties else NONE))
        codes: tuple[int, ...] | None = None
        rest = b""
        for packet in packets_of(self.received, self.version):
            if isinstance(packet, SubAck):
                assert packet.packet_id == self.packet_id
                codes = packet.reason_codes
            else:
                rest += encode(packet, self.version)
        assert codes is not None, "no SUBACK"
        self.received = rest
        return codes

    def publish(self, topic: str, payload: bytes = b"", qos: int = 0, **fields: Any) -> list[Packet]:
        """Publish, see a QoS 2 handshake through, and return the answers."""
        known = {name: fields.pop(name) for name in ("retain", "dup", "packet_id") if name in fields}
        if qos and "packet_id" not in known:
            self.packet_id += 1
            known["packet_id"] = self.packet_id
        self.say(Publish(topic, payload, qos, properties=Properties(**fields) if fields else NONE, **known))
        answers = self.packets()
        if any(isinstance(answer, PubRec) and answer.reason_code < 0x80 for answer in answers):
            self.say(PubRel(known["packet_id"]))
            answers += self.packets()
        return answers

    def messages(self) -> list[Publish]:
        """The PUBLISHes since the last call, each acknowledged as far as its QoS goes; other packets are an error."""
        found: list[Publish] = []
        while received := self.packets():
            for packet in received:
                match packet:
                    case Publish():
                        found.append(packet)
                        if packet.qos == 1:
                            self.say(PubAck(packet.packet_id or 0))
                        elif packet.qos == 2:
                            self.say(PubRec(packet.packet_id or 0))
                    case PubRel():
                        self.say(PubComp(packet.packet_id))
                    case _:
                        raise AssertionError(f"{packet} among messages")
        return found


def connect(client_id: str = "", version: Version = V5, **fields: Any) -> Connect:
    """A CONNECT; keywords are its fields, or its properties'."""
    known = {name: fields.pop(name) for name in ("clean_start", "keep_alive", "will", "user_name", "password")
             if name in fields}  # fmt: skip
    return Connect(client_id, version, properties=Properties(**fields) if fields else NONE, **known)


def packets_of(octets: bytes, version: Version) -> list[Packet]:
    """Octets as packets. Raises AssertionError for half a packet."""
    decoder = PacketDecoder(1 << 28)
    decoder.feed(octets)
    found: list[Packet] = []
    while (raw := decoder.next_packet()) is not None:
        found.append(decode(raw.first_byte, raw.body, version))
    assert not len(decoder), "half a packet"
    return found
