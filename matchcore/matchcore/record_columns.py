"""The columns of a record index: how the values of one attribute become rows, and what a test of it asks of them.

A record's value is text, a number, a boolean, something else that is present only (bytes, a list, a map), or absent.
Text without a type (`kleene.Untyped`) is text, and a number or a boolean besides if it can be read as one. So an
attribute has up to three domains beside the row of those records that have it:

    text      its distinct values in ascending order of UTF-8, and a row for each
    boolean   a row for TRUE and one for FALSE
    number    a code for each record, in range-encoded slices; codes are in the order of their values:
              linear     value = (base + code) / 10^scale: integers, and decimals as prices are
              listed     value = values[code], where that takes fewer bits, or nothing else is exact

In every domain a test is a list of intervals of codes, and a record without a code is unknown.
"""

import json
import math
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy

from matchcore.errors import InvalidFrozenIndex
from matchcore.kleene import COMPARED, is_like
from matchcore.record_texts import group_by_code
from matchcore.record_writing import encode_bits, encode_rows, encode_slices
from matchcore.selector import Like, Value

__all__ = [
    "Booleans",
    "DistinctTexts",
    "Interval",
    "Linear",
    "Listed",
    "NumberColumn",
    "TextColumn",
    "common",
    "joined",
    "number_section",
    "outside",
    "text_sections",
]  # fmt: skip

SCALES: Final = 9  # decimals: prices have 2, coordinates 7
LINEAR_AT_MOST: Final = 2**53  # of floats: below it m / 10^scale is exact where it is the nearest float
LISTED_AT_MOST: Final = 4_096  # values of which a list may take fewer bits than their distance
TABLE_AT_MOST: Final = 1 << 22  # codes of which a table says which there are
SAMPLE: Final = 8_192  # values that are looked at before all are
INTEGERS: Final = 2**62
Interval = tuple[int, int]  # of codes, both included
Array = Any


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of text: of each record the place of its value in `words`, -1 if it has none.

    words  distinct, as UTF-8, in any order
    """

    codes: Array
    words: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A column of numbers: int64 or float64, and of each record whether it has one. NaN counts as none."""

    values: Array
    known: Array
    basis: Sequence[int] | None = None


# -- writing -----------------------------------------------------------------------------------------------------------


def text_sections(column: TextColumn) -> tuple[bytes, bytes]:
    """(words, rows) of a column of text. The last row is of all that have one."""
    order = sorted(range(len(column.words)), key=column.words.__getitem__)
    words = [column.words[at] for at in order]
    place = numpy.empty(len(order), numpy.int32)
    place[order] = numpy.arange(len(order), dtype=numpy.int32)
    codes = numpy.ascontiguousarray(column.codes, dtype=numpy.int32)
    ids, bounds = group_by_code(codes, place)
    known = numpy.flatnonzero(codes >= 0).astype(numpy.uint32)
    bounds, ids = numpy.append(bounds, bounds[-1] + len(known)), numpy.concatenate([ids, known])
    ends = numpy.cumsum([len(word) for word in words], dtype=numpy.uint64)
    if len(ends) and ends[-1] >= 1 << 32:
        raise ValueError("the words of a column take more than 4 GiB")
    packed = struct.pack("<I", len(words)) + ends.astype("<u4").tobytes() + b"".join(words)
    return packed, encode_rows(ids, bounds)


def number_section(column: NumberColumn) -> tuple[dict[str, Any], bytes, bytes | None]:
    """(description, rows, values of a listed one or None) of a column of numbers. ValueError: not in its basis."""
    values, known = numpy.asarray(column.values), numpy.asarray(column.known, numpy.bool_)
    if values.dtype.kind == "f":
        known = known & ~numpy.isnan(values)
    present = values[known]
    codes = numpy.zeros(len(known), numpy.uint64)
    described: dict[str, Any]
    listed: bytes | None = None
    if column.basis is not None:
        described, top = {"scale": 0, "base": 0}, math.prod(column.basis) - 1
        if len(present) and not all(value == int(value) and 0 <= value <= top for value in present.tolist()):
            raise ValueError(f"a value is no integer from 0 to {top}, of basis {tuple(column.basis)}")
        basis = [*column.basis]
        codes[known] = present.astype(numpy.uint64)
    else:
        described, found, top = _linear(present)
        distinct = _distinct(present, found, top) if found is None or top.bit_length() > 1 else None
        if distinct is not None and (found is None or (len(distinct) - 1).bit_length() < top.bit_length()):
            described, top = {"scale": described.get("scale")}, len(distinct) - 1
            found = _places(present, distinct)
            listed = json.dumps(distinct).encode()
        codes[known] = numpy.asarray(found, numpy.uint64)
        basis = [2] * max(top.bit_length(), 1)
    described["basis"] = basis
    if set(basis) == {2}:
        return described, encode_bits(known.view(numpy.uint8), codes, len(basis)), listed
    return described, encode_slices(known.view(numpy.uint8), _digits(codes, basis), basis), listed


