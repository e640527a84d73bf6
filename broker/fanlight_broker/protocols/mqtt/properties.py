"""The properties of MQTT 5 (2.2.2) as one table: what each is called, its type, where it is legal, how often.

Decoding and encoding only look the table up. A property that is not legal in its packet is malformed (2.2.2.2), one
that is there twice and must not be, or whose value its section forbids, is a protocol error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from fanlight_broker.protocols.mqtt import data_types
from fanlight_broker.protocols.mqtt.data_types import Reader
from fanlight_broker.protocols.mqtt.errors import MalformedPacket, ProtocolError, Unencodable
from fanlight_broker.protocols.mqtt.fixed_header import PacketType
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode


class PropertyPlace(Enum):
    """Where properties stand: in a packet that has any, or with the Will Message in a CONNECT (3.1.3.2)."""

    CONNECT = PacketType.CONNECT
    CONNACK = PacketType.CONNACK
    PUBLISH = PacketType.PUBLISH
    PUBACK = PacketType.PUBACK
    PUBREC = PacketType.PUBREC
    PUBREL = PacketType.PUBREL
    PUBCOMP = PacketType.PUBCOMP
    SUBSCRIBE = PacketType.SUBSCRIBE
    SUBACK = PacketType.SUBACK
    UNSUBSCRIBE = PacketType.UNSUBSCRIBE
    UNSUBACK = PacketType.UNSUBACK
    DISCONNECT = PacketType.DISCONNECT
    AUTH = PacketType.AUTH
    WILL = "will"


@dataclass(frozen=True, slots=True, repr=False)
class Properties:
    """The properties of a packet. None and () are absence, which means the section's default."""

    payload_format_indicator: int | None = None  # 1: the payload is UTF-8
    message_expiry_interval: int | None = None  # seconds
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    subscription_identifiers: tuple[int, ...] = ()
    session_expiry_interval: int | None = None  # seconds; 0xFFFFFFFF: never
    assigned_client_identifier: str | None = None
    server_keep_alive: int | None = None  # seconds
    authentication_method: str | None = None
    authentication_data: bytes | None = None
    request_problem_information: bool | None = None
    will_delay_interval: int | None = None  # seconds
    request_response_information: bool | None = None
    response_information: str | None = None
    server_reference: str | None = None
    reason_string: str | None = None
    receive_maximum: int | None = None  # messages of QoS 1 and 2
    topic_alias_maximum: int | None = None
    topic_alias: int | None = None
    maximum_qos: int | None = None
    retain_available: bool | None = None
    user_properties: tuple[tuple[str, str], ...] = ()  # in their order; a name may come twice
    maximum_packet_size: int | None = None  # bytes
    wildcard_subscription_available: bool | None = None
    subscription_identifiers_available: bool | None = None
    shared_subscription_available: bool | None = None

    def __repr__(self) -> str:
        there = ((row.name, getattr(self, row.name)) for row in PROPERTIES)
        return f"Properties({', '.join(f'{name}={value!r}' for name, value in there if value not in (None, ()))})"


NONE: Final = Properties()  # most packets have none: this one is shared


class DataType(NamedTuple):
    """How a type of section 1.5 is read and written."""

    read: Callable[[Reader, str], Any]
    write: Callable[[Any], bytes]


BYTE: Final = DataType(Reader.byte, data_types.encode_byte)
FLAG: Final = DataType(Reader.flag, data_types.encode_byte)  # a Byte of 0 or 1, as a bool
TWO_BYTES: Final = DataType(Reader.two_byte_integer, data_types.encode_two_byte_integer)
FOUR_BYTES: Final = DataType(Reader.four_byte_integer, data_types.encode_four_byte_integer)
VARIABLE: Final = DataType(Reader.variable_byte_integer, data_types.encode_variable)
BINARY: Final = DataType(Reader.binary_data, data_types.encode_binary_data)
STRING: Final = DataType(Reader.string, data_types.encode_string)
PAIR: Final = DataType(Reader.string_pair, data_types.encode_string_pair)


class Property(NamedTuple):
    """A row of table 2-4."""

    identifier: int
    name: str  # of the attribute in Properties
    type: DataType
    places: frozenset[PropertyPlace]
    repeatable: frozenset[PropertyPlace] = frozenset()  # where it may come more than once: its attribute is a tuple
    least: int = 0
    most: int | None = None
    reason_code: ReasonCode = ReasonCode.PROTOCOL_ERROR  # of a value outside least..most

    def wrong(self, value: Any) -> str | None:
        """What a value is that its section forbids; None if it is allowed."""
        if self.least <= value and (self.most is None or value <= self.most):
            return None
        bounds = f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"
        return f"{words(self.name)} is {value}; it is {bounds}"


def words(name: str) -> str:
    """A property as the specification writes it."""
    return name.replace("_", " ")


P = PropertyPlace
_MESSAGE: Final = frozenset({P.PUBLISH, P.WILL})
_SIDES: Final = frozenset({P.CONNECT, P.CONNACK})
_CONNACK: Final = frozenset({P.CONNACK})
_ANSWERS: Final = frozenset({
    P.CONNACK, P.PUBACK, P.PUBREC, P.PUBREL, P.PUBCOMP, P.SUBACK, P.UNSUBACK, P.DISCONNECT, P.AUTH
})  # fmt: skip

