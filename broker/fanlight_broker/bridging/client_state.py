"""The client's side of one MQTT connection, without I/O: bytes in, events out; what is to be sent collects in `take`.

    connect() --> OPENING --CONNACK--> OPEN --DISCONNECT, an error, silence--> CLOSED

It has one connection of a session and no session: what it publishes with QoS 1 is given back as `Settled` when it is
acknowledged, by the token that came with it, and is forgotten with the connection. The session that it came from still
has it (docs/decisions/0029-bridge.md). So what a cut leaves unacknowledged is published anew, in its order,
with new packet identifiers. QoS 2 is neither sent nor asked for. Time is an argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from fanlight_broker.protocols.mqtt.codec import decode, encode, encode_within
from fanlight_broker.protocols.mqtt.errors import PacketError, ProtocolError, Unencodable
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
    Subscription,
    UnsubAck,
    Unsubscribe,
)
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.reason_codes import ERROR, ReasonCode
from fanlight_broker.protocols.mqtt.version import V5

PACKET_IDENTIFIERS: Final = 65_535
SILENCE: Final = 1.5  # of the keep alive: after that the other side is taken for gone, as servers do (3.1.2.10)
BRIDGE_BIT: Final = 0x80  # of the protocol level of 3.1.1: a bridge, as mosquitto marks itself
LEVEL_AT: Final = 6  # of the level in a CONNECT's variable header, behind the protocol's name
WHERE: Final = "where"  # the User Property of SUBSCRIBE with a selector, which a Fanlight reads
PUBACK: Final = b"\x40\x02"


class LinkState(Enum):
    OPENING = auto()  # CONNECT is sent
    OPEN = auto()
    CLOSED = auto()


@dataclass(slots=True, frozen=True)
class LinkOpened:
    """CONNACK: the session goes on (`present`), or is new."""

    present: bool
    properties: Properties


@dataclass(slots=True, frozen=True)
class LinkRefused:
    """CONNACK refuses, or DISCONNECT has come. Nothing follows."""

    reason: ReasonCode
    text: str


@dataclass(slots=True, frozen=True)
class Settled:
    """What was published with this token is acknowledged; a reason of 0x80 and more refuses it."""

    token: int
    reason: ReasonCode


@dataclass(slots=True, frozen=True)
class Subscribed:
    """The answer to a SUBSCRIBE, or to an UNSUBSCRIBE of 5.0, by its token: a code for each filter."""

    token: int
    codes: tuple[ReasonCode, ...]


Event = LinkOpened | LinkRefused | Settled | Subscribed | Publish


class ClientState:
    """connect  what the session is asked for with; with a password it is forgotten once it is sent
    bridge_bit  mark it as a bridge's, in 3.1.1
    packet_max  bytes of the largest packet that is accepted; announced in 5.0 if `connect` says it
    """

    def __init__(self, connect: Connect, *, bridge_bit: bool = False, packet_max: int) -> None:
        self.version = connect.protocol_version
        self.state = LinkState.OPENING
        self.keep_alive = connect.keep_alive
        self.receive_max = PACKET_IDENTIFIERS  # messages that may be on their way to the other side
        self.identifiers = False  # are messages marked by the subscriptions that they come for?
        self._packet_max: int | None = None  # of the other side
        self._received_max = connect.properties.receive_maximum or PACKET_IDENTIFIERS
        self._decoder = PacketDecoder(packet_max)
        self._out = bytearray(encode(connect, self.version))
        if bridge_bit and self.version is not V5:
            at = self._out.index(b"\0\4MQTT") + LEVEL_AT
            self._out[at] |= BRIDGE_BIT
        self._next_id = 0
        self._sent: dict[int, int] = {}  # tokens of messages on their way, by packet identifier
        self._asked: dict[int, int] = {}  # tokens of SUBSCRIBE and UNSUBSCRIBE, the same
        self._received: set[int] = set()  # packet identifiers of messages that are to be acknowledged
        self._heard_at: float | None = None
        self._pinged = False

    # -- in -----------------------------------------------------------------------------------------------------------

    def feed(self, octets: bytes, now: float) -> None:
        """Bytes as they have come. Take all events before more is fed."""
        self._heard_at, self._pinged = now, False
        self._decoder.feed(octets)

    def next_event(self) -> Event | None:
        """What has come next; None if no whole packet is left. Raises PacketError, after which it is closed."""
        while self.state is not LinkState.CLOSED:
            try:
                raw = self._decoder.next_packet()
                if raw is None:
                    return None
                event = self._event(decode(raw.first_byte, raw.body, self.version))
            except PacketError as error:
                self._close(error.reason_code)
                raise
            if event is not None:
                return event
        return None

    def _event(self, packet: Packet) -> Event | None:
        if self.state is LinkState.OPENING:
            if not isinstance(packet, ConnAck):
                raise ProtocolError(f"{packet.type.name} before CONNACK")  # [MQTT-3.2.0-1]
            return self._opened(packet)
        match packet:
            case Publish():
                return self._arrived(packet)
            case PubAck():
                token = self._sent.pop(packet.packet_id, None)
                return None if token is None else Settled(token, packet.reason_code)
            case SubAck() | UnsubAck():
                token = self._asked.pop(packet.packet_id, None)
                return None if token is None else Subscribed(token, packet.reason_codes)
            case PingResp():
                return None
            case Disconnect() if self.version is V5:
                self.state = LinkState.CLOSED
                return LinkRefused(packet.reason_code, packet.properties.reason_string or "")
        raise ProtocolError(f"{packet.type.name} from a server")

    def _opened(self, packet: ConnAck) -> Event:
        said = packet.properties
        if packet.reason_code >= ERROR:
            self.state = LinkState.CLOSED
            return LinkRefused(packet.reason_code, said.reason_string or "")
        self.state = LinkState.OPEN
        if self.version is V5:
            self.receive_max = said.receive_maximum or PACKET_IDENTIFIERS  # 3.2.2.3.3
            self._packet_max = said.maximum_packet_size
            self.identifiers = said.subscription_identifiers_available is not False
        if said.server_keep_alive is not None:
            self.keep_alive = said.server_keep_alive  # [MQTT-3.2.2-21]
        return LinkOpened(packet.session_present, said)

    def _arrived(self, packet: Publish) -> Publish:
        if packet.qos > 1:
            raise ProtocolError("PUBLISH: QoS 2, and no subscription asked for it")  # 3.8.4
        if packet.properties.topic_alias is not None:
            raise ProtocolError("PUBLISH: a Topic Alias, and none is allowed")  # [MQTT-3.1.2-26]
        if packet.packet_id is not None:
            self._received.add(packet.packet_id)
            if len(self._received) > self._received_max:
                raise ProtocolError(  # [MQTT-3.3.4-9]
                    f"PUBLISH: more than {self._received_max} messages unacknowledged",
                    ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
                )
        return packet

    # -- out ----------------------------------------------------------------------------------------------------------

    def take(self) -> bytes:
        """What is to be sent."""
        out = bytes(self._out)
        self._out.clear()
        return out

    @property
    def room(self) -> bool:
        """May one more message of QoS 1 be sent?"""
        return len(self._sent) < min(self.receive_max, PACKET_IDENTIFIERS)

    @property
    def unsettled(self) -> int:
        """Messages on their way to the other side."""
        return len(self._sent)

    def publish(self, packet: Publish, token: int = 0) -> bool:
        """Send a message; of QoS 1 with a packet identifier of its own. False: it is too large, as a whole for the
        other side, or in a part for MQTT (a topic of more than 65,535 bytes).
        """
        if packet.qos:
            packet.packet_id = self._new_id()
        try:
            octets = encode_within(packet, self.version, self._packet_max)
        except Unencodable:
            return False
        if octets is None:
            return False
        if packet.packet_id is not None:
            self._sent[packet.packet_id] = token
        self._out += octets
        return True

    def acknowledge(self, packet_id: int) -> None:
        """PUBACK of a message that has come; once."""
        if packet_id in self._received:
            self._received.remove(packet_id)
            self._out += PUBACK + packet_id.to_bytes(2)

    def subscribe(
        self, subscriptions: Sequence[Subscription], token: int, *, identifier: int = 0, where: str | None = None
    ) -> None:
        """identifier: the Subscription Identifier, if the other side has them; 0: none. where: a selector."""
        properties = NONE
        if self.version is V5:
            properties = Properties(
                subscription_identifiers=(identifier,) if identifier and self.identifiers else (),
                user_properties=() if where is None else ((WHERE, where),),
            )
        self._ask(Subscribe(self._new_id(), tuple(subscriptions), properties), token)

    def unsubscribe(self, filters: Sequence[str], token: int) -> None:
        self._ask(Unsubscribe(self._new_id(), tuple(filters)), token)

    def _ask(self, packet: Subscribe | Unsubscribe, token: int) -> None:
        self._asked[packet.packet_id] = token
        self._out += encode(packet, self.version)

    def disconnect(self, *, expiry: int | None = None) -> None:
        """Say goodbye. expiry: seconds that the session has from now on, in 5.0; 0 ends it."""
        if self.state is LinkState.OPEN:
            if self.version is V5:
                self._out += encode(Disconnect(properties=Properties(session_expiry_interval=expiry)), self.version)
            else:
                self._out += encode(Disconnect(), self.version)
        self.state = LinkState.CLOSED

    def tick(self, now: float) -> bool:
        """Keep the connection alive; called every second or so. False if the other side is gone (3.1.2.10)."""
        if self._heard_at is None:
            self._heard_at = now
        silence = now - self._heard_at
        if not self.keep_alive or self.state is not LinkState.OPEN:
            return True
        if silence >= self.keep_alive * SILENCE:
            return False
        if silence >= self.keep_alive / 2 and not self._pinged:
            self._pinged = True
            self._out += encode(PingReq(), self.version)
        return True

    def _close(self, reason: ReasonCode) -> None:
        if self.state is LinkState.OPEN and self.version is V5:
            self._out += encode(Disconnect(reason), self.version)
        self.state = LinkState.CLOSED

    def _new_id(self) -> int:
        """A packet identifier that is not in use [MQTT-2.2.1-3]. There is one: a window is smaller by far."""
        while True:
            self._next_id = self._next_id % PACKET_IDENTIFIERS + 1
            if self._next_id not in self._sent and self._next_id not in self._asked:
                return self._next_id
