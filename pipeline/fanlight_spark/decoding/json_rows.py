"""JSON payloads to columns: Arrow's reader over many payloads at once, and Python's json for those that it refuses.

Both give the same rows, which tests/without_spark/test_decoding.py draws examples of. A payload is a JSON object by
RFC 8259, in UTF-8: NaN and Infinity are not JSON. Of a key that is there twice the last counts, as in Python.

Payloads are joined by line feeds. A reader that takes them for a sequence of objects finds each payload's own, because

* each of them begins with `{` and ends with `}`, so between two of them is `}`, a line feed and `{`;
* a line feed is not allowed inside a string of JSON, so that is outside of strings, and there `}` before `{` is allowed
  between two objects only: each payload is one object or several;
* there are as many objects as payloads.

Payloads that Arrow refuses are found by halving: a batch in which one is bad costs about twice as much. An unknown
field is refused as well, for it is to be reported. So each decoder learns the first scalar ones that it meets,
LEARNT_MAX at most, and reads and counts them like its own.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np

from fanlight_archive.arrow import pa, pc
from fanlight_spark.decoding.fields import (
    DRIFT,
    NEW,
    Decoded,
    Field,
    Note,
    instants,
    is_time,
    joined,
    replaced,
    taken,
    with_missing,
)
from fanlight_spark.decoding.records import KINDS, SINGLE_MOST, decoded, kind_of
from fanlight_spark.decoding.times import FLOATING

LEAF: Final = 64  # payloads that are not halved any more
LEARNT_MAX: Final = 64  # unknown fields
BRACKETS_MAX: Final = 64  # of a payload that Arrow is given: what is deeper is Python's
BYTES_MAX: Final = 1 << 28  # that Arrow is given at once: its blocks are less than 2 GiB
_LEARNABLE: Final = {bool: pa.bool_(), int: pa.float64(), float: pa.float64(), Decimal: pa.float64(), str: pa.string()}
_INFINITE: Final = (float("inf"), float("-inf"))


class JsonRows:
    """For the fields of one decoder. It keeps what it has learnt: one for each, and each process."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = fields
        self._decimals = any(_has(field.type, pa.types.is_decimal) for field in fields)
        read = [_as_read(field) for field in fields]
        self._quick = all(kind is not None for kind in read)
        self._schema = [
            pa.field(field.key, kind) for field, kind in zip(fields, read, strict=True) if kind is not None
        ]  # fmt: skip
        self._learnt: dict[str, Any] = {}  # unknown fields, by key
        self._refused: set[str] = set()  # keys whose values are of several types

    def decode(self, values: Any) -> Decoded:
        """Of a binary array without nulls."""
        if not len(values):
            return joined([], self.fields)
        if not self._quick:
            return self._slow(values)
        plain = _plain(values)
        if plain.all():
            return self._halving(values)
        rows = np.flatnonzero(~plain)
        others = self._slow(values.take(pa.array(rows)))
        if len(rows) == len(values):
            return others
        quick = self._halving(values.filter(pa.array(plain)))
        count = len(quick.problems)
        places = np.empty(len(values), dtype=np.int64)
        places[plain] = np.arange(count)
        places[rows] = count + np.arange(len(rows))
        return taken(joined([quick, others], self.fields), pa.array(places))

    def _halving(self, values: Any) -> Decoded:
        parts: list[Decoded] = []
        waiting = [values]
        while waiting:
            part = waiting.pop()
            if (found := self._at_once(part)) is not None:
                parts.append(found)
            elif len(part) <= LEAF:
                parts.append(self._slow(part))
            else:
                half = len(part) // 2
                waiting += [part.slice(half), part.slice(0, half)]
        return joined(parts, self.fields)

    def _at_once(self, values: Any) -> Decoded | None:
        """By Arrow; None: a payload is not as it should be."""
        from pyarrow import json as arrow_json  # type: ignore[import-untyped, unused-ignore]

        data = b"\n".join(values.to_pylist())
        if len(data) > BYTES_MAX:
            return None
        schema = pa.schema([*self._schema, *(pa.field(*learnt) for learnt in self._learnt.items())])
        try:
            data.decode()
            table = arrow_json.read_json(
                pa.BufferReader(data),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None
        if table.num_rows != len(values):
            return None
        found = [column.combine_chunks() for column in table.columns]
        if any(_not_finite(column) for column in found):
            return None
        own = len(self.fields)
        return self._finished(values, found[:own], dict(zip(self._learnt, found[own:], strict=True)))

    def _finished(self, values: Any, found: list[Any], learnt: dict[str, Any]) -> Decoded:
        columns, doubtful = [], np.zeros(len(values), dtype=bool)
        for field, column in zip(self.fields, found, strict=True):
            made, fits = _made(field, column)
            columns.append(made)
            if fits is not None:
                doubtful |= ~fits
        drift = with_missing(self.fields, columns, len(values))
        if any(column.null_count < len(column) for column in learnt.values()):
            drift = _with_new(drift, learnt)
        made = Decoded(columns, pa.nulls(len(values), pa.string()), drift)
        if not doubtful.any():
            return made
        rows = np.flatnonzero(doubtful)
        return replaced(made, rows, self._slow(values.take(pa.array(rows))), self.fields)

    def _slow(self, values: Any) -> Decoded:
        """Row by row: the reasons are found here."""
        rows: list[dict[str, Any] | None] = []
        problems: list[str | None] = []
        for value in values.to_pylist():
            record, problem = read_object(value, decimals=self._decimals)
            rows.append(record)
            problems.append(problem)
        self._learn(rows)
        return decoded(rows, problems, self.fields)

    def _learn(self, rows: Sequence[dict[str, Any] | None]) -> None:
        known = {field.key for field in self.fields}
        for row in rows:
            if row is None or row.keys() <= known:
                continue
            for key, value in row.items():
                if key in known or key in self._refused or value is None:
                    continue
                kind = _LEARNABLE.get(type(value))
                if kind is None or self._learnt.get(key, kind) != kind:
                    self._learnt.pop(key, None)
                    if len(self._refused) < LEARNT_MAX:
                        self._refused.add(key)
                elif len(self._learnt) < LEARNT_MAX:
                    self._learnt[key] = kind


def read_object(value: bytes, *, decimals: bool = False) -> tuple[dict[str, Any] | None, str | None]:
    """(the object that a payload is, None), or (None, what is wrong with it).

    decimals: numbers with a point are read as such.
    """
    if not value:
        return None, "empty"
    try:
        text = value.decode()
        found = json.loads(text, parse_constant=_refuse, parse_float=Decimal if decimals else _real)
    except UnicodeDecodeError as error:
        return None, f"not UTF-8, byte {error.start}"
    except json.JSONDecodeError as error:
        return None, f"not JSON: {error.msg}, byte {len(error.doc[: error.pos].encode('utf-8', 'replace'))}"
    except RecursionError:
        return None, "nested too deeply"
    except ValueError as error:  # a constant that is not JSON, and numbers of more digits than Python reads
        return None, f"not JSON: {error}"
    if not isinstance(found, dict):
        return None, f"{kind_of(found)} in place of an object"
    return found, None


def _real(text: str) -> float | Decimal:
    """A number with a point or an exponent; as it is written, where no double is as large."""
    value = float(text)
    return value if value not in _INFINITE else Decimal(text)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is none of its numbers")


def _plain(values: Any) -> Any:
    """Which payloads begin with { and end with }, and are not deep: a boolean array of numpy."""
    _, buffer, data = values.buffers()
    ends = np.frombuffer(buffer, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    octets = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    first, last = np.minimum(ends[:-1], len(octets) - 1), np.maximum(ends[1:] - 1, 0)
    plain = (np.diff(ends) > 1) & (octets[first] == ord("{")) & (octets[last] == ord("}"))
    body = octets[ends[0] : ends[-1]].tobytes()
    brackets = body.count(b"[") + body.count(b"{") - len(values)
    if brackets > BRACKETS_MAX:
        each = np.add(pc.count_substring(values, "[").to_numpy(), pc.count_substring(values, "{").to_numpy())
        plain &= each <= BRACKETS_MAX
    return plain


def _as_read(field: Field) -> Any:
    """The type that Arrow is to read; None: it has no such, or not with our meaning."""
    if is_time(field):
        return pa.string() if field.unit is None else pa.float64() if field.unit in FLOATING else pa.int64()
    return _plain_type(field.type)


def _plain_type(kind: Any) -> Any:
    types = pa.types
    if types.is_boolean(kind) or types.is_int64(kind) or types.is_float64(kind) or types.is_string(kind):
        return kind
    if types.is_struct(kind):
        inside = [(field.name, _plain_type(field.type)) for field in kind]
        return None if not inside or any(each is None for _, each in inside) else pa.struct(inside)
    if types.is_list(kind):
        inner = _plain_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    return {pa.int32(): pa.int64(), pa.float32(): pa.float64()}.get(kind) if not types.is_nested(kind) else None


def _made(field: Field, column: Any) -> tuple[Any, Any]:
    """(the column in its own type, which rows of it are right; None: all of them)."""
    if is_time(field):
        made = instants(field, column)
        if made.null_count == column.null_count:
            return made, None
        return made, pc.equal(pc.is_null(made), pc.is_null(column)).to_numpy(zero_copy_only=False)
    if column.type == field.type:
        return column, None
    if _has(field.type, lambda kind: kind in (pa.int32(), pa.float32())) and pa.types.is_nested(field.type):
        return _cast_nested(field, column)
    if field.type == pa.int32():
        fits = pc.and_(pc.greater_equal(column, -(2**31)), pc.less(column, 2**31))
    else:
        fits = pc.less_equal(pc.abs(column), SINGLE_MOST)
    right = pc.fill_null(fits, True)
    made = pc.if_else(right, column, None).cast(field.type, safe=False)
    return made, right.to_numpy(zero_copy_only=False)


def _cast_nested(field: Field, column: Any) -> tuple[Any, Any]:
    try:
        return column.cast(field.type), None
    except pa.ArrowInvalid:
        return pa.nulls(len(column), field.type), np.zeros(len(column), dtype=bool)


def _not_finite(column: Any) -> bool:
    """Is there a NaN or an infinity anywhere in it, which Arrow takes for JSON?"""
    kind = column.type
    if pa.types.is_floating(kind):
        return not pc.all(pc.is_finite(column)).as_py() if len(column) > column.null_count else False
    if pa.types.is_struct(kind):
        return any(_not_finite(child) for child in column.flatten())
    return _not_finite(column.flatten()) if pa.types.is_list(kind) else False


def _with_new(drift: Any, learnt: dict[str, Any]) -> Any:
    """The same and the unknown fields of each row."""
    names = {pa.bool_(): KINDS[bool], pa.float64(): KINDS[float], pa.string(): KINDS[str]}
    notes: list[list[Note] | None] = drift.to_pylist()
    for key, column in learnt.items():
        note: Note = {"field": key, "change": NEW, "found": names[column.type]}
        for row in np.flatnonzero(pc.is_valid(column).to_numpy(zero_copy_only=False)).tolist():
            notes[row] = [*(notes[row] or []), note]
    return pa.array(notes, DRIFT)


def _has(kind: Any, wanted: Any) -> bool:
    if pa.types.is_struct(kind):
        return any(_has(field.type, wanted) for field in kind)
    if pa.types.is_map(kind):
        return _has(kind.item_type, wanted)
    if pa.types.is_list(kind):
        return _has(kind.value_type, wanted)
    return bool(wanted(kind))