def _digits(codes: Array, basis: Sequence[int]) -> list[Array]:
    digits = []
    for radix in basis:
        digits.append((codes % radix).astype(numpy.uint32))
        codes = codes // radix
    return digits


def _linear(present: Array) -> tuple[dict[str, Any], Array | None, int]:
    """(description, codes, the highest) of values as integers over a power of ten; None if they are not that."""
    if not len(present):
        return {"scale": 0, "base": 0}, present.astype(numpy.uint64), 0
    if present.dtype.kind == "i":
        low, high = int(present.min()), int(present.max())
        return {"scale": 0, "base": low}, present.astype(numpy.uint64) - numpy.uint64(low % 2**64), high - low
    if present.dtype.kind == "f" and numpy.isfinite(present).all():
        some, largest = present[:SAMPLE], float(numpy.abs(present).max())
        for scale in range(SCALES + 1):
            if largest * 10.0**scale >= LINEAR_AT_MOST - 1:
                break
            if _whole(some, scale) is not None and (whole := _whole(present, scale)) is not None:
                codes = whole.astype(numpy.int64)
                low, high = int(codes.min()), int(codes.max())
                return {"scale": scale, "base": low}, (codes - low).astype(numpy.uint64), high - low
    return {}, None, 0


def _whole(present: Array, scale: int) -> Array | None:
    """The values times a power of ten, where all of them are integers of which they are the nearest floats."""
    whole = numpy.rint(present * 10.0**scale)
    return whole if (whole / 10.0**scale == present).all() else None


def _distinct(present: Array, codes: Array | None, top: int) -> list[int | float] | None:
    """The values in their order, once each; None where there are so many that their codes take no fewer bits.

    codes, top: what `_linear` has found
    """
    if codes is not None and top < TABLE_AT_MOST:
        marked = numpy.zeros(top + 1, numpy.bool_)
        marked[codes.astype(numpy.int64)] = True
        if (int(marked.sum()) - 1).bit_length() >= top.bit_length():
            return None
    elif codes is not None and len(numpy.unique(present[:SAMPLE])) * 2 > LISTED_AT_MOST:
        return None
    if present.dtype.kind in "if":
        found: list[int | float] = numpy.unique(present).tolist()
        return found
    return sorted({value: value for value in present.tolist()})


def _places(present: Array, distinct: Sequence[int | float]) -> Array:
    """Of each value its place among the distinct ones."""
    if present.dtype.kind in "if":
        return numpy.searchsorted(numpy.array(distinct, present.dtype), present)
    at = {value: code for code, value in enumerate(distinct)}
    return numpy.array([at[value] for value in present.tolist()], numpy.uint64)


# -- reading -----------------------------------------------------------------------------------------------------------


