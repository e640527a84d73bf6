"""Field tables and arrays (4.2.5.5), with the types that RabbitMQ has in place of some of the specification's.

    t bool      b int8    B uint8    s int16   u uint16   I int32   i uint32   l L int64   f float   d double
    D decimal   S text    x octets   T seconds since 1970            F table    A array     V void

Python has one value for several of them: an integer is written as `I`, or `l` if it is larger, a float as `d`. An `S`
that is no UTF-8 is bytes, as an `x` is. A message that goes from AMQP to AMQP keeps its octets, and so its types.
"""

import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from fanlight_broker.protocols.amqp.data_types import UINT32, UINT64, OctetReader, long_string, short_string
from fanlight_broker.protocols.amqp.errors import syntax_error
from fanlight_broker.protocols.amqp.table_values import raw, read

DEPTH_MAX: Final = 16  # of tables and arrays in each other
DECIMAL_SCALE_MAX: Final = 255
INT32: Final = range(-(2**31), 2**31)
INT64: Final = range(-(2**63), 2**63)
NUMBERS: Final = {
    letter: struct.Struct(">" + code)
    for letter, code in {
        b"b": "b", b"B": "B", b"s": "h", b"u": "H", b"I": "i", b"i": "I", b"l": "q", b"L": "q", b"f": "f", b"d": "d",
    }.items()
}

FieldTable = dict[str, Any]


class Timestamp(int):
    """Seconds since 1970, the type T. As an integer otherwise."""


class LongInteger(int):
    """Is written as `l`, however small it is."""


def read_table(reader: OctetReader, depth: int = 1) -> FieldTable:
    """A table with its length in front. A name that comes twice has its last value. Raises AmqpError."""
    compiled = read(reader.octets, reader.at, reader.end, depth, Timestamp)
    if compiled is not None:
        found, reader.at = compiled
        return found
    return read_entries(reader, depth)


def read_entries(reader: OctetReader, depth: int = 1) -> FieldTable:
    """The same in Python, for what is malformed: the error says what is."""
    inside = nested(reader, depth)
    found: FieldTable = {}
    while inside.left:
        name = inside.short_string()
        found[name] = read_value(inside, depth)
    return found


def raw_entries(encoded: bytes) -> dict[str, bytes]:
    """The entries of a table with its length in front: of each name the value as it is written, its letter in front.

    So one entry can be changed, and the others keep their types. Raises AmqpError.
    """
    found = raw(encoded)
    if found is None:
        read_entries(OctetReader(encoded, "a table"))
        raise AssertionError("a table that can be read, and cannot")
    return found


def joined_entries(entries: Mapping[str, bytes]) -> bytes:
    """The table of these entries, with its length in front."""
    return long_string(b"".join(short_string(name) + value for name, value in entries.items()))


def read_array(reader: OctetReader, depth: int) -> list[Any]:
    inside = nested(reader, depth)
    found = []
    while inside.left:
        found.append(read_value(inside, depth))
    return found


def nested(reader: OctetReader, depth: int) -> OctetReader:
    """A reader of what stands behind a length, which the outer one has passed."""
    if depth > DEPTH_MAX:
        raise syntax_error(f"{reader.what} has tables nested more than {DEPTH_MAX} deep")
    size = reader.long()
    if size > reader.left:
        raise syntax_error(f"{reader.what} has a table of {size} bytes, of which {reader.left} are there")
    inside = OctetReader(reader.octets, reader.what, reader.at, reader.at + size)
    reader.at += size
    return inside


def read_value(reader: OctetReader, depth: int) -> Any:
    """One value with its letter in front."""
    letter = reader.take(1)
    layout = NUMBERS.get(letter)
    if layout is not None:
        return reader.number(layout)
    match letter:
        case b"S":
            return text_or_octets(reader.long_string())
        case b"t":
            return reader.octet() != 0
        case b"F":
            return read_table(reader, depth + 1)
        case b"A":
            return read_array(reader, depth + 1)
        case b"V":
            return None
        case b"T":
            return Timestamp(reader.longlong())
        case b"x":
            return reader.long_string()
        case b"D":
            scale = reader.octet()
            return Decimal(reader.long()).scaleb(-scale)
        case _:
            raise syntax_error(f"{reader.what} has a value of the unknown type {letter!r}")


def text_or_octets(octets: bytes) -> str | bytes:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets


def encode_table(table: Mapping[str, Any]) -> bytes:
    """With its length in front. Raises ValueError for what a table cannot have."""
    return long_string(b"".join(short_string(name) + encode_value(value) for name, value in table.items()))


def encode_value(value: Any) -> bytes:
    """With its letter in front. Raises ValueError."""
    match value:
        case bool():
            return b"t\x01" if value else b"t\x00"
        case Timestamp():
            return b"T" + UINT64.pack(value)
        case LongInteger():
            return b"l" + NUMBERS[b"l"].pack(value)
        case int():
            return encode_integer(value)
        case str():
            return b"S" + long_string(value.encode())
        case None:
            return b"V"
        case float():
            return b"d" + NUMBERS[b"d"].pack(value)
        case bytes():
            return b"x" + long_string(value)
        case Decimal():
            return encode_decimal(value)
        case Mapping():
            return b"F" + encode_table(value)
        case Sequence():
            return b"A" + long_string(b"".join(map(encode_value, value)))
        case _:
            raise ValueError(f"a table cannot have a {type(value).__name__}")


def encode_integer(value: int) -> bytes:
    if value in INT32:
        return b"I" + NUMBERS[b"I"].pack(value)
    if value in INT64:
        return b"l" + NUMBERS[b"l"].pack(value)
    raise ValueError(f"a table cannot have the integer {value}: it is no 64 bits")


def encode_decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if sign or not isinstance(exponent, int) or not -DECIMAL_SCALE_MAX <= exponent <= 0:
        raise ValueError(f"a table cannot have the decimal {value}")
    whole = int("".join(map(str, digits)))
    if whole >= 2**32:
        raise ValueError(f"a table cannot have the decimal {value}: it is no 32 bits")
    return b"D" + bytes((-exponent,)) + UINT32.pack(whole)
