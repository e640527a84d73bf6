"""Avro payloads to columns: a record by the writer's schema, which a file has; bare, or framed as by Confluent.

    schema = "quote.avsc"       beside decoders.toml
    framing = "confluent"       a zero byte and the schema's number, four bytes, in front of each record
    schema_id = 7               that number: payloads of another are dead letters

Fields are those of the schema. One of [decoder.fields] replaces the schema's of its key: a long that is a time.
"""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fanlight_archive.arrow import pa
from fanlight_spark.decoding.fields import Field, shortened
from fanlight_spark.decoding.row_formats import Read, Unreadable
from fanlight_spark.decoding.type_names import DEPTH_MAX, TIMESTAMP

SCHEMA_MAX: Final = 1 << 20  # bytes of its file
_HEAD: Final = 5  # bytes of Confluent's frame
_TYPES: Final = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "string": pa.string(), "bytes": pa.binary(), "fixed": pa.binary(), "enum": pa.string(),
}  # fmt: skip
_LOGICAL: Final = {
    "date": pa.date32(), "timestamp-millis": TIMESTAMP, "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": TIMESTAMP, "local-timestamp-micros": TIMESTAMP,
}  # fmt: skip


def described(
    given: Sequence[Field], settings: dict[str, Any], folder: Path
) -> tuple[tuple[Field, ...], dict[str, Any]]:
    """The fields of a schema, and the settings with its text. Raises ValueError, OSError, ModuleNotFoundError."""
    if not isinstance(settings.get("schema"), str):
        raise ValueError("schema: the name of a file, such as quote.avsc")
    if (framing := settings.get("framing")) not in (None, "confluent"):
        raise ValueError(f"framing: {framing!r} is not confluent")
    if "schema_id" in settings and (framing is None or type(settings["schema_id"]) is not int):
        raise ValueError("schema_id: a number, with framing = 'confluent'")
    with (folder / settings["schema"]).open("rb") as file:
        text = file.read(SCHEMA_MAX + 1)
    if len(text) > SCHEMA_MAX:
        raise ValueError(f"schema: larger than {SCHEMA_MAX:,} bytes")
    record = _parsed(text)
    if not isinstance(record, dict) or record.get("type") != "record":
        raise ValueError("schema: it is of a record")
    instead = {field.key: field for field in given}
    names = dict(record.get("__named_schemas", {}))
    fields = []
    for each in record["fields"]:
        if each["name"] in instead:
            fields.append(instead.pop(each["name"]))
            continue
        kind, optional = _type(each["type"], names, each["name"], 0)
        fields.append(Field(each["name"], each["name"], kind, optional))
    if instead:
        raise ValueError(f"fields.{next(iter(instead.values())).name}: the schema has no such field")
    return tuple(fields), {**settings, "schema": text}


def reader(settings: Mapping[str, Any]) -> Read:
    """Raises ModuleNotFoundError."""
    import fastavro

    schema, wanted = _parsed(settings["schema"]), settings.get("schema_id")
    framed = settings.get("framing") == "confluent"

    def read(value: bytes) -> dict[Any, Any]:
        if framed:
            if len(value) < _HEAD or value[0] != 0:
                raise Unreadable("not framed as Confluent's clients do")
            number = int.from_bytes(value[1:_HEAD], "big")
            if wanted is not None and number != wanted:
                raise Unreadable(f"of schema {number}, not {wanted}")
            value = value[_HEAD:]
        data = io.BytesIO(value)
        try:
            found = fastavro.schemaless_reader(data, schema, None)
        except RecursionError:
            raise Unreadable("nested too deeply") from None
        except Exception as error:  # whatever bytes of something else make of it: it names no error of its own
            reason = shortened(str(error)) or type(error).__name__
            raise Unreadable(f"not Avro of this schema: {reason}") from None
        if behind := len(value) - data.tell():
            raise Unreadable(f"not Avro of this schema: {behind} bytes behind it")
        if not isinstance(found, dict):
            raise Unreadable("not Avro of this schema")
        return found

    return read


def _parsed(text: bytes) -> Any:
    import fastavro
    from fastavro.schema import SchemaParseException

    try:
        return fastavro.parse_schema(json.loads(text))
    except (ValueError, SchemaParseException) as error:
        raise ValueError(f"schema: {error}") from None


def _type(schema: Any, names: dict[str, Any], where: str, depth: int) -> tuple[Any, bool]:
    """(type, whether it may be null). Raises ValueError."""
    if depth > DEPTH_MAX:
        raise ValueError(f"schema: {where} is deeper than {DEPTH_MAX}, or has itself in it")
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) != 1:
            raise ValueError(f"schema: {where} is of one of several types, which no column has")
        return _type(others[0], names, where, depth)[0], len(others) < len(schema)
    if isinstance(schema, str):
        if schema in _TYPES:
            return _TYPES[schema], False
        if schema not in names:
            raise ValueError(f"schema: {where} is {schema}, which no column has")
        return _type(names[schema], names, where, depth + 1)
    if (logical := schema.get("logicalType")) is not None:
        if logical == "decimal":
            return pa.decimal128(schema["precision"], schema.get("scale", 0)), False
        if logical in _LOGICAL:
            return _LOGICAL[logical], False
        if logical == "uuid":
            raise ValueError(f"schema: {where} is uuid, which no column has")
    kind = schema["type"]
    if kind == "record":
        names[schema["name"]] = schema
        inside = [(each["name"], _type(each["type"], names, each["name"], depth + 1)[0]) for each in schema["fields"]]
        return pa.struct(inside), False
    if kind == "array":
        return pa.list_(_type(schema["items"], names, where, depth + 1)[0]), False
    if kind == "map":
        return pa.map_(pa.string(), _type(schema["values"], names, where, depth + 1)[0]), False
    if kind in ("enum", "fixed"):
        names[schema["name"]] = schema
    return _type(kind, names, where, depth + 1)
