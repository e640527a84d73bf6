"""JSON payloads without structs and arrays to columns of Arrow, compiled: `matchcore.json_columns`.

It reads what is as it should be and says which payloads are odd; json_rows.py has Python read those. A key that the
decoder does not have makes a payload odd, once: it is then looked out for like the others, LEARNT_MAX of them at most,
so that new fields are counted at full speed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fanlight_archive.arrow import pa
from fanlight_spark.decoding.fields import NEW, Field, Notes, noted, shortened
from matchcore.json_columns import KINDS, PRESENT, JsonColumns

LEARNT_MAX: Final = 64  # unknown keys
_KINDS: Final = {
    pa.bool_(): KINDS.index("boolean"), pa.int64(): KINDS.index("integer"), pa.float64(): KINDS.index("real"),
    pa.string(): KINDS.index("text"),
}  # fmt: skip


class Flat(NamedTuple):
    """columns, in the types as they are read; odd: which rows are not to be used; new: notes of unknown keys."""

    columns: list[Any]
    odd: Any
    new: Notes


class FlatReader:
    """For the fields of one decoder. It keeps what it has learnt."""

    def __init__(self, fields: Sequence[Field], kinds: Sequence[Any]) -> None:
        """kinds: in which type each field is read; those of `readable`."""
        self._keys = [field.key.encode() for field in fields]
        self._kinds = list(kinds)
        self._learnt: list[str] = []
        self._columns = self._made()

    def read(self, values: Any) -> Flat:
        """Of a binary array without nulls."""
        ends, data = octets(values)
        found, odd = self._columns.read(ends, data)
        own = len(self._keys)
        columns = [_array(kind, len(values), *each) for kind, each in zip(self._kinds, found[:own], strict=True)]
        new = []
        for key, (present,) in zip(self._learnt, found[own:], strict=True):
            if present.any():
                new += [
                    (np.flatnonzero((present == kind) & ~odd), noted(shortened(key), NEW, PRESENT[kind]))
                    for kind in np.unique(present) if kind
                ]  # fmt: skip
        return Flat(columns, odd, new)

    def learn(self, rows: Iterable[Mapping[str, Any] | None]) -> bool:
        """Look out for the unknown keys of these, from now on; whether there are any."""
        known = {*self._keys, *(key.encode() for key in self._learnt)}
        before = len(self._learnt)
        for row in rows:
            for key, value in (row or {}).items():
                if len(self._learnt) == LEARNT_MAX:
                    break
                if value is not None and (name := _encoded(key)) is not None and name not in known:
                    known.add(name)
                    self._learnt.append(key)
        if len(self._learnt) == before:
            return False
        self._columns = self._made()
        return True

    def _made(self) -> JsonColumns:
        kinds = [*(_KINDS[kind] for kind in self._kinds), *[KINDS.index("presence")] * len(self._learnt)]
        return JsonColumns([*self._keys, *(key.encode() for key in self._learnt)], bytes(kinds))


def readable(kinds: Iterable[Any]) -> bool:
    """Are these types all without structs and arrays?"""
    return all(kind in _KINDS for kind in kinds)


def octets(values: Any) -> tuple[Any, Any]:
    """(the bounds of each payload, all octets) of a binary array without nulls, as arrays of numpy."""
    _, bounds, data = values.buffers()
    ends = np.frombuffer(bounds, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    return ends, np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)


def _array(kind: Any, rows: int, *buffers: Any) -> Any:
    return pa.Array.from_buffers(kind, rows, [pa.py_buffer(each) for each in buffers])


def _encoded(key: str) -> bytes | None:
    """None: half of a surrogate pair is in it."""
    try:
        return key.encode()
    except UnicodeEncodeError:
        return None
