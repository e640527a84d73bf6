"""Packets to bytes and back: the two calls that a connection needs, and what to do when a packet is too large.

The bodies are read in `decoding` and written in `encoding`; the stream is cut into packets by `framing`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from fanlight_broker.protocols.mqtt.data_types import Reader
from fanlight_broker.protocols.mqtt.decoding import DECODERS
from fanlight_broker.protocols.mqtt.encoding import ENCODERS, first_byte
from fanlight_broker.protocols.mqtt.errors import MalformedPacket, ProtocolError, Unencodable
from fanlight_broker.protocols.mqtt.fixed_header import (
    VALID_FIRST_BYTES,
    VARIABLE_BYTE_INTEGER_MAX,
    PacketType,
    encode_variable_byte_integer,
    first_byte_error,
)
from fanlight_broker.protocols.mqtt.packets import (
    Auth,
    ConnAck,
    Disconnect,
    Packet,
    PubAck,
    PubComp,
    PubRec,
    PubRel,
    SubAck,
    UnsubAck,
)
from fanlight_broker.protocols.mqtt.version import V5, Version

# The packets whose Reason String and User Properties explain and say nothing that must arrive. A PUBLISH's User
# Properties belong to its message [MQTT-3.3.2-17].
Explaining = ConnAck | PubAck | PubRec | PubRel | PubComp | SubAck | UnsubAck | Disconnect | Auth


# What else is left out of one that is too large, in this order. A client that does not know the last two may exceed
# them and be disconnected; one that takes such small packets hardly will, and could not be let in otherwise.
EXPENDABLE: Final = (
    "reason_string", "server_reference", "response_information", "topic_alias_maximum", "maximum_packet_size",
    "receive_maximum",
)


def decode(
    first: int, body: bytes, version: Version | None, user_properties_max: int | None = None, *,
    filter_suffix: bool = False,
) -> Packet:
    """A packet from its first byte and what is behind its Remaining Length.

    `version` is None before CONNECT; only a CONNECT is accepted then. `filter_suffix`: a Topic Filter of SUBSCRIBE and
    UNSUBSCRIBE ends at a `?`, and what is behind that is not looked at.
    Raises MalformedPacket, ProtocolError, UnsupportedProtocol.
    """
    if first not in VALID_FIRST_BYTES:
        raise MalformedPacket(first_byte_error(first))
    kind = PacketType(first >> 4)
    if version is None and kind is not PacketType.CONNECT:
        raise ProtocolError(f"{kind.name} before CONNECT")  # [MQTT-3.1.0-1]
    # A CONNECT's decoder does not look at the version.
    reader = Reader(body, kind.name, user_properties_max, filter_suffix=filter_suffix)
    return DECODERS[kind](reader, first, version or V5)


def encode(packet: Packet, version: Version) -> bytes:
    """All bytes of a packet. Raises Unencodable for what the specification has no bytes for."""
    first = first_byte(packet)
    body = ENCODERS[type(packet)](packet, version)
    if len(body) > VARIABLE_BYTE_INTEGER_MAX:
        raise Unencodable(f"{packet.type.name}: a body of {len(body)} bytes; at most {VARIABLE_BYTE_INTEGER_MAX}")
    return bytes((first,)) + encode_variable_byte_integer(len(body)) + body


def encode_within(packet: Packet, version: Version, maximum: int | None) -> bytes | None:
    """As `encode`, for a receiver whose Maximum Packet Size is `maximum` (None: it announced none).

    User Properties, then the Reason String, then what else a packet may do without (EXPENDABLE) is left out rather than
    to send too much (for the first two: [MQTT-3.2.2-19], [MQTT-3.2.2-20], [MQTT-3.4.2-2], ...). None if it does not fit
    even so: it must not be sent [MQTT-3.1.2-24].
    """
    octets = encode(packet, version)
    if maximum is None or len(octets) <= maximum:
        return octets
    for shorter in _shorter(packet):
        octets = encode(shorter, version)
        if len(octets) <= maximum:
            return octets
    return None


def _shorter(packet: Packet) -> Iterator[Packet]:
    if not isinstance(packet, Explaining):
        return
    if packet.properties.user_properties:
        packet = replace(packet, properties=replace(packet.properties, user_properties=()))
        yield packet
    for field in EXPENDABLE:
        if getattr(packet.properties, field) is not None:
            without: dict[str, Any] = {field: None}
            packet = replace(packet, properties=replace(packet.properties, **without))
            yield packet


def without_problem_information(packet: Packet) -> Packet:
    """As it is sent to a client whose Request Problem Information is 0 [MQTT-3.1.2-29].

    CONNACK and DISCONNECT keep their Reason String and User Properties, as does a PUBLISH.
    """
    if isinstance(packet, ConnAck | Disconnect) or not isinstance(packet, Explaining):
        return packet
    return replace(packet, properties=replace(packet.properties, reason_string=None, user_properties=()))
