"""MessagePack, CSV and text payloads to columns; avro_rows and protobuf_rows have the formats with a schema."""

import csv
from collections.abc import Callable, Sequence
from typing import Any, Final

from fanlight_archive.arrow import pa, pc
from fanlight_spark.decoding.fields import DRIFT, Decoded, Field, is_time, shortened
from fanlight_spark.decoding.records import decoded, kind_of

CSV_FIELD_MAX: Final = 1 << 20  # characters of one field

Read = Callable[[bytes], dict[Any, Any]]


class Unreadable(Exception):
    """Why a payload is no record of its format."""


class RecordRows:
    """A format whose payloads a library reads one by one: `read` gives a dict, or raises Unreadable."""

    def __init__(self, fields: Sequence[Field], read: Read) -> None:
        self.fields, self._read = fields, read

    def decode(self, values: Any) -> Decoded:
        """Of a binary array without nulls."""
        rows: list[dict[Any, Any] | None] = []
        problems: list[str | None] = []
        for value in values.to_pylist():
            try:
                rows.append(self._read(value))
                problems.append(None)
            except Unreadable as error:
                rows.append(None)
                problems.append(str(error))
        return decoded(rows, problems, self.fields)


def msgpack_reader() -> Read:
    """Raises ModuleNotFoundError."""
    import msgpack  # type: ignore[import-untyped, unused-ignore]

    def read(value: bytes) -> dict[Any, Any]:
        if not value:
            raise Unreadable("empty")
        try:
            found = msgpack.unpackb(value, timestamp=3, strict_map_key=False)  # 3: datetimes
        except msgpack.ExtraData as error:
            raise Unreadable(f"not MessagePack: {len(error.extra)} bytes behind it") from None
        except UnicodeDecodeError as error:
            raise Unreadable(f"not MessagePack: a text is not UTF-8, its byte {error.start}") from None
        except RecursionError:
            raise Unreadable("nested too deeply") from None
        except (ValueError, TypeError, OverflowError) as error:  # TypeError: a key that cannot be one, such as a map
            raise Unreadable(f"not MessagePack: {shortened(str(error)) or type(error).__name__}") from None
        if not isinstance(found, dict):
            raise Unreadable(f"{kind_of(found)} in place of a map")
        return found

    return read


def csv_reader(fields: Sequence[Field], delimiter: str) -> Read:
    """One record a payload, with or without a line's end. Nothing between two delimiters is null, but of a string."""
    csv.field_size_limit(max(csv.field_size_limit(), CSV_FIELD_MAX))
    parsers = [(field, _parser(field)) for field in fields]

    def read(value: bytes) -> dict[Any, Any]:
        if not value:
            raise Unreadable("empty")
        try:
            text = value.decode()
            records = list(csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True))
        except UnicodeDecodeError as error:
            raise Unreadable(f"not UTF-8, byte {error.start}") from None
        except csv.Error as error:
            raise Unreadable(f"not CSV: {error}") from None
        if len(records) != 1:
            raise Unreadable(f"{len(records)} lines in place of one")
        row: dict[Any, Any] = {
            field.key: parse(text) for (field, parse), text in zip(parsers, records[0], strict=False)
        }
        for number in range(len(parsers), len(records[0])):
            row[f"column {number + 1}"] = records[0][number]
        return row

    return read


def _parser(field: Field) -> Callable[[str], Any]:
    """What makes a value out of the text of a field: what it cannot read stays text, which is a problem later."""
    if pa.types.is_string(field.type):
        return lambda text: text
    if is_time(field) and field.unit is not None:
        kind = None
    elif is_time(field) or pa.types.is_date(field.type) or pa.types.is_decimal(field.type):
        return lambda text: text or None
    else:
        kind = field.type

    def parse(text: str) -> Any:
        if not text:
            return None
        if kind == pa.bool_():
            return {"true": True, "false": False}.get(text.lower(), text)
        if kind is None or pa.types.is_integer(kind):
            try:
                if text.strip() == text and "_" not in text and text.isascii():
                    return int(text)
            except ValueError:
                pass  # no whole number
            if kind is not None:
                return text
        try:
            return float(text) if text.strip() == text and "_" not in text and text.isascii() else text
        except ValueError:
            return text

    return parse


class TextRows:
    """The payload as the one field there is."""

    def __init__(self, fields: Sequence[Field]) -> None:
        (self._field,) = fields

    def decode(self, values: Any) -> Decoded:
        """Of a binary array without nulls."""
        rows = len(values)
        try:
            return Decoded([values.cast(pa.string())], pa.nulls(rows, pa.string()), pa.nulls(rows, DRIFT))
        except pa.ArrowInvalid:
            pass  # one of them is not UTF-8
        texts: list[str | None] = []
        problems: list[str | None] = []
        for value in values.to_pylist():
            try:
                texts.append(value.decode())
                problems.append(None)
            except UnicodeDecodeError as error:
                texts.append(None)
                problems.append(f"not UTF-8, byte {error.start}")
        return Decoded([pa.array(texts, pa.string())], pa.array(problems, pa.string()), pa.nulls(rows, DRIFT))


def without_nulls(values: Any) -> Any:
    """A binary column with empty payloads where it has none."""
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    values = values.cast(pa.binary()) if values.type != pa.binary() else values
    return pc.fill_null(values, b"") if values.null_count else values
