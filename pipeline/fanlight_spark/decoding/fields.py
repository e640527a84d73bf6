"""What a decoder makes of a payload: fields with types, and what there is to say where a payload does not fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from fanlight_archive.arrow import pa, pc
from fanlight_spark.decoding import times
from fanlight_spark.decoding.type_names import TIMESTAMP

#: A row of `_drift`: what of a payload differs from the decoder. change: new, missing or type.
DRIFT: Final = pa.list_(pa.struct([("field", pa.string()), ("change", pa.string()), ("found", pa.string())]))
NEW, MISSING, CHANGED = "new", "missing", "type"
DRIFTS_MAX: Final = 32  # of a row: what a payload of ten thousand unknown fields may take
FOUND_MAX: Final = 200  # characters of a name or a value in a report

Note = dict[str, str | None]
Notes = list[tuple[Any, Note]]  # each with the rows that it is of, an ascending array of numpy


@dataclass(frozen=True, slots=True)
class Field:
    """A column.

    key       its name in the payload
    type      of the column, in Arrow
    optional  whether a payload without it is like any other, and not one in which it is missing
    unit      of a timestamp that is a number: s, ms, us, ns; None: it is text, or the format has a type for it
    zone      of a timestamp that does not say its own
    """

    name: str
    key: str
    type: Any
    optional: bool = False
    unit: str | None = None
    zone: str = "UTC"


class Decoded(NamedTuple):
    """Payloads as columns, a row each.

    columns   in the order of the decoder's fields; null in a row that has a problem
    problems  strings: why a payload could not be decoded; null where it could
    drift     of the type DRIFT; null where a payload is as the decoder says
    """

    columns: list[Any]
    problems: Any
    drift: Any


def joined(parts: Sequence[Decoded], fields: Sequence[Field]) -> Decoded:
    """Some parts, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Decoded([pa.array([], field.type) for field in fields], pa.array([], pa.string()), pa.array([], DRIFT))
    return Decoded(
        [pa.concat_arrays([part.columns[at] for part in parts]) for at in range(len(fields))],
        pa.concat_arrays([part.problems for part in parts]), pa.concat_arrays([part.drift for part in parts]),
    )  # fmt: skip


def replaced(all_of_them: Decoded, rows: Any, others: Decoded, fields: Sequence[Field]) -> Decoded:
    """The same with `others` at some rows, an ascending array of numbers."""
    count = len(all_of_them.problems)
    order = np.arange(count, dtype=np.int64)
    order[rows] = count + np.arange(len(rows), dtype=np.int64)
    both, places = joined([all_of_them, others], fields), pa.array(order)
    return taken(both, places)


def taken(found: Decoded, places: Any) -> Decoded:
    """Some rows, in some order."""
    columns = [column.take(places) for column in found.columns]
    return Decoded(columns, found.problems.take(places), found.drift.take(places))


def missing(fields: Sequence[Field], columns: Sequence[Any]) -> Notes:
    """Which fields rows are without."""
    return [
        (np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False)), noted(field.name, MISSING, None))
        for field, column in zip(fields, columns, strict=True)
        if not field.optional and column.null_count
    ]  # fmt: skip


def drift_of(notes: Notes, rows: int) -> Any:
    """The drift of so many rows, of each the notes in their order, DRIFTS_MAX at most."""
    if not any(len(where) for where, _ in notes):
        return pa.nulls(rows, DRIFT)
    where = np.concatenate([each for each, _ in notes])
    which = np.repeat(np.arange(len(notes)), [len(each) for each, _ in notes])
    order = np.argsort(where, kind="stable")
    where, which = where[order], which[order]
    kept = np.arange(len(where)) - np.searchsorted(where, where) < DRIFTS_MAX
    where, which = where[kept], which[kept]
    ends = np.searchsorted(where, np.arange(rows + 1)).astype(np.int32)
    texts = pa.array([note for _, note in notes], DRIFT.value_type).take(pa.array(which))
    found = pa.ListArray.from_arrays(pa.array(ends), texts, mask=pa.array(np.diff(ends) == 0))
    return found.cast(DRIFT)


def noted(field: str, change: str, found: str | None) -> Note:
    return {"field": field, "change": change, "found": found}


def shortened(text: str) -> str:
    """A name or a value of a payload, for a report: valid as UTF-8, and bounded."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= FOUND_MAX else f"{text[:FOUND_MAX]}…"


def instants(field: Field, values: Any) -> Any:
    """A column of timestamps from one of texts, or of numbers where the field has a unit."""
    return times.of_texts(values, field.zone) if field.unit is None else times.of_numbers(values, field.unit)


def is_time(field: Field) -> bool:
    return bool(field.type == TIMESTAMP)
