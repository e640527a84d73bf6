"""decoders.toml: which topics hold what, as tables. docs/pipeline-decoding.md is the page for users.

    [[decoder]]
    table = "quotes"
    filter = "stock.*.*"                      # or "stock/+/+" with syntax = "mqtt"
    format = "json"                           # msgpack, csv, avro, protobuf, text
    words = { exchange = 2, ticker = 3 }      # of the topic, from 1; -1 is the last
    time = "date"                             # the field that says when; else `_timestamp` does

    [decoder.fields]
    date = { type = "timestamp", zone = "America/New_York" }
    close = "double"
    volume = { type = "bigint", optional = true, key = "vol" }

An error names the file, the table and the key.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import matchcore
from fanlight_archive.arrow import pa
from fanlight_permissions.reading import did_you_mean, file_text
from fanlight_spark.decoding import times
from fanlight_spark.decoding.fields import Field
from fanlight_spark.decoding.type_names import TIMESTAMP, type_of
from fanlight_spark.topics import index_of

FORMATS: Final = ("json", "msgpack", "csv", "avro", "protobuf", "text")
WITH_SCHEMA: Final = ("avro", "protobuf")  # which say themselves what they have
FIELDS_MAX: Final = 1_000
FILE_MAX: Final = 1 << 20  # bytes
#: What to do about a decoder without fields.
INFER: Final = "`python -m fanlight_spark.jobs.infer ARCHIVE --decoders FILE` finds them in an archive"
#: Columns of a decoded table that are of the message, not of its payload.
MESSAGE_COLUMNS: Final = ("_topic", "_timestamp", "_offset", "_problem", "_value", "_drift")
_KEYS: Final = ("table", "filter", "syntax", "format", "words", "time", "fields")
_OF_FORMAT: Final = {
    "csv": ("delimiter",), "avro": ("schema", "framing", "schema_id"), "protobuf": ("descriptor", "message"),
}  # fmt: skip
_OF_FIELD: Final = {"type": str, "key": str, "optional": bool, "unit": str, "zone": str}


class InvalidDecoders(ValueError):
    """A file of decoders that cannot be read: which, where in it and why."""


@dataclass(frozen=True)
class Decoder:
    """Messages of some topics as one table.

    words     column -> number of a word of the topic, from 1, or from the end below 0
    time      the timestamp field that says when; None: when the broker received the message
    fields    of payloads that say nothing of their own; of avro and protobuf those that differ from the schema
    settings  of the format, as in the file; bytes where it names a file
    """

    table: str
    filter: str
    syntax: str
    format: str
    words: Mapping[str, int]
    time: str | None
    fields: tuple[Field, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


class Decoders(Mapping[str, Decoder]):
    """Those of a file, by table."""

    def __init__(self, decoders: Mapping[str, Decoder], name: str = "decoders") -> None:
        self._decoders, self.name = dict(decoders), name

    def __getitem__(self, table: str) -> Decoder:
        return self._decoders[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoders)

    def __len__(self) -> int:
        return len(self._decoders)

    def one(self, table: str | None) -> Decoder:
        """That of a table, or the only one. Raises ValueError."""
        if table is None and len(self) == 1:
            return next(iter(self.values()))
        if table is None:
            raise ValueError(f"{self.name} has {', '.join(self)}: say which table is wanted")
        if table not in self:
            raise ValueError(f"{self.name} has no table {table!r}: it has {', '.join(self)}")
        return self[table]


def load(path: str | os.PathLike[str], *, complete: bool = True) -> Decoders:
    """Read a file. complete: a decoder without fields is an error. Raises InvalidDecoders."""
    place = Path(path)
    try:
        text = file_text(place, FILE_MAX)
    except ValueError as error:
        raise InvalidDecoders(str(error)) from None
    return parse(text, str(path), place.parent, complete=complete)


def parse(text: str, name: str = "decoders", folder: Path = Path(), *, complete: bool = True) -> Decoders:
    """Read a text. folder: where the files are that it names. Raises InvalidDecoders."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidDecoders(f"{name}: {error}") from None
    entries = tables.pop("decoder", [])
    if tables or not isinstance(entries, list) or not entries:
        raise InvalidDecoders(f"{name}: it is made of tables [[decoder]]" + (f", not {min(tables)}" if tables else ""))
    found: dict[str, Decoder] = {}
    for number, entry in enumerate(entries, 1):
        table = entry.get("table") if isinstance(entry, dict) else None
        where = f"{name}: decoder {table if isinstance(table, str) else number}"
        try:
            decoder = _decoder(entry, folder, complete)
        except (ValueError, OSError, matchcore.InvalidFilter) as error:
            raise InvalidDecoders(f"{where}: {error}") from error
        if decoder.table in found:
            raise InvalidDecoders(f"{where}: there are two of this name")
        found[decoder.table] = decoder
    return Decoders(found, name)


