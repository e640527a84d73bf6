"""JSON payloads to columns: a quick reader of many payloads at once, and Python's json for those that it refuses.

All give the same rows, which tests/without_spark/test_decoding.py draws examples of. A payload is a JSON object by
RFC 8259, in UTF-8: NaN and Infinity are not JSON. Of a key that is there twice the last counts, as in Python.

Fields without structs and arrays are read by json_flat.py. For others the quick reader is Arrow's, to which payloads
are given joined by line feeds. It takes them for a sequence of objects, and finds each payload's own, because

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
    NEW,
    Decoded,
    Field,
    Notes,
    drift_of,
    instants,
    is_time,
    joined,
    missing,
    noted,
    replaced,
    taken,
)
from fanlight_spark.decoding.json_flat import LEARNT_MAX, FlatReader, octets, readable
from fanlight_spark.decoding.records import KINDS, SINGLE_MOST, decoded, kind_of
from fanlight_spark.decoding.times import FLOATING

LEAF: Final = 64  # payloads that are not halved any more
BRACKETS_MAX: Final = 64  # of a payload that Arrow is given: what is deeper is Python's
BYTES_MAX: Final = 1 << 28  # that Arrow is given at once: its blocks are less than 2 GiB
_LEARNABLE: Final = {bool: pa.bool_(), int: pa.float64(), float: pa.float64(), Decimal: pa.float64(), str: pa.string()}
_NAMES: Final = {pa.bool_(): KINDS[bool], pa.float64(): KINDS[float], pa.string(): KINDS[str]}
_INFINITE: Final = (float("inf"), float("-inf"))


class JsonRows:
    """For the fields of one decoder. It keeps what it has learnt: one for each, and each process."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = fields
        self._decimals = any(_has(field.type, pa.types.is_decimal) for field in fields)
        read = [_as_read(field) for field in fields]
        self._quick = all(kind is not None for kind in read)
        self._flat = FlatReader(fields, read) if readable(read) else None
        self._schema = [
            pa.field(field.key, kind) for field, kind in zip(fields, read, strict=True) if kind is not None
        ]  # fmt: skip
        self._learnt: dict[str, Any] = {}  # unknown fields, by key
        self._refused: set[str] = set()  # keys whose values are of several types

    def decode(self, values: Any) -> Decoded:
        """Of a binary array without nulls."""
        if not len(values):
            return joined([], self.fields)
        if self._flat is not None:
            return self._compiled(self._flat, values)
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

    def _compiled(self, reader: FlatReader, values: Any) -> Decoded:
        while True:
            found = reader.read(values)
            rows = np.flatnonzero(found.odd)
            # Those of a new field are as many as there are messages: it is learnt, and they are read again.
            if len(rows) <= LEAF or not reader.learn(self._objects(values.take(pa.array(rows[:LEAF])))[0]):
                return self._finished(values, found.columns, found.new, found.odd)

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
        own, new = len(self.fields), []
        for key, column in zip(self._learnt, found[own:], strict=True):
            where = np.flatnonzero(pc.is_valid(column).to_numpy(zero_copy_only=False))
            new.append((where, noted(key, NEW, _NAMES[column.type])))
        return self._finished(values, found[:own], new, np.zeros(len(values), dtype=bool))

    def _finished(self, values: Any, found: list[Any], new: Notes, odd: Any) -> Decoded:
        """The columns in their own types. odd: rows that are Python's, to which those are added that do not fit."""
        columns = []
        for field, column in zip(self.fields, found, strict=True):
            made, fits = _made(field, column)
            columns.append(made)
            if fits is not None:
                odd |= ~fits
        drift = drift_of([*missing(self.fields, columns), *new], len(values))
        whole = Decoded(columns, pa.nulls(len(values), pa.string()), drift)
        if not odd.any():
            return whole
        rows = np.flatnonzero(odd)
        return replaced(whole, rows, self._slow(values.take(pa.array(rows))), self.fields)

    def _slow(self, values: Any) -> Decoded:
        """Row by row: the reasons are found here."""
        rows, problems = self._objects(values)
        if self._flat is None:
            self._learn(rows)
        return decoded(rows, problems, self.fields)

    def _objects(self, values: Any) -> tuple[list[dict[str, Any] | None], list[str | None]]:
        read = [read_object(value, decimals=self._decimals) for value in values.to_pylist()]
        return [row for row, _ in read], [problem for _, problem in read]

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
    ends, data = octets(values)
    if not len(data):
        return np.zeros(len(values), dtype=bool)
    first, last = np.minimum(ends[:-1], len(data) - 1), np.maximum(ends[1:] - 1, 0)
    plain = (np.diff(ends) > 1) & (data[first] == ord("{")) & (data[last] == ord("}"))
    body = data[ends[0] : ends[-1]].tobytes()
    brackets = body.count(b"[") + body.count(b"{") - len(values)
    if brackets > BRACKETS_MAX:
        each = np.add(pc.count_substring(values, "[").to_numpy(), pc.count_substring(values, "{").to_numpy())
        plain &= each <= BRACKETS_MAX
    return plain


def _as_read(field: Field) -> Any:
    """The type that Arrow is to read; None: it has no such, or not with our meaning."""
    if is_time(field):
        return pa.string() if field.unit is None else pa.float64() if field.unit in FLOATING else pa.int64()
    if pa.types.is_date(field.type):
        return pa.string()
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
    if pa.types.is_date(field.type):
        return _cast(field, column)
    if _has(field.type, lambda kind: kind in (pa.int32(), pa.float32())) and pa.types.is_nested(field.type):
        return _cast(field, column)
    if field.type == pa.int32():
        fits = pc.and_(pc.greater_equal(column, -(2**31)), pc.less(column, 2**31))
    else:
        fits = pc.less_equal(pc.abs(column), SINGLE_MOST)
    right = pc.fill_null(fits, True)
    made = pc.if_else(right, column, None).cast(field.type, safe=False)
    return made, right.to_numpy(zero_copy_only=False)


def _cast(field: Field, column: Any) -> tuple[Any, Any]:
    """All of it, or nothing: then Python reads these rows."""
    try:
        return column.cast(field.type), None
    except pa.ArrowInvalid:
        return pa.nulls(len(column), field.type), pc.is_null(column).to_numpy(zero_copy_only=False)


def _not_finite(column: Any) -> bool:
    """Is there a NaN or an infinity anywhere in it, which Arrow takes for JSON?"""
    kind = column.type
    if pa.types.is_floating(kind):
        return not pc.all(pc.is_finite(column)).as_py() if len(column) > column.null_count else False
    if pa.types.is_struct(kind):
        return any(_not_finite(child) for child in column.flatten())
    return _not_finite(column.flatten()) if pa.types.is_list(kind) else False


def _has(kind: Any, wanted: Any) -> bool:
    if pa.types.is_struct(kind):
        return any(_has(field.type, wanted) for field in kind)
    if pa.types.is_map(kind):
        return _has(kind.item_type, wanted)
    if pa.types.is_list(kind):
        return _has(kind.value_type, wanted)
    return bool(wanted(kind))
