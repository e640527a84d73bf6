"""The fixed header: the packet's type and flags in one byte, and the Remaining Length (2.1; 3.1.1: 2.2).

The flags of all packets but PUBLISH are reserved with a fixed value (table 2.2), so the first byte alone shows whether
what follows can be a packet at all.
"""

from enum import IntEnum
from typing import Final

VARIABLE_BYTE_INTEGER_MAX: Final = 268_435_455  # four bytes of seven bits (1.5.5)
FIXED_HEADER_BYTES_MAX: Final = 5


class PacketType(IntEnum):
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15  # 5.0 only


RETAIN: Final = 0b0001
QOS: Final = 0b0110
DUP: Final = 0b1000

# The flags that are reserved, where their value is not 0 (table 2.2).
RESERVED_FLAGS: Final[dict[PacketType, int]] = {
    PacketType.PUBREL: 0b0010,
    PacketType.SUBSCRIBE: 0b0010,
    PacketType.UNSUBSCRIBE: 0b0010,
}

FIRST_BYTES: Final[dict[PacketType, int]] = {
    kind: kind << 4 | RESERVED_FLAGS.get(kind, 0) for kind in PacketType
}  # of PUBLISH: with no flag set

# PUBLISH of QoS 3 is malformed [MQTT-3.3.1-4], a QoS 0 one is never a duplicate [MQTT-3.3.1-2].
_PUBLISH: Final = {
    FIRST_BYTES[PacketType.PUBLISH] | dup | qos << 1 | retain
    for dup in (0, DUP)
    for qos in (0, 1, 2)
    for retain in (0, RETAIN)
    if qos or not dup
}
VALID_FIRST_BYTES: Final = frozenset({*FIRST_BYTES.values(), *_PUBLISH})


def first_byte_error(first: int) -> str:
    """What is wrong with a first byte that is not among the valid ones, in words."""
    kind, flags = first >> 4, first & 0x0F
    if not kind:
        return f"first byte {first:#04x}: packet type 0 is forbidden"
    name = PacketType(kind).name
    if kind == PacketType.PUBLISH:
        if flags & QOS == QOS:
            return f"first byte {first:#04x}: a PUBLISH of QoS 3"
        return f"first byte {first:#04x}: a PUBLISH of QoS 0 with the DUP flag"
    return f"first byte {first:#04x}: the flags of {name} are {FIRST_BYTES[PacketType(kind)] & 15:04b}; got {flags:04b}"


def encode_variable_byte_integer(value: int) -> bytes:
    """Seven bits a byte, the lowest first, the top bit set on all but the last (1.5.5). Raises ValueError."""
    if 0 <= value < 0x80:
        return bytes((value,))
    if not 0 <= value <= VARIABLE_BYTE_INTEGER_MAX:
        raise ValueError(f"{value} is no Variable Byte Integer; at most {VARIABLE_BYTE_INTEGER_MAX}")
    octets = bytearray()
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
