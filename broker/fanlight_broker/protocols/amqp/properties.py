"""The content header (2.3.5.2): class, weight, size of the body, and the properties that are there.

    | class | weight 0 | body size (8) | flags | property | property ...        flags: a bit for each that follows
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from fanlight_broker.protocols.amqp.data_types import UINT16, UINT64, OctetReader, short_string
from fanlight_broker.protocols.amqp.errors import frame_error
from fanlight_broker.protocols.amqp.field_table import encode_table, read_table

BASIC_CLASS: Final = 60
CONTINUED: Final = 0x0001  # another word of flags follows: of properties that nobody has defined
UNUSED: Final = 0x0002
PERSISTENT: Final = 2  # delivery mode
EXPIRATION_MAX: Final = 2**32 - 1  # milliseconds


@dataclass(frozen=True, slots=True)
class BasicProperties:
    """Of the class basic (1.8). None: it is not there."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Mapping[str, Any] | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


OCTETS: Final = frozenset({"delivery_mode", "priority"})
NAMES: Final = tuple((each.name, 1 << (15 - at)) for at, each in enumerate(fields(BasicProperties)))
NO_PROPERTIES: Final = BasicProperties()


class ContentHeader(NamedTuple):
    class_id: int
    body_size: int
    encoded: bytes  # flags and properties
    properties: BasicProperties


def read_header(payload: bytes) -> ContentHeader:
    """Raises AmqpError."""
    reader = OctetReader(payload, "a content header")
    class_id, weight, body_size = reader.short(), reader.short(), reader.longlong()
    if weight:
        raise frame_error(f"a content header of the weight {weight}, not 0")
    return ContentHeader(class_id, body_size, payload[reader.at :], read_properties(reader))


def decode_properties(encoded: bytes) -> BasicProperties:
    """Of flags and properties. Raises AmqpError."""
    return read_properties(OctetReader(encoded, "a content header"))


def read_properties(reader: OctetReader) -> BasicProperties:
    """To the end of what the reader has. Raises AmqpError."""
    flags = reader.short()
    if flags & (CONTINUED | UNUSED):
        raise frame_error(f"a content header with the flags {flags:#06x}: there are no such properties")
    if not flags:
        reader.check_end()
        return NO_PROPERTIES
    found: dict[str, Any] = {}
    for name, bit in NAMES:
        if not flags & bit:
            continue
        if name == "headers":
            found[name] = read_table(reader)
        elif name in OCTETS:
            found[name] = reader.octet()
        elif name == "timestamp":
            found[name] = reader.longlong()
        else:
            found[name] = reader.short_string()
    reader.check_end()
    return BasicProperties(**found)


def raw_properties(encoded: bytes) -> dict[str, bytes]:
    """Each property that is there, as it is written: what is not changed keeps its octets. Raises AmqpError."""
    reader = OctetReader(encoded, "a content header")
    flags = reader.short()
    found: dict[str, bytes] = {}
    for name, bit in NAMES:
        if not flags & bit:
            continue
        begin = reader.at
        if name == "headers":
            reader.long_string()
        elif name in OCTETS:
            reader.octet()
        elif name == "timestamp":
            reader.longlong()
        else:
            reader.short_string()
        found[name] = encoded[begin : reader.at]
    return found


def joined_properties(properties: Mapping[str, bytes]) -> bytes:
    """Flags and properties, of those as they are written."""
    flags = sum(bit for name, bit in NAMES if name in properties)
    return UINT16.pack(flags) + b"".join(properties[name] for name, _ in NAMES if name in properties)


def encode_properties(properties: BasicProperties) -> bytes:
    """Flags and properties. Raises ValueError for what they cannot have."""
    flags, octets = 0, []
    for name, bit in NAMES:
        value = getattr(properties, name)
        if value is None:
            continue
        flags |= bit
        if name == "headers":
            octets.append(encode_table(value))
        elif name in OCTETS:
            octets.append(bytes((value,)))
        elif name == "timestamp":
            octets.append(UINT64.pack(value))
        else:
            octets.append(short_string(value))
    return UINT16.pack(flags) + b"".join(octets)


def encode_header(body_size: int, encoded: bytes, class_id: int = BASIC_CLASS) -> bytes:
    return UINT16.pack(class_id) + b"\0\0" + UINT64.pack(body_size) + encoded
