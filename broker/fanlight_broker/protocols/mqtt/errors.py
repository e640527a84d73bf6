"""Errors in packets: four kinds, each with the MQTT 5 reason code of its refusal.

3.1.1 has no reason codes outside CONNACK: there the same errors close the connection without a packet (4.8).
"""

from typing import Any

from fanlight_broker.core import errors
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import Version


class PacketError(errors.ProtocolViolation):
    """A packet that is refused; the connection it came on is closed (4.13)."""

    reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR

    def __init__(self, text: str, reason_code: ReasonCode | None = None, **details: Any) -> None:
        super().__init__(text, **details)
        if reason_code is not None:
            self.reason_code = reason_code


class MalformedPacket(PacketError):
    """It cannot be parsed (1.2)."""

    reason_code = ReasonCode.MALFORMED_PACKET


class ProtocolError(PacketError):
    """It can be parsed, but its contents are not allowed, or not allowed now (1.2)."""

    reason_code = ReasonCode.PROTOCOL_ERROR


class PacketTooLarge(PacketError):
    """More bytes than the receiver announced as its Maximum Packet Size, the fixed header included (3.1.2.11.4)."""

    reason_code = ReasonCode.PACKET_TOO_LARGE

    def __init__(self, size: int, maximum: int) -> None:
        super().__init__(f"a packet of {size} bytes; at most {maximum} are accepted", size=size, maximum=maximum)


class UnsupportedProtocol(PacketError):
    """A CONNECT that asks for another protocol, or a version that is not spoken here (3.1.2.1, 3.1.2.2).

    `answer_in` is the version in which a CONNACK would be understood; None if the name is not even MQTT's.
    """

    reason_code = ReasonCode.UNSUPPORTED_PROTOCOL_VERSION

    def __init__(self, name: str, level: int, answer_in: Version | None) -> None:
        super().__init__(
            f"protocol {name[:32]!r} level {level}; 'MQTT' levels 4 (3.1.1) and 5 (5.0) are spoken here",
            name=name,
            level=level,
        )
        self.answer_in = answer_in


class Unencodable(ValueError):
    """A packet of the broker's own that the specification has no encoding for. The caller decides what to do."""
