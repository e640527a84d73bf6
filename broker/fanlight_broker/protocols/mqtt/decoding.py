"""Bodies to packets: a function for each packet, found by its type.

Each follows its section from the first field to the last and leaves nothing unread. What is checked here needs nothing
but the packet itself; what needs the connection's state (the order of packets, aliases, quotas) is the connection's.
"""

from collections.abc import Callable
from typing import Final

from fanlight_broker.protocols.mqtt.data_types import Reader
from fanlight_broker.protocols.mqtt.errors import MalformedPacket, PacketError, ProtocolError, UnsupportedProtocol
from fanlight_broker.protocols.mqtt.fixed_header import DUP, RETAIN, PacketType
from fanlight_broker.protocols.mqtt.packets import (
    Acknowledgement,
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    Subscription,
    UnsubAck,
    Unsubscribe,
    WillFields,
)
from fanlight_broker.protocols.mqtt.properties import NONE, Properties, PropertyPlace, decode_properties
from fanlight_broker.protocols.mqtt.reason_codes import (
    CARRIED_BY,
    REASONS_OF_RETURN_CODES,
    ReasonCode,
)
from fanlight_broker.protocols.mqtt.topics import SharedFilter, check_topic_filter, check_topic_name
from fanlight_broker.protocols.mqtt.version import PROTOCOL_NAME, PROTOCOL_NAME_3_1, V3, V5, Version
from matchcore.grammar import split_suffix

# Bits of the Connect Flags (3.1.2.3).
_RESERVED: Final = 0b0000_0001
_CLEAN_START: Final = 0b0000_0010
_WILL: Final = 0b0000_0100
_WILL_QOS: Final = 0b0001_1000
_WILL_RETAIN: Final = 0b0010_0000
_PASSWORD: Final = 0b0100_0000
_USER_NAME: Final = 0b1000_0000

# Bits of the Subscription Options (3.8.3.1); 3.1.1 has the QoS alone.
_QOS: Final = 0b0000_0011
_NO_LOCAL: Final = 0b0000_0100
_RETAIN_AS_PUBLISHED: Final = 0b0000_1000
_RETAIN_HANDLING: Final = 0b0011_0000
_OPTIONS_RESERVED: Final = {V3: 0b1111_1100, V5: 0b1100_0000}

_BRIDGE: Final = 0x80  # set in the level by bridges that identify themselves; they try again without it


def decode_connect(reader: Reader, first: int, version: Version | None) -> Connect:
    """3.1. The version is what it says itself. Raises UnsupportedProtocol as soon as that is known."""
    version = _decode_protocol(reader)
    flags = reader.byte("Connect Flags")
    if flags & _RESERVED:
        raise MalformedPacket(f"CONNECT: the reserved Connect Flag is set: {flags:08b}")  # [MQTT-3.1.2-3]
    will_qos = (flags & _WILL_QOS) >> 3
    if will_qos == 3:
        raise MalformedPacket("CONNECT: Will QoS 3")  # 5.0: [MQTT-3.1.2-12]; 3.1.1: [MQTT-3.1.2-14]
    if not flags & _WILL and flags & (_WILL_QOS | _WILL_RETAIN):  # 5.0: [MQTT-3.1.2-11], [MQTT-3.1.2-13]
        raise MalformedPacket(f"CONNECT: Will QoS or Will Retain without Will Flag: {flags:08b}")
    if version == V3 and flags & _PASSWORD and not flags & _USER_NAME:  # [MQTT-3.1.2-22]; 5.0 allows it
        raise MalformedPacket(f"CONNECT: Password Flag without User Name Flag: {flags:08b}")
    keep_alive = reader.two_byte_integer("Keep Alive")
    properties = _properties(reader, version, PropertyPlace.CONNECT)
    if properties.authentication_data is not None and properties.authentication_method is None:
        raise ProtocolError("CONNECT: Authentication Data without Authentication Method")  # 3.1.2.11.10
    client_id = reader.string("Client Identifier")
    will = _decode_will(reader, version, will_qos, bool(flags & _WILL_RETAIN)) if flags & _WILL else None
    connect = Connect(
        client_id=client_id,
        protocol_version=version,
        clean_start=bool(flags & _CLEAN_START),
        keep_alive=keep_alive,
        will=will,
        user_name=reader.string("User Name") if flags & _USER_NAME else None,
        password=reader.binary_data("Password") if flags & _PASSWORD else None,
        properties=properties,
    )
    reader.finish()
    return connect