PROPERTIES: Final = (
    Property(0x01, "payload_format_indicator", BYTE, _MESSAGE, most=1),
    Property(0x02, "message_expiry_interval", FOUR_BYTES, _MESSAGE),
    Property(0x03, "content_type", STRING, _MESSAGE),
    Property(0x08, "response_topic", STRING, _MESSAGE),
    Property(0x09, "correlation_data", BINARY, _MESSAGE),
    Property(0x0B, "subscription_identifiers", VARIABLE, frozenset({P.PUBLISH, P.SUBSCRIBE}), frozenset({P.PUBLISH}),
             least=1),
    Property(0x11, "session_expiry_interval", FOUR_BYTES, _SIDES | {P.DISCONNECT}),
    Property(0x12, "assigned_client_identifier", STRING, _CONNACK),
    Property(0x13, "server_keep_alive", TWO_BYTES, _CONNACK),
    Property(0x15, "authentication_method", STRING, _SIDES | {P.AUTH}),
    Property(0x16, "authentication_data", BINARY, _SIDES | {P.AUTH}),
    Property(0x17, "request_problem_information", FLAG, frozenset({P.CONNECT})),
    Property(0x18, "will_delay_interval", FOUR_BYTES, frozenset({P.WILL})),
    Property(0x19, "request_response_information", FLAG, frozenset({P.CONNECT})),
    Property(0x1A, "response_information", STRING, _CONNACK),
    Property(0x1C, "server_reference", STRING, frozenset({P.CONNACK, P.DISCONNECT})),
    Property(0x1F, "reason_string", STRING, _ANSWERS),
    Property(0x21, "receive_maximum", TWO_BYTES, _SIDES, least=1),
    Property(0x22, "topic_alias_maximum", TWO_BYTES, _SIDES),
    Property(0x23, "topic_alias", TWO_BYTES, frozenset({P.PUBLISH}), least=1,
             reason_code=ReasonCode.TOPIC_ALIAS_INVALID),
    Property(0x24, "maximum_qos", BYTE, _CONNACK, most=1),
    Property(0x25, "retain_available", FLAG, _CONNACK),
    Property(0x26, "user_properties", PAIR, frozenset(PropertyPlace), frozenset(PropertyPlace)),
    Property(0x27, "maximum_packet_size", FOUR_BYTES, _SIDES, least=1),
    Property(0x28, "wildcard_subscription_available", FLAG, _CONNACK),
    Property(0x29, "subscription_identifiers_available", FLAG, _CONNACK),
    Property(0x2A, "shared_subscription_available", FLAG, _CONNACK),
)  # fmt: skip

# The table by place and identifier: what a decoder asks.
LEGAL: Final[dict[PropertyPlace, dict[int, Property]]] = {
    place: {row.identifier: row for row in PROPERTIES if place in row.places} for place in PropertyPlace
}
_BY_IDENTIFIER: Final = {row.identifier: row for row in PROPERTIES}
_LISTS: Final = frozenset({"subscription_identifiers", "user_properties"})


def decode_properties(reader: Reader, place: PropertyPlace) -> Properties:
    """The Property Length and the properties behind it. Raises MalformedPacket, ProtocolError."""
    length = reader.variable_byte_integer("Property Length")
    if not length:
        return NONE
    part = reader.part(length, "the properties")
    legal = LEGAL[place]
    found: dict[str, Any] = {}
    most = reader.user_properties_max
    while part:
        identifier = part.variable_byte_integer("a property's identifier")
        row = legal.get(identifier)
        if row is None:
            raise MalformedPacket(_illegal(identifier, place, reader.packet))
        name = row.name
        value = row.type.read(part, name)
        if (row.least or row.most is not None) and (wrong := row.wrong(value)):
            raise ProtocolError(f"{reader.packet}: {wrong}", row.reason_code)
        if name not in found:
            found[name] = [value] if name in _LISTS else value
        elif place in row.repeatable:
            found[name].append(value)
            if most is not None and len(found[name]) > most:
                raise ProtocolError(
                    f"{reader.packet}: more than {most} User Properties (mqtt_user_properties_max)",
                    ReasonCode.QUOTA_EXCEEDED,
                )
        else:
            raise ProtocolError(f"{reader.packet}: {words(name)} more than once")
    for name in _LISTS & found.keys():
        found[name] = tuple(found[name])
    return Properties(**found)


def _illegal(identifier: int, place: PropertyPlace, packet: str) -> str:
    row = _BY_IDENTIFIER.get(identifier)
    what = f"{identifier:#04x}" + (f" ({words(row.name)})" if row else ", which is none")
    return f"{packet}: property {what}; legal {'in a Will' if place is P.WILL else 'here'}: " + ", ".join(
        f"{known:#04x}" for known in LEGAL[place]
    )


def encode_properties(properties: Properties, place: PropertyPlace) -> bytes:
    """The Property Length and the properties, in the order of the table. Raises Unencodable."""
    if properties is NONE:
        return b"\0"
    octets = bytearray()
    for row in PROPERTIES:
        value = getattr(properties, row.name)
        if value is None or value == ():
            continue
        if place not in row.places:
            raise Unencodable(f"{words(row.name)} is no property of {place.name}")
        values = value if row.name in _LISTS else (value,)
        if len(values) > 1 and place not in row.repeatable:
            raise Unencodable(f"{len(values)} {words(row.name)} in {place.name}, which may have one")
        for one in values:
            if (row.least or row.most is not None) and (wrong := row.wrong(one)):
                raise Unencodable(f"{place.name}: {wrong}")
            octets.append(row.identifier)
            octets += row.type.write(one)
    return data_types.encode_variable(len(octets)) + octets