def _decoder(entry: Any, folder: Path, complete: bool) -> Decoder:
    if not isinstance(entry, dict):
        raise ValueError("it is a table [[decoder]]")
    format = _text(entry, "format", FORMATS)
    allowed = (*_KEYS, *_OF_FORMAT.get(format, ()))
    _only(entry, allowed)
    syntax = _text(entry, "syntax", ("amqp", "mqtt"), "amqp")
    filter = _text(entry, "filter")
    index_of([(filter, 0, syntax)])  # raises if it is invalid
    settings = {key: entry[key] for key in _OF_FORMAT.get(format, ()) if key in entry}
    given = entry.get("fields", {})
    if not isinstance(given, dict) or len(given) > FIELDS_MAX:
        raise ValueError(f"fields: a table of {FIELDS_MAX:,} at most")
    fields = tuple(_field(name, each) for name, each in given.items())
    if not fields and format not in WITH_SCHEMA and complete:
        raise ValueError(f"it has no fields, which a decoder of {format} needs; {INFER}")
    fields, settings = _of_format(format, fields, settings, folder)
    words = _words(entry.get("words", {}))
    _distinct([*words, *(each.name for each in fields)])
    if len({each.key for each in fields}) < len(fields):
        raise ValueError("fields: two of them have one key")
    time = _text(entry, "time", None, "") or None
    if (
        time is not None
        and (fields or complete)
        and time not in [each.name for each in fields if each.type == TIMESTAMP]
    ):
        raise ValueError(f"time: {time!r} is no field of the type timestamp")
    return Decoder(_name("table", _text(entry, "table")), filter, syntax, format, words, time, fields, settings)


def _of_format(
    format: str, fields: tuple[Field, ...], settings: dict[str, Any], folder: Path
) -> tuple[tuple[Field, ...], dict[str, Any]]:
    """The fields and the settings, checked; those of a schema read from its file."""
    if format == "avro":
        from fanlight_spark.decoding import avro_rows

        return avro_rows.described(fields, settings, folder)
    if format == "protobuf":
        from fanlight_spark.decoding import protobuf_rows

        return protobuf_rows.described(fields, settings, folder)
    if format == "text" and fields and (len(fields) != 1 or fields[0].type != pa.string()):
        raise ValueError("fields: of text there is one, a string")
    if format == "json" and any(_has_binary(each.type) for each in fields):
        raise ValueError("fields: JSON has no binary; take string, and unbase64() or unhex() in SQL")
    if format == "csv":
        if any(pa.types.is_nested(each.type) or pa.types.is_binary(each.type) for each in fields):
            raise ValueError("fields: those of csv are plain, without array, map, struct and binary")
        if not isinstance(delimiter := settings.setdefault("delimiter", ","), str) or len(delimiter) != 1:
            raise ValueError("delimiter: one character")
    return fields, settings


def _field(name: str, given: Any) -> Field:
    _name("fields", name)
    options = {"type": given} if isinstance(given, str) else given
    if not isinstance(options, dict):
        raise ValueError(f"fields.{name}: a type, or a table with type")
    _only(options, tuple(_OF_FIELD), f"fields.{name}.")
    for key, value in options.items():
        if not isinstance(value, _OF_FIELD[key]):
            raise ValueError(f"fields.{name}.{key}: {value!r} is no {_OF_FIELD[key].__name__}")
    if "type" not in options:
        raise ValueError(f"fields.{name}: it has no type")
    try:
        kind = type_of(options["type"])
    except ValueError as error:
        raise ValueError(f"fields.{name}: {error}") from None
    unit, zone = options.get("unit"), options.get("zone")
    if (unit is not None or zone is not None) and kind != TIMESTAMP:
        raise ValueError(f"fields.{name}: unit and zone are of a timestamp")
    if unit is not None and zone is not None:
        raise ValueError(f"fields.{name}: a number since 1970 (unit) has no zone")
    if unit is not None and unit not in times.UNITS:
        raise ValueError(f"fields.{name}.unit: {unit!r} is none of {', '.join(times.UNITS)}")
    if zone is not None:
        times.zone_of(zone)  # raises if there is none
    return Field(name, options.get("key", name), kind, options.get("optional", False), unit, zone or "UTC")


def _words(given: Any) -> dict[str, int]:
    if not isinstance(given, dict):
        raise ValueError("words: a table, such as { exchange = 2 }")
    for name, number in given.items():
        _name("words", name)
        if type(number) is not int or number == 0 or abs(number) > 1_024:
            raise ValueError(f"words.{name}: the number of a word, from 1; or from the end, -1")
    return dict(given)


def _distinct(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) is not name:
            raise ValueError(f"{other} and {name} would be one column: SQL does not tell them apart")


def _name(what: str, name: str) -> str:
    if not name or name.startswith("_"):
        raise ValueError(f"{what}: {name!r} cannot be a name; what begins with _ is of the message: "
                         f"{', '.join(MESSAGE_COLUMNS)}")  # fmt: skip
    return name


def _text(
    entry: Mapping[str, Any], key: str, choices: tuple[str, ...] | None = None, default: str | None = None
) -> str:
    value = entry.get(key, default)
    if value is None:
        raise ValueError(f"it has no {key}" + (f": {', '.join(choices)}" if choices else ""))
    if not isinstance(value, str) or (choices is not None and value not in choices):
        raise ValueError(f"{key}: {value!r} is " + (f"none of {', '.join(choices)}" if choices else "no text"))
    return value


def _only(entry: Mapping[str, Any], allowed: tuple[str, ...], before: str = "") -> None:
    if unknown := sorted(entry.keys() - set(allowed)):
        advice = did_you_mean(unknown[0], allowed)
        raise ValueError(f"{before}{unknown[0]}: there is no such key; there are {', '.join(allowed)}{advice}")


def _has_binary(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_binary(each.type) for each in kind)
    if pa.types.is_map(kind):
        return _has_binary(kind.item_type)
    return _has_binary(kind.value_type) if pa.types.is_list(kind) else bool(pa.types.is_binary(kind))
