"""The selectors of a frozen index: a section of its bytes, read where it lies.

    head         index size u64, filters u32, subscriptions u32, texts u32, 0 u32, bytes of texts u64; zeros up to 64
    index        a frozen index of format 2: the filters that have selectors, each with its number as its id
    firsts       u32, one more than filters: the subscriptions of filter n are firsts[n] to before firsts[n + 1]
    ids          u32 a subscription, ascending within a filter
    text numbers u32 a subscription
    ends         u32, one more than texts: text n is texts[ends[n]:ends[n + 1]]
    texts        UTF-8, each different one once

What a selector says is its text; how it is compiled may change between versions. docs/frozen-format.md has the page.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from matchcore.errors import InvalidFrozenIndex

__all__ = ["StoredSelectors", "packed"]

HEAD = struct.Struct("<QIIIIQ32x")
INDEX_FORMAT = struct.Struct("<8xI")
FORMAT = 2  # of the index of filters: it has no selectors of its own
MOST = 2**32 - 1


def packed(index: bytes, texts: Sequence[Mapping[int, str]]) -> bytes:
    """The section: `index` has a number for each filter, by which `texts` has {id: where}. Raises ValueError."""
    numbers: dict[str, int] = {}
    firsts, ids, places = [0], [], []
    for of_filter in texts:
        for id, text in sorted(of_filter.items()):
            ids.append(id)
            places.append(numbers.setdefault(text, len(numbers)))
        firsts.append(len(ids))
    encoded = [text.encode("utf-8", "surrogatepass") for text in numbers]
    size = sum(map(len, encoded))
    if size > MOST or len(ids) > MOST:
        raise ValueError(f"{len(ids)} selectors of {size} bytes, more than a frozen index can have")
    ends = numpy.cumsum([0, *map(len, encoded)], dtype=numpy.int64)
    head = HEAD.pack(len(index), len(texts), len(ids), len(encoded), 0, size)
    return b"".join([head, index, *(_numbers(each) for each in (firsts, ids, places, ends)), *encoded])


def _numbers(values: Any) -> bytes:
    return numpy.asarray(values, dtype="<u4").tobytes()


class StoredSelectors:
    """The section, opened: nothing is copied, and no selector is read before it is asked for.

    filters        that have selectors, or had: their numbers are below this
    subscriptions  with a selector
    index          bytes of the frozen index of these filters
    """

    def __init__(self, section: memoryview, verify: bool = True) -> None:
        if len(section) < HEAD.size:
            raise InvalidFrozenIndex(None, "they end within their head")
        size, self.filters, self.subscriptions, texts, zero, text_bytes = HEAD.unpack_from(section)
        counts = (self.filters + 1, self.subscriptions, self.subscriptions, texts + 1)
        if zero != 0 or HEAD.size + size + 4 * sum(counts) + text_bytes != len(section):
            raise InvalidFrozenIndex(None, "their counts do not agree with their size")
        at = HEAD.size + size
        self.index = section[HEAD.size : at]
        if size < HEAD.size or INDEX_FORMAT.unpack_from(self.index)[0] != FORMAT:
            raise InvalidFrozenIndex(None, "the index of their filters has another format")
        arrays: list[NDArray[numpy.uint32]] = []
        for count in counts:
            arrays.append(numpy.frombuffer(section[at : at + 4 * count], dtype="<u4"))
            at += 4 * count
        self._firsts, self._ids, self._places, self._ends = arrays
        self._text = section[at:]
        if verify:
            self._check(texts)

    def _check(self, texts: int) -> None:
        for ends, size in ((self._firsts, self.subscriptions), (self._ends, len(self._text))):
            if ends[0] != 0 or ends[-1] != size or (ends[1:] < ends[:-1]).any():
                raise InvalidFrozenIndex(None, "a list of them ends before it begins, or beyond the end")
        if (self._places >= texts).any():
            raise InvalidFrozenIndex(None, "one has a text that is not there")

    def texts(self, number: int) -> dict[int, str]:
        """{id: where} of a filter. Raises InvalidFrozenIndex: they were not verified, and lead elsewhere."""
        first, end = int(self._firsts[number]), int(self._firsts[number + 1])
        try:
            return {
                id: bytes(self._text[self._ends[place] : self._ends[place + 1]]).decode("utf-8", "surrogatepass")
                for id, place in zip(self._ids[first:end].tolist(), self._places[first:end].tolist(), strict=True)
            }
        except (IndexError, UnicodeDecodeError) as error:
            raise InvalidFrozenIndex(None, f"a selector of filter {number} is none: {error}") from error
