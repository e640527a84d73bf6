"""Values of field tables as RabbitMQ compares them, and the arguments of bindings in a form that can be a key.

RabbitMQ compares values with Erlang's `==` and ignores their types (rabbit_exchange_type_headers): all integers, floats
and timestamps by value, so 1 = 1.0; text and octets by their bytes. A boolean is not 1, and not "true". Arrays and
tables are compared whole, tables in the order in which they stand; types count in them, because Erlang has them as
tuples of type and value. One difference is left: there an integer in an array is not that of another width; here the
width is not kept. NaN, which RabbitMQ cannot read, is equal to NaN.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isnan
from struct import Struct
from sys import byteorder
from typing import Any, Final

NESTED: Final = b"A"  # what the canonical form of an array or a table begins with
DOUBLE: Final = Struct("=d")
SIGNED_BELOW: Final = 2**63
VALUES_MAX: Final = 1_000  # in the arguments of a method, those in arrays and tables included: each takes some µs

# RabbitMQ's names of types, for its error texts; `S` and the integers have several names, of which these are usual.
TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "bool", int: "signedint", float: "double", str: "longstr", bytes: "binary", Decimal: "decimal",
    list: "array", dict: "table", type(None): "void",
}

Arguments = tuple[tuple[str, str, Any], ...]
"""The arguments of a binding, sorted by name: (name, type, value); lists and tables as tuples. Hashable."""


def has_many(value: Mapping[str, Any] | Sequence[Any]) -> bool:
    """Does a table or an array have more than VALUES_MAX values, those in others inside included?"""
    count, waiting = 0, [value]
    while waiting:
        found = waiting.pop()
        inside = found.values() if isinstance(found, Mapping) else found
        count += len(inside)
        if count > VALUES_MAX:
            return True
        waiting += [each for each in inside if isinstance(each, dict | list)]
    return False


def canonical(value: Any) -> bytes:
    """Octets that are equal to another value's exactly if RabbitMQ's headers exchange says that the values are equal.

    header_values.pyx makes the same of a value as it is written.
    """
    match value:
        case str():
            return b"s" + octets_of(value)
        case bool():
            return b"t\x01" if value else b"t\x00"
        case int():
            return _integer(value)
        case float():
            return _float(value)
        case bytes():
            return b"s" + value
        case None:
            return b"V"
        case Decimal():
            return _decimal(value)
        case Mapping():
            return NESTED + b"".join(
                b"m" + _counted(canonical(name)) + _inside(each) for name, each in value.items()
            )
        case Sequence():
            return NESTED + b"".join(b"q" + _inside(each) for each in value)
        case _:
            raise TypeError(f"a table cannot have a {type(value).__name__}")


def octets_of(text: str) -> bytes:
    """A file of definitions may have what is no UTF-8; no message has it."""
    return text.encode(errors="surrogatepass")


def _inside(value: Any) -> bytes:
    return _counted(type_name(value).encode()) + _counted(canonical(value))


def _counted(octets: bytes) -> bytes:
    return len(octets).to_bytes(8) + octets


def _integer(value: int) -> bytes:
    if -SIGNED_BELOW <= value < SIGNED_BELOW:
        return b"i" + value.to_bytes(8, byteorder, signed=True)
    if SIGNED_BELOW <= value < 2 * SIGNED_BELOW:
        return b"u" + value.to_bytes(8, byteorder)
    return b"n" + str(value).encode()  # none comes in a message; a file of definitions may have it


def _float(value: float) -> bytes:
    if isnan(value):
        return b"N"
    if -SIGNED_BELOW <= value < 2 * SIGNED_BELOW and value.is_integer():
        return _integer(int(value))
    return b"d" + DOUBLE.pack(value)


def _decimal(value: Decimal) -> bytes:
    """Of its digits and its scale: 1 is not 1.0."""
    _, digits, exponent = value.as_tuple()
    whole = int("".join(map(str, digits)) or "0")
    if isinstance(exponent, int) and 0 <= -exponent <= 255 and whole < 2**32:
        return b"D" + bytes((-exponent,)) + whole.to_bytes(4)
    return b"D" + repr((digits, exponent)).encode()


def type_name(value: Any) -> str:
    """RabbitMQ's name of a value's type."""
    for kind in type(value).__mro__:
        if kind in TYPE_NAMES:
            return "timestamp" if kind is int and type(value) is not int else TYPE_NAMES[kind]
    return type(value).__name__


def frozen(table: Mapping[str, Any]) -> Arguments:
    """Equal for equal arguments, whatever their order: here 1 is not 1.0."""
    return tuple(sorted((name, type_name(value), _frozen(value)) for name, value in table.items())) if table else ()


def _frozen(value: Any) -> Any:
    match value:
        case Mapping():
            return tuple((name, type_name(each), _frozen(each)) for name, each in value.items())
        case str() | bytes():
            return value
        case Sequence():
            return tuple((type_name(each), _frozen(each)) for each in value)
    return value


def thawed(arguments: Arguments) -> dict[str, Any]:
    """The table of arguments, sorted by name."""
    return {name: _thawed(kind, value) for name, kind, value in arguments}


def _thawed(kind: str, value: Any) -> Any:
    if kind == "table":
        return {name: _thawed(inner, each) for name, inner, each in value}
    if kind == "array":
        return [_thawed(inner, each) for inner, each in value]
    return value


def nbytes_of(arguments: Arguments) -> int:
    """Roughly what they take in memory."""
    return sum(160 + len(name) + _size(value) for name, _, value in arguments)


def _size(value: Any) -> int:
    if isinstance(value, tuple):
        return 64 + sum(map(_size, value))
    return 32 + (len(value) if isinstance(value, str | bytes) else 0)