def _decode_protocol(reader: Reader) -> Version:
    """Protocol Name and Protocol Level (3.1.2.1, 3.1.2.2)."""
    name = reader.string("Protocol Name")
    level = reader.byte("Protocol Level")
    if name == PROTOCOL_NAME:
        if level == V5:
            return V5
        if level == V3:
            return V3
        # Who speaks a later version understands 5.0's CONNACK, who speaks an earlier one 3.1.1's.
        raise UnsupportedProtocol(name, level, V5 if V5 < level < _BRIDGE else V3)
    raise UnsupportedProtocol(name, level, V3 if name == PROTOCOL_NAME_3_1 else None)


def maximum_packet_size_of(body: bytes) -> int | None:
    """The Maximum Packet Size of a CONNECT that cannot be decoded, if its Properties can."""
    reader = Reader(body, PacketType.CONNECT.name)
    try:
        version = _decode_protocol(reader)
        reader.byte("Connect Flags")
        reader.two_byte_integer("Keep Alive")
        return _properties(reader, version, PropertyPlace.CONNECT).maximum_packet_size
    except PacketError:
        return None


def _decode_will(reader: Reader, version: Version, qos: int, retain: bool) -> WillFields:
    properties = _properties(reader, version, PropertyPlace.WILL)
    if properties.response_topic is not None:
        check_topic_name(properties.response_topic, "CONNECT: the will's Response Topic")
    topic = reader.string("Will Topic")
    check_topic_name(topic, "CONNECT: Will Topic")
    return WillFields(topic, reader.binary_data("Will Payload"), qos, retain, properties)


def decode_connack(reader: Reader, first: int, version: Version) -> ConnAck:
    """3.2."""
    flags = reader.byte("Connect Acknowledge Flags")
    if flags > 1:
        raise MalformedPacket(f"CONNACK: reserved Connect Acknowledge Flags are set: {flags:08b}")  # [MQTT-3.2.2-1]
    code = reader.byte("reason code")
    if version == V5:
        reason, properties = _reason(code, PacketType.CONNACK), decode_properties(reader, PropertyPlace.CONNACK)
    elif code in REASONS_OF_RETURN_CODES:
        reason, properties = REASONS_OF_RETURN_CODES[code], NONE
    else:
        raise ProtocolError(f"CONNACK: return code {code}; those above 5 are reserved")
    if flags and reason != ReasonCode.SUCCESS:  # 5.0: [MQTT-3.2.2-6]; 3.1.1: [MQTT-3.2.2-4]
        raise ProtocolError(f"CONNACK: a session is present, and the reason is {reason.name}")
    reader.finish()
    return ConnAck(bool(flags), reason, properties)


def decode_publish(reader: Reader, first: int, version: Version) -> Publish:
    """3.3. The flags are sound: the fixed header has been checked."""
    qos = first >> 1 & 3
    topic = reader.string("Topic Name")
    packet_id = _packet_id(reader) if qos else None
    properties = NONE
    if version == V5:
        properties = decode_properties(reader, PropertyPlace.PUBLISH)
        if properties.response_topic is not None:
            check_topic_name(properties.response_topic, "PUBLISH: Response Topic")  # [MQTT-3.3.2-14]
    if not topic and properties.topic_alias is not None:
        pass  # the alias says which (3.3.2.3.4)
    elif not topic and version == V5:
        raise ProtocolError("PUBLISH: neither a Topic Name nor a Topic Alias")  # 3.3.2.1
    else:
        check_topic_name(topic, "PUBLISH: Topic Name")
    return Publish(topic, reader.rest(), qos, bool(first & RETAIN), bool(first & DUP), packet_id, properties)


