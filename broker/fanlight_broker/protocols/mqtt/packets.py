"""The fifteen control packets as values, one class for both versions (chapter 3).

What only 5.0 has is empty in 3.1.1: properties, reason codes other than success, subscription options beside the QoS.
The version is not stored: a connection speaks one, and says it when it decodes and encodes. CONNECT alone brings it.

A packet is not changed once it is made. That is not checked: `frozen` takes as long again, at the start and per packet.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from fanlight_broker.protocols.mqtt.fixed_header import PacketType
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import Version


@dataclass(slots=True)
class WillFields:
    """The message a CONNECT leaves behind, to be published when its connection ends (3.1.2.5)."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = NONE


@dataclass(slots=True)
class Connect:
    type: ClassVar = PacketType.CONNECT
    client_id: str  # empty: the server is to assign one
    protocol_version: Version
    clean_start: bool = True  # Clean Session in 3.1.1
    keep_alive: int = 0  # seconds; 0: none
    will: WillFields | None = None
    user_name: str | None = None
    password: bytes | None = field(default=None, repr=False)
    properties: Properties = NONE


@dataclass(slots=True)
class ConnAck:
    type: ClassVar = PacketType.CONNACK
    session_present: bool
    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NONE


@dataclass(slots=True)
class Publish:
    type: ClassVar = PacketType.PUBLISH
    topic: str  # empty: the Topic Alias stands for it
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int | None = None  # there if QoS is 1 or 2
    properties: Properties = NONE


@dataclass(slots=True)
class PubAck:
    """The answer to a PUBLISH of QoS 1."""

    type: ClassVar = PacketType.PUBACK
    packet_id: int
    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NONE


@dataclass(slots=True)
class PubRec:
    """QoS 2, part 1: received."""

    type: ClassVar = PacketType.PUBREC
    packet_id: int
    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NONE


@dataclass(slots=True)
class PubRel:
    """QoS 2, part 2: the receiver may forget the packet identifier."""

    type: ClassVar = PacketType.PUBREL
    packet_id: int
    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NONE


@dataclass(slots=True)
class PubComp:
    """QoS 2, part 3: forgotten."""

    type: ClassVar = PacketType.PUBCOMP
    packet_id: int
    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NONE


@dataclass(slots=True)
class Subscription:
    """A Topic Filter and its Subscription Options (3.8.3.1); 3.1.1 has the QoS alone."""

    filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0  # retained messages: 0 send, 1 send if it is new, 2 do not


@dataclass(slots=True)
class Subscribe:
    type: ClassVar = PacketType.SUBSCRIBE
    packet_id: int
    subscriptions: tuple[Subscription, ...]
    properties: Properties = NONE


@dataclass(slots=True)
class SubAck:
    """A reason code for each Topic Filter, in the order of the SUBSCRIBE."""

    type: ClassVar = PacketType.SUBACK
    packet_id: int
    reason_codes: tuple[ReasonCode, ...]
    properties: Properties = NONE


@dataclass(slots=True)
class Unsubscribe:
    type: ClassVar = PacketType.UNSUBSCRIBE
    packet_id: int
    filters: tuple[str, ...]
    properties: Properties = NONE


@dataclass(slots=True)
class UnsubAck:
    """A reason code for each Topic Filter; 3.1.1 sends none."""

    type: ClassVar = PacketType.UNSUBACK
    packet_id: int
    reason_codes: tuple[ReasonCode, ...] = ()
    properties: Properties = NONE


@dataclass(slots=True)
class PingReq:
    type: ClassVar = PacketType.PINGREQ


@dataclass(slots=True)
class PingResp:
    type: ClassVar = PacketType.PINGRESP


@dataclass(slots=True)
class Disconnect:
    """In 3.1.1 sent by clients only, and without a reason."""

    type: ClassVar = PacketType.DISCONNECT
    reason_code: ReasonCode = ReasonCode.NORMAL_DISCONNECTION
    properties: Properties = NONE


@dataclass(slots=True)
class Auth:
    """A step of an enhanced authentication (4.12); 5.0 only."""

    type: ClassVar = PacketType.AUTH
    reason_code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NONE


Acknowledgement = PubAck | PubRec | PubRel | PubComp
Packet = (
    Connect | ConnAck | Publish | Acknowledgement | Subscribe | SubAck | Unsubscribe | UnsubAck
    | PingReq | PingResp | Disconnect | Auth
)  # fmt: skip