class DistinctTexts:
    """The distinct values of a column of text, ascending. ValueError: the bytes are none.

    Later InvalidFrozenIndex, where a text is outside of them or is no UTF-8.
    """

    def __init__(self, data: memoryview) -> None:
        if len(data) < 4:
            raise ValueError("words of less than 4 bytes")
        self.count: int = struct.unpack_from("<I", data)[0]
        base = 4 + 4 * self.count
        if base > len(data):
            raise ValueError(f"{self.count} words in {len(data)} bytes")
        self._data, self._base = data, base

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> bytes:
        if not 0 <= number < self.count:
            raise IndexError(number)
        first = struct.unpack_from("<I", self._data, 4 * number)[0] if number else 0
        end = struct.unpack_from("<I", self._data, 4 + 4 * number)[0]
        if not first <= end <= len(self._data) - self._base:
            raise InvalidFrozenIndex(None, f"text {number} is outside its section")
        return bytes(self._data[self._base + first : self._base + end])

    def text(self, number: int) -> str:
        try:
            return self[number].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise InvalidFrozenIndex(None, f"text {number}: {error}") from error

    def compared(self, operator: str, value: Value) -> list[Interval]:
        key = str(value).encode("utf-8", "surrogatepass")
        low = bisect_left(self, key)
        return _ordered(operator, low, low + (low < self.count and self[low] == key), self.count)

    def matching(self, matches: Callable[[bytes], bool], prefix: bytes = b"") -> list[Interval]:
        """Of the texts that begin with a prefix, those that match. Raises InvalidFrozenIndex."""
        return joined((number, number) for number in self._beginning(prefix) if matches(self[number]))

    def like(self, test: Like) -> list[Interval]:
        pieces = test.pieces
        plain = next((at for at, piece in enumerate(pieces) if not piece), len(pieces))
        prefix = "".join(piece or "" for piece in pieces[:plain]).encode("utf-8", "surrogatepass")
        numbers = self._beginning(prefix)
        return joined((number, number) for number in numbers if is_like(self.text(number), pieces))

    def _beginning(self, prefix: bytes) -> Iterator[int]:
        for number in range(bisect_left(self, prefix), self.count):
            if not self[number].startswith(prefix):
                return
            yield number


class Linear:
    """Numbers by their codes: (base + code) / 10^scale."""

    def __init__(self, base: int, scale: int, count: int) -> None:
        self.base, self.scale, self.count = base, scale, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, code: int) -> int | float:
        whole = self.base + code
        return whole / 10**self.scale if self.scale else whole

    def compared(self, operator: str, value: Value) -> list[Interval]:
        return _compared_numbers(self, operator, value)


class Listed:
    """Numbers by their codes: a list, ascending. `scale`: they are integers over that power of ten; or None."""

    def __init__(self, values: list[int | float], scale: int | None) -> None:
        self.values, self.count, self.scale = values, len(values), scale

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, code: int) -> int | float:
        if not 0 <= code < self.count:
            raise InvalidFrozenIndex(None, f"code {code} of {self.count} values")
        return self.values[code]

    def compared(self, operator: str, value: Value) -> list[Interval]:
        return _compared_numbers(self, operator, value)


class Booleans:
    """TRUE and FALSE, by their codes 1 and 0."""

    count = 2

    def __getitem__(self, code: int) -> bool:
        return code == 1

    def compared(self, operator: str, value: Value) -> list[Interval]:
        return joined((code, code) for code in (0, 1) if COMPARED[operator](code - bool(value)))


def _compared_numbers(numbers: "Linear | Listed", operator: str, value: Value) -> list[Interval]:
    low, high = _first_at(numbers, lambda found: found >= value), _first_at(numbers, lambda found: found > value)
    return _ordered(operator, low, high, numbers.count)


def _first_at(numbers: "Linear | Listed", reached: Callable[[Any], bool]) -> int:
    """The first code whose value has reached something; not by `bisect`, which takes no more than 2^63 codes."""
    low, high = 0, numbers.count
    while low < high:
        middle = (low + high) // 2
        if reached(numbers[middle]):
            high = middle
        else:
            low = middle + 1
    return low


def _ordered(operator: str, low: int, high: int, count: int) -> list[Interval]:
    """Codes by a comparison with a value that is at `low` to before `high`; there is none if these are the same."""
    kept = {"<": [(0, low)], "<=": [(0, high)], "=": [(low, high)], ">=": [(low, count)], ">": [(high, count)],
            "<>": [(0, low), (high, count)]}[operator]  # fmt: skip
    return [(first, end - 1) for first, end in kept if first < end]


def joined(found: Iterable[Interval]) -> list[Interval]:
    """The same codes in as few intervals as there can be, ascending."""
    all_: list[Interval] = []
    for low, high in sorted(found):
        if all_ and low <= all_[-1][1] + 1:
            all_[-1] = (all_[-1][0], max(all_[-1][1], high))
        else:
            all_.append((low, high))
    return all_


def outside(found: Sequence[Interval], count: int) -> list[Interval]:
    """The codes of a domain that are in none of the intervals, which are `joined`."""
    firsts, lasts = [0, *(high + 1 for _, high in found)], [*(low - 1 for low, _ in found), count - 1]
    return [(first, last) for first, last in zip(firsts, lasts, strict=True) if first <= last]


def common(one: Sequence[Interval], other: Sequence[Interval], count: int) -> list[Interval]:
    """The codes that are in both."""
    return outside(joined([*outside(one, count), *outside(other, count)]), count)