def _acknowledgement(packet: type[Acknowledgement]) -> Callable[[Reader, int, Version], Acknowledgement]:
    """The decoder of one of the four that are alike (3.4 to 3.7)."""
    kind: PacketType = packet.type
    place = PropertyPlace(kind)

    def decode(reader: Reader, first: int, version: Version) -> Acknowledgement:
        packet_id = _packet_id(reader)
        if version == V3 or not reader:
            reader.finish()
            return packet(packet_id)
        reason = _reason(reader.byte("reason code"), kind)
        # The Property Length may be left out as well (3.4.2.2.1).
        properties = decode_properties(reader, place) if reader else NONE
        reader.finish()
        return packet(packet_id, reason, properties)

    return decode


def decode_subscribe(reader: Reader, first: int, version: Version) -> Subscribe:
    """3.8."""
    packet_id = _packet_id(reader)
    properties = _properties(reader, version, PropertyPlace.SUBSCRIBE)
    subscriptions = []
    while reader:
        filter = reader.string("Topic Filter")
        options = reader.byte("Subscription Options")
        subscriptions.append(_subscription(reader, filter, options, version))
    if not subscriptions:
        raise ProtocolError("SUBSCRIBE: no Topic Filter")  # 5.0: [MQTT-3.8.3-2]; 3.1.1: [MQTT-3.8.3-3]
    return Subscribe(packet_id, tuple(subscriptions), properties)


def _subscription(reader: Reader, filter: str, options: int, version: Version) -> Subscription:
    shared = _checked(reader, filter)
    if options & _OPTIONS_RESERVED[version]:
        raise MalformedPacket(f"SUBSCRIBE: reserved Subscription Options are set: {options:08b}")
    qos = options & _QOS
    if qos == 3:
        if version == V3:
            raise MalformedPacket("SUBSCRIBE: a requested QoS of 3")  # [MQTT-3.8.3-4]
        raise ProtocolError("SUBSCRIBE: a Maximum QoS of 3")  # 3.8.3.1
    retain_handling = (options & _RETAIN_HANDLING) >> 4
    if retain_handling == 3:
        raise ProtocolError("SUBSCRIBE: Retain Handling 3")  # 3.8.3.1
    no_local = bool(options & _NO_LOCAL)
    if no_local and shared:
        raise ProtocolError(f"SUBSCRIBE: No Local on a Shared Subscription, {filter[:60]!r}")  # [MQTT-3.8.3-4]
    return Subscription(filter, qos, no_local, bool(options & _RETAIN_AS_PUBLISHED), retain_handling)


def _checked(reader: Reader, filter: str) -> SharedFilter | None:
    topic_filter = split_suffix(filter)[0] if reader.filter_suffix else filter
    return check_topic_filter(topic_filter, f"{reader.packet}: Topic Filter")


def decode_suback(reader: Reader, first: int, version: Version) -> SubAck:
    """3.9."""
    packet_id = _packet_id(reader)
    properties = _properties(reader, version, PropertyPlace.SUBACK)
    codes = tuple(_reason(code, PacketType.SUBACK) for code in reader.rest())
    if not codes:
        raise ProtocolError("SUBACK: no reason code")
    if version == V3:
        for code in codes:
            if code not in (0, 1, 2, ReasonCode.UNSPECIFIED_ERROR):  # [MQTT-3.9.3-2]
                raise ProtocolError(f"SUBACK: return code {code:#04x}; there are 0, 1, 2 and 0x80")
    return SubAck(packet_id, codes, properties)


def decode_unsubscribe(reader: Reader, first: int, version: Version) -> Unsubscribe:
    """3.10."""
    packet_id = _packet_id(reader)
    properties = _properties(reader, version, PropertyPlace.UNSUBSCRIBE)
    filters = []
    while reader:
        filter = reader.string("Topic Filter")
        _checked(reader, filter)
        filters.append(filter)
    if not filters:
        raise ProtocolError("UNSUBSCRIBE: no Topic Filter")  # [MQTT-3.10.3-2]
    return Unsubscribe(packet_id, tuple(filters), properties)


