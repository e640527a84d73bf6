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
from typing import Any, Final

TRUE: Final = ("t", True)
FALSE: Final = ("t", False)
NAN: Final = ("d", "nan")

# RabbitMQ's names of types, for its error texts; `S` and the integers have several names, of which these are usual.
TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "bool", int: "signedint", float: "double", str: "longstr", bytes: "binary", Decimal: "decimal",
    list: "array", dict: "table", type(None): "void",
}

Arguments = tuple[tuple[str, str, Any], ...]
"""The arguments of a binding, sorted by name: (name, type, value); lists and tables as tuples. Hashable."""


def comparable(value: Any) -> Any:
    """A hashable value that is equal to another's exactly if RabbitMQ's headers exchange says so."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    match value:
        case bool():
            return TRUE if value else FALSE
        case int():
            return int(value)
        case float():
            return NAN if isnan(value) else value
        case bytes():
            return _text(value)
        case str():
            return str(value)
        case Decimal():
            return ("D", *value.as_tuple()[1:])
        case Mapping():
            return ("A", *((name, type_name(each), comparable(each)) for name, each in value.items()))
        case Sequence():
            return ("A", *((type_name(each), comparable(each)) for each in value))
    return value


def _text(octets: bytes) -> str | bytes:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets


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
