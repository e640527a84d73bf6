"""Packets to bytes: a function for each packet that writes its body, found by its class.

What a version has no place for is left out (properties and most reason codes in 3.1.1); what it cannot say at all is
Unencodable. The flags of a PUBLISH come from its fields, those of all others from the table of the fixed header.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from fanlight_broker.protocols.mqtt.data_types import (
    encode_binary_data,
    encode_byte,
    encode_string,
    encode_two_byte_integer,
)
from fanlight_broker.protocols.mqtt.errors import Unencodable
from fanlight_broker.protocols.mqtt.fixed_header import (
    DUP,
    FIRST_BYTES,
    RETAIN,
    PacketType,
    encode_variable_byte_integer,
)
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
)
from fanlight_broker.protocols.mqtt.properties import NONE, Properties, PropertyPlace, encode_properties
from fanlight_broker.protocols.mqtt.reason_codes import CARRIED_BY, ERROR, ReasonCode, return_code
from fanlight_broker.protocols.mqtt.version import PROTOCOL_NAME, V3, V5, Version

T = TypeVar("T")

_V3_CODES: Final = bytes(min(code, ERROR) for code in range(256))  # 0x80 is its only failure [MQTT-3.9.3-2]


def first_byte(packet: Packet) -> int:
    """Type and flags (2.1.3). Raises Unencodable."""
    first = FIRST_BYTES[packet.type]
    if not isinstance(packet, Publish):
        return first
    if packet.dup and not packet.qos:
        raise Unencodable("PUBLISH: a duplicate of QoS 0")  # [MQTT-3.3.1-2]
    return first | packet.dup * DUP | _qos(packet.qos) << 1 | packet.retain * RETAIN


def encode_connect(packet: Connect, version: Version) -> bytes:
    if packet.protocol_version != version:
        raise Unencodable(f"CONNECT: its version is {packet.protocol_version.name}, to be encoded in {version.name}")
    if version == V3 and packet.password is not None and packet.user_name is None:
        raise Unencodable("CONNECT: a password without a user name")  # [MQTT-3.1.2-22]
    if packet.properties.authentication_data is not None and packet.properties.authentication_method is None:
        raise Unencodable("CONNECT: Authentication Data without Authentication Method")
    will = packet.will
    flags = packet.clean_start << 1 | (packet.password is not None) << 6 | (packet.user_name is not None) << 7
    if will is not None:
        _check_topic(will.topic)
        flags |= 1 << 2 | _qos(will.qos) << 3 | will.retain << 5
    octets = [
        encode_string(PROTOCOL_NAME), bytes((version, flags)), encode_two_byte_integer(packet.keep_alive),
        _properties(packet.properties, version, PropertyPlace.CONNECT), encode_string(packet.client_id),
    ]  # fmt: skip
    if will is not None:
        octets += [
            _properties(will.properties, version, PropertyPlace.WILL), encode_string(will.topic),
            encode_binary_data(will.payload),
        ]  # fmt: skip
    if packet.user_name is not None:
        octets.append(encode_string(packet.user_name))
    if packet.password is not None:
        octets.append(encode_binary_data(packet.password))
    return b"".join(octets)


def encode_connack(packet: ConnAck, version: Version) -> bytes:
    if packet.session_present and packet.reason_code != ReasonCode.SUCCESS:
        # 5.0: [MQTT-3.2.2-6]; 3.1.1: [MQTT-3.2.2-4]
        raise Unencodable(f"CONNACK: a session is present, and the reason is {packet.reason_code.name}")
    if version == V5:
        code: int = _reason(packet, packet.reason_code)
        return bytes((packet.session_present, code)) + encode_properties(packet.properties, PropertyPlace.CONNACK)
    said = return_code(packet.reason_code)
    if said is None:
        raise Unencodable(f"CONNACK: 3.1.1 has no return code for {packet.reason_code.name}")  # [MQTT-3.2.2-6]
    return bytes((packet.session_present, said))


def encode_publish(packet: Publish, version: Version) -> bytes:
    if (packet.packet_id is None) != (not packet.qos):
        raise Unencodable(f"PUBLISH: QoS {packet.qos} with Packet Identifier {packet.packet_id}")  # [MQTT-2.2.1-2]
    if packet.topic or packet.properties.topic_alias is None:  # an alias may stand for it, in 5.0
        _check_topic(packet.topic)
    elif version == V3:
        raise Unencodable("PUBLISH: a Topic Alias in 3.1.1")
    topic = encode_string(packet.topic)
    identifier = b"" if packet.packet_id is None else _packet_id(packet.packet_id)
    return topic + identifier + _properties(packet.properties, version, PropertyPlace.PUBLISH) + packet.payload


def encode_acknowledgement(packet: Acknowledgement, version: Version) -> bytes:
    identifier = _packet_id(packet.packet_id)
    return identifier + (_reason_and_properties(packet) if version == V5 else b"")


def encode_subscribe(packet: Subscribe, version: Version) -> bytes:
    octets = [_packet_id(packet.packet_id), _properties(packet.properties, version, PropertyPlace.SUBSCRIBE)]
    for one in _some(packet.subscriptions):
        octets += [encode_string(one.filter), encode_byte(options_byte(one, version))]
    return b"".join(octets)


def options_byte(subscription: Subscription, version: Version) -> int:
    """Subscription Options (3.8.3.1)."""
    if version == V3:
        return _qos(subscription.qos)
    if not 0 <= subscription.retain_handling <= 2:
        raise Unencodable(f"SUBSCRIBE: Retain Handling {subscription.retain_handling}")
    return (
        _qos(subscription.qos) | subscription.no_local << 2 | subscription.retain_as_published << 3
        | subscription.retain_handling << 4
    )  # fmt: skip


def encode_suback(packet: SubAck, version: Version) -> bytes:
    codes = _reasons(packet)
    if version == V3:
        codes = codes.translate(_V3_CODES)
    return _packet_id(packet.packet_id) + _properties(packet.properties, version, PropertyPlace.SUBACK) + codes


def plain_suback(packet_id: int, codes: list[ReasonCode], version: Version) -> bytes:
    """All bytes of a SUBACK without properties. The codes are ones that it may carry."""
    octets = bytes(codes)
    octets = b"\0" + octets if version == V5 else octets.translate(_V3_CODES)
    first = bytes((FIRST_BYTES[PacketType.SUBACK],))
    return first + encode_variable_byte_integer(2 + len(octets)) + packet_id.to_bytes(2) + octets


def plain_unsuback(packet_id: int, codes: list[ReasonCode], version: Version) -> bytes:
    """All bytes of an UNSUBACK without properties. The codes are ones that it may carry."""
    octets = b"\0" + bytes(codes) if version == V5 else b""
    first = bytes((FIRST_BYTES[PacketType.UNSUBACK],))
    return first + encode_variable_byte_integer(2 + len(octets)) + packet_id.to_bytes(2) + octets


def encode_unsubscribe(packet: Unsubscribe, version: Version) -> bytes:
    octets = [_packet_id(packet.packet_id), _properties(packet.properties, version, PropertyPlace.UNSUBSCRIBE)]
    octets += [encode_string(filter) for filter in _some(packet.filters)]
    return b"".join(octets)


def encode_unsuback(packet: UnsubAck, version: Version) -> bytes:
    identifier = _packet_id(packet.packet_id)
    if version == V3:
        return identifier
    codes = _reasons(packet)
    return identifier + encode_properties(packet.properties, PropertyPlace.UNSUBACK) + codes


def encode_nothing(packet: PingReq | PingResp, version: Version) -> bytes:
    return b""


def encode_disconnect(packet: Disconnect, version: Version) -> bytes:
    return _reason_and_properties(packet) if version == V5 else b""


def encode_auth(packet: Auth, version: Version) -> bytes:
    if version == V3:
        raise Unencodable("AUTH: 3.1.1 does not have it")
    if packet.properties.authentication_method is None and packet != Auth():
        raise Unencodable("AUTH: no Authentication Method")  # 3.15.2.2.2
    return _reason_and_properties(packet)


def _reason_and_properties(packet: Acknowledgement | Disconnect | Auth) -> bytes:
    """In as few bytes as are allowed: nothing for success, the reason code alone where the packet may end behind it."""
    code = _reason(packet, packet.reason_code)
    if packet.properties == NONE:
        if not code:
            return b""
        if not isinstance(packet, Auth):  # 3.15.2.1 lets an AUTH leave out both, and not one
            return bytes((code,))
    return bytes((code,)) + encode_properties(packet.properties, PropertyPlace(packet.type))


def _properties(properties: Properties, version: Version, place: PropertyPlace) -> bytes:
    return encode_properties(properties, place) if version == V5 else b""


def _reason(packet: Packet, code: ReasonCode) -> int:
    if code not in CARRIED_BY[packet.type]:
        raise Unencodable(f"{packet.type.name}: reason code {code.name} is not valid in this packet")
    return code


def _reasons(packet: SubAck | UnsubAck) -> bytes:
    """All of them; there may be 100,000, and few are different."""
    for code in set(_some(packet.reason_codes)):
        _reason(packet, code)
    return bytes(packet.reason_codes)


def _packet_id(packet_id: int) -> bytes:
    if not packet_id:
        raise Unencodable("Packet Identifier 0; it is 1 to 65535")
    return encode_two_byte_integer(packet_id)


def _check_topic(topic: str) -> None:
    if not topic or "#" in topic or "+" in topic:  # [MQTT-3.3.2-2], [MQTT-4.7.3-1]
        raise Unencodable(f"a Topic Name that is empty or has a wildcard: {topic[:60]!r}")


def _qos(qos: int) -> int:
    if not 0 <= qos <= 2:
        raise Unencodable(f"QoS {qos}")
    return qos


def _some(items: tuple[T, ...]) -> tuple[T, ...]:
    if not items:
        raise Unencodable("a list that must not be empty")
    return items


ENCODERS: Final[dict[type[Packet], Callable[[Any, Version], bytes]]] = {
    Connect: encode_connect,
    ConnAck: encode_connack,
    Publish: encode_publish,
    PubAck: encode_acknowledgement,
    PubRec: encode_acknowledgement,
    PubRel: encode_acknowledgement,
    PubComp: encode_acknowledgement,
    Subscribe: encode_subscribe,
    SubAck: encode_suback,
    Unsubscribe: encode_unsubscribe,
    UnsubAck: encode_unsuback,
    PingReq: encode_nothing,
    PingResp: encode_nothing,
    Disconnect: encode_disconnect,
    Auth: encode_auth,
}