def decode_unsuback(reader: Reader, first: int, version: Version) -> UnsubAck:
    """3.11."""
    packet_id = _packet_id(reader)
    if version == V3:
        reader.finish()
        return UnsubAck(packet_id)
    properties = decode_properties(reader, PropertyPlace.UNSUBACK)
    codes = tuple(_reason(code, PacketType.UNSUBACK) for code in reader.rest())
    if not codes:
        raise ProtocolError("UNSUBACK: no reason code")
    return UnsubAck(packet_id, codes, properties)


def decode_pingreq(reader: Reader, first: int, version: Version) -> PingReq:
    """3.12."""
    reader.finish()
    return PingReq()


def decode_pingresp(reader: Reader, first: int, version: Version) -> PingResp:
    """3.13."""
    reader.finish()
    return PingResp()


def decode_disconnect(reader: Reader, first: int, version: Version) -> Disconnect:
    """3.14. Without a reason code it is a normal disconnection, with one alone there are no properties."""
    if version == V3 or not reader:
        reader.finish()
        return Disconnect()
    reason = _reason(reader.byte("reason code"), PacketType.DISCONNECT)
    properties = decode_properties(reader, PropertyPlace.DISCONNECT) if reader else NONE
    reader.finish()
    return Disconnect(reason, properties)


def decode_auth(reader: Reader, first: int, version: Version) -> Auth:
    """3.15. Empty it is a success; anything else must name its Authentication Method."""
    if version == V3:
        raise MalformedPacket("packet type 15 is forbidden in 3.1.1; it is AUTH in 5.0")
    if not reader:
        return Auth()
    reason = _reason(reader.byte("reason code"), PacketType.AUTH)
    properties = decode_properties(reader, PropertyPlace.AUTH)
    reader.finish()
    if properties.authentication_method is None:
        raise ProtocolError("AUTH: no Authentication Method")  # 3.15.2.2.2
    return Auth(reason, properties)


def _properties(reader: Reader, version: Version, place: PropertyPlace) -> Properties:
    return decode_properties(reader, place) if version == V5 else NONE


def _packet_id(reader: Reader) -> int:
    packet_id = reader.two_byte_integer("Packet Identifier")
    if not packet_id:  # 5.0: [MQTT-2.2.1-3]; 3.1.1: [MQTT-2.3.1-1]
        raise ProtocolError(f"{reader.packet}: Packet Identifier 0; it is 1 to 65535")
    return packet_id


def _reason(code: int, kind: PacketType) -> ReasonCode:
    """Raises ProtocolError for an unknown reason code, or one that this packet must not have (2.4)."""
    if code not in CARRIED_BY[kind]:
        raise ProtocolError(f"{kind.name}: reason code {code:#04x} is not valid in this packet")
    return ReasonCode(code)


DECODERS: Final[dict[PacketType, Callable[[Reader, int, Version], Packet]]] = {
    PacketType.CONNECT: decode_connect,
    PacketType.CONNACK: decode_connack,
    PacketType.PUBLISH: decode_publish,
    PacketType.PUBACK: _acknowledgement(PubAck),
    PacketType.PUBREC: _acknowledgement(PubRec),
    PacketType.PUBREL: _acknowledgement(PubRel),
    PacketType.PUBCOMP: _acknowledgement(PubComp),
    PacketType.SUBSCRIBE: decode_subscribe,
    PacketType.SUBACK: decode_suback,
    PacketType.UNSUBSCRIBE: decode_unsubscribe,
    PacketType.UNSUBACK: decode_unsuback,
    PacketType.PINGREQ: decode_pingreq,
    PacketType.PINGRESP: decode_pingresp,
    PacketType.DISCONNECT: decode_disconnect,
    PacketType.AUTH: decode_auth,
}
