"""Which rows of an archive a query wants, and which of its batches have to be read for that.

By the options `filter` and `where`, and by what Spark has said of topics. The indexes beside closed segments leave out
batches in which nothing can match; what is left is asked row by row, as the broker asks the messages of a replay. So an
index changes what is read, and not what is found.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matchcore
from fanlight_archive import Archive
from fanlight_archive.arrow import pa, pc
from fanlight_archive.indexes import read_index
from fanlight_archive.manifest import Span
from fanlight_spark.topics import matched, wants
from matchcore.message_index import IndexedSegments, MessageLookup, prefixes_of
from matchcore.message_rows import MessageRows
from matchcore.row_screener import RowScreener
from matchcore.selector import Selector

if TYPE_CHECKING:
    from fanlight_spark.pushdown import Wanted  # it needs Spark

log: Final = logging.getLogger(__name__)
#: Of a batch that is made of several: an archive has those of 4,096 messages at most.
MERGED_ROWS: Final = 32_768
MERGED_BYTES: Final = 16 << 20


class Selection:
    """For one task, or for the planning of a query.

    filter    a topic filter and its syntax, `index` of it alone; None: all topics
    selector  what is to be true of a message; None: nothing is asked
    wanted    what Spark has pushed down
    """

    def __init__(
        self, filter: tuple[str, str] | None, index: matchcore.FrozenIndex | None, selector: Selector | None,
        wanted: "Wanted | None" = None,
    ) -> None:
        self._filter, self._index, self._selector = filter, index, selector
        self._conditions = wanted if wanted is not None and wanted.topics else None
        self._screener = None if selector is None else RowScreener(selector)

    @property
    def is_everything(self) -> bool:
        return self._index is None and self._selector is None and self._conditions is None

    @property
    def is_of_topics(self) -> bool:
        """Is nothing asked but the filter?"""
        return self._selector is None and self._conditions is None

    def mask(self, batch: Any) -> Any:
        """Of each row of a batch whether it is wanted, a boolean array; None: all are."""
        topics, syntaxes = (batch.column(batch.schema.get_field_index(name)) for name in ("topic", "syntax"))
        found = None if self._index is None else matched(self._index, topics, syntaxes)
        if self._conditions is not None:
            encoded = topics.dictionary_encode()
            hold = pa.array([self._conditions.wants(topic) for topic in encoded.dictionary.to_pylist()], pa.bool_())
            hold = hold.take(encoded.indices)
            found = hold if found is None else pc.and_(found, hold)
        if self._screener is None:
            return found
        if found is None:
            return pa.array(self._screener.true_of(MessageRows(batch)))
        rows = pc.indices_nonzero(found)
        true = self._screener.true_of(MessageRows(batch.take(rows)))
        mask = found.to_numpy(zero_copy_only=False).copy()
        mask[rows.to_numpy()] = true
        return pa.array(mask)

    def indexes(self, archive: Archive) -> IndexedSegments[Span] | None:
        """What says which rows of its closed segments may be wanted; None: all of them are."""
        if self.is_everything:
            return None
        prefixes = {} if self._filter is None else prefixes_of(*self._filter)
        topics = None if self._index is None and self._conditions is None else self._wants_topic
        return IndexedSegments(
            partial(read_index, Path(archive.folder), archive.id),
            MessageLookup(topics, prefixes, self._selector), _report,
        )  # fmt: skip

    def _wants_topic(self, topic: bytes, syntax: str) -> bool:
        text = topic.decode()
        if self._conditions is not None and not self._conditions.wants(text):
            return False
        return self._index is None or wants(self._index, text, syntax)


def merged(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows in larger batches, as what is done once for each batch costs as much as some thousand rows."""
    waiting: list[Any] = []
    rows = octets = 0
    for batch in batches:
        if waiting and (rows + batch.num_rows > MERGED_ROWS or octets + batch.nbytes > MERGED_BYTES):
            yield _joined(waiting)
            waiting, rows, octets = [], 0, 0
        waiting.append(batch)
        rows, octets = rows + batch.num_rows, octets + batch.nbytes
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Any]) -> Any:
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def worth_reading(
    archive: Archive, selection: Selection, ranges: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Those of some ascending ranges of offsets in which a message may be wanted."""
    indexes = selection.indexes(archive)
    if indexes is None:
        yield from ranges
        return
    chosen: dict[int, Sequence[int] | None] = {}  # by the first offset of a segment; of one or two at a time
    for first, end in ranges:
        spans = [span for span in archive.spans if span.first < end and span.end > first]
        chosen = {span.first: chosen.get(span.first) for span in spans if span.first in chosen}
        reached, found = first, False
        for span in spans:
            if span.first not in chosen:
                chosen[span.first] = indexes.select(span)
            rows = chosen[span.first]
            may = rows is None or _has_between(rows, first - span.first, end - span.first)
            found = found or may or span.first > reached  # a gap is reported by those who read it
            reached = span.end
        if found or reached < end:  # what no closed segment has is in the open one
            yield first, end


def _has_between(rows: Sequence[int], first: int, end: int) -> bool:
    return bisect_left(rows, first) < bisect_left(rows, end)


def _report(span: Span, reason: object) -> None:
    log.warning("the index of %s is not asked: %s", span.name, reason)
