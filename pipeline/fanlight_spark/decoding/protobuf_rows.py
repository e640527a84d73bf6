"""Protobuf payloads to columns, by the descriptors that protoc writes.

    protoc --include_imports --descriptor_set_out=quote.desc quote.proto

    descriptor = "quote.desc"       beside decoders.toml
    message = "market.Quote"

Fields are those of the message; one of [decoder.fields] replaces the message's of its key. A field that says whether it
is there (`optional`, of a oneof, a message) is null where it is not; another has its default value, as in Protobuf. An
enum is the name of its value. Unknown fields of a payload are drift, by number.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, Final

from fanlight_archive.arrow import pa
from fanlight_spark.decoding.fields import Field, shortened
from fanlight_spark.decoding.row_formats import Read, Unreadable
from fanlight_spark.decoding.type_names import DEPTH_MAX, TIMESTAMP

DESCRIPTOR_MAX: Final = 16 << 20  # bytes of its file
UNKNOWN_MAX: Final = 32  # unknown fields of a payload that are named
_TIMESTAMP: Final = "google.protobuf.Timestamp"


def described(
    given: Sequence[Field], settings: dict[str, Any], folder: Path
) -> tuple[tuple[Field, ...], dict[str, Any]]:
    """The fields of a message, and the settings with its descriptors.

    Raises ValueError, OSError, ModuleNotFoundError.
    """
    for key, example in (("descriptor", "quote.desc"), ("message", "market.Quote")):
        if not isinstance(settings.get(key), str):
            raise ValueError(f"{key}: a name, such as {example}")
    with (folder / settings["descriptor"]).open("rb") as file:
        data = file.read(DESCRIPTOR_MAX + 1)
    if len(data) > DESCRIPTOR_MAX:
        raise ValueError(f"descriptor: larger than {DESCRIPTOR_MAX:,} bytes")
    message = _message(data, settings["message"]).DESCRIPTOR
    instead = {field.key: field for field in given}
    fields = []
    for each in message.fields:
        if each.name in instead:
            fields.append(instead.pop(each.name))
        else:
            fields.append(Field(each.name, each.name, _type(each, 0), each.has_presence))
    if instead:
        raise ValueError(f"fields.{next(iter(instead.values())).name}: the message has no such field")
    return tuple(fields), {**settings, "descriptor": data}


def reader(settings: Mapping[str, Any]) -> Read:
    """Raises ModuleNotFoundError."""
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    made = _message(settings["descriptor"], settings["message"])
    getters = [(each.name, _getter(each)) for each in made.DESCRIPTOR.fields]

    def read(value: bytes) -> dict[Any, Any]:
        message = made()
        try:
            message.ParseFromString(value)
        except DecodeError as error:
            raise Unreadable(f"not Protobuf of this message: {shortened(str(error))}") from None
        row: dict[Any, Any] = {name: get(message) for name, get in getters}
        unknown = UnknownFieldSet(message)
        for number in {each.field_number for each, _ in zip(unknown, range(UNKNOWN_MAX), strict=False)}:
            row[f"field {number}"] = number
        return row

    return read


def _message(data: bytes, name: str) -> Any:
    """The class of a message. Raises ValueError."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data)
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except (DecodeError, TypeError) as error:
        raise ValueError(f"descriptor: not what protoc --descriptor_set_out writes, with --include_imports: "
                         f"{error}") from None  # fmt: skip
    except KeyError:
        raise ValueError(f"message: {name} is not among the descriptors") from None


def _type(field: Any, depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise ValueError(f"message: {field.full_name} is deeper than {DEPTH_MAX}, or has itself in it")
    if _is_map(field):
        of = field.message_type.fields_by_name
        return pa.map_(pa.string(), _single(of["value"], depth + 1))
    return pa.list_(_single(field, depth + 1)) if field.is_repeated else _single(field, depth)


def _single(field: Any, depth: int) -> Any:
    from google.protobuf.descriptor import FieldDescriptor as Is

    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return TIMESTAMP
        inside = [(each.name, _type(each, depth + 1)) for each in field.message_type.fields]
        if not inside:
            raise ValueError(f"message: {field.full_name} has no fields, which no column has")
        return pa.struct(inside)
    if field.type == Is.TYPE_BYTES:
        return pa.binary()
    return {
        Is.CPPTYPE_BOOL: pa.bool_(), Is.CPPTYPE_INT32: pa.int32(), Is.CPPTYPE_UINT32: pa.int64(),
        Is.CPPTYPE_INT64: pa.int64(), Is.CPPTYPE_UINT64: pa.decimal128(20, 0), Is.CPPTYPE_FLOAT: pa.float32(),
        Is.CPPTYPE_DOUBLE: pa.float64(), Is.CPPTYPE_STRING: pa.string(), Is.CPPTYPE_ENUM: pa.string(),
    }[field.cpp_type]  # fmt: skip


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _getter(field: Any) -> Callable[[Any], Any]:
    """What takes a field out of a message, as records.py wants it."""
    name = field.name
    if _is_map(field):
        one = _value(field.message_type.fields_by_name["value"])
        return lambda message: {str(key): one(value) for key, value in getattr(message, name).items()}
    one = _value(field)
    if field.is_repeated:
        return lambda message: [one(value) for value in getattr(message, name)]
    if field.has_presence:
        return lambda message: one(getattr(message, name)) if message.HasField(name) else None
    return lambda message: one(getattr(message, name))


def _value(field: Any) -> Callable[[Any], Any]:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return _moment
        inside = [(each.name, _getter(each)) for each in field.message_type.fields]
        return lambda message: {name: get(message) for name, get in inside}
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    return lambda value: value


def _moment(stamp: Any) -> Any:
    try:
        return stamp.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        return f"{stamp.seconds} s"  # beyond the year 9999: a problem of its row
