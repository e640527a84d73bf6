"""The index beside a closed segment of the archive: a matchcore.FrozenRecordIndex whose records are its messages.

    $topic[amqp], $topic[mqtt]     the topics in either syntax, with the rows of each
    the fields that settings name  their numbers, in bit slices; no text and no presence
    notes                          which segment it is of; the latest time of each BLOCK of rows, or of more

`SegmentIndexer` makes it in the archive's thread, of the batches as they are written (fanlight_archive.indexes).
`SegmentRows` reads it for a replay: which rows of a segment may match a filter and a selector, and from which row on a
time may be. An index that is not there, is damaged, is of another version or of another segment says nothing, and the
segment is read as a whole. What an index says is never less than what matches.
"""

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy

from fanlight_archive.arrow import pc
from fanlight_archive.indexes import identity, read_index
from fanlight_archive.manifest import Span
from fanlight_broker import event_log
from fanlight_broker.core.condition import Condition
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.storage.archived_rows import RowFormats
from matchcore.field_numbers import FieldNumbers
from matchcore.message_index import TOPIC, IndexedSegments, MessageLookup, prefixes_of
from matchcore.message_rows import MessageRows
from matchcore.record_texts import TextCodes
from matchcore.records import ColumnOf, TextColumn, freeze_columns
from matchcore.selector import Attribute, Present
from matchcore.where import parse_where

log: Final = event_log.get("archive")

ROWS_MAX: Final = 8_000_000  # of a segment that is indexed: 32 MB of codes while it is open
TOPICS_SHARE: Final = 10  # topics take a tenth of their segment at most; with more they are left out
BLOCK: Final = 1_024  # rows for which a latest time is kept
OTHERS: Final = frozenset(("text", "boolean", "present"))


class SegmentIndexer:
    """fanlight_archive.indexes.Indexer.

    fields        those whose numbers are indexed
    topics_share  topics are left out where they would take more than 1/topics_share of the segment; 0: never
    body_formats  the setting payload_format, which is noted: another one finds other numbers
    """

    def __init__(
        self, fields: Sequence[Attribute] = (), *, topics_share: int = TOPICS_SHARE, body_formats: str = ""
    ) -> None:
        self._topics_share, self._body_formats = topics_share, body_formats
        self._numbers = FieldNumbers(fields)
        self._formats = RowFormats(body_formats if self._numbers.asks_bodies else "")
        self._rows = 0
        self._topics = {syntax: TextCodes(secrets.randbits(64)) for syntax in SYNTAXES}
        self._syntaxes: list[Any] = []  # the syntax of each row, by its number, a batch each
        self._times: list[tuple[int, int]] = []  # (end of the rows, latest time in them)

    def add(self, batch: Any) -> None:
        end = self._rows + batch.num_rows
        if end <= ROWS_MAX:
            self._add_topics(batch)
            self._add_times(batch, end)
            if self._numbers.fields:
                self._numbers.add(MessageRows(batch, self._formats.of(batch)), self._rows)
        self._rows = end

    def finish(self, span: Span, archive: str) -> bytes | None:
        if not 0 < self._rows <= ROWS_MAX or self._rows != span.end - span.first:
            return None
        columns = {
            field: ColumnOf(numbers=numbers, lacks=OTHERS)
            for field, numbers in zip(self._numbers.fields, self._numbers.columns(self._rows), strict=True)
        }
        notes = {**identity(span, archive), "times": self._times, "body_formats": self._body_formats}
        without = freeze_columns(self._rows, columns, notes=notes)
        room = span.size // self._topics_share if self._topics_share else 1 << 62
        if self._rows + 8 * sum(map(len, self._topics.values())) > room:  # the least that it takes
            return without
        whole = freeze_columns(self._rows, columns | self._topic_columns(), notes=notes)
        return whole if len(whole) - len(without) <= room else without

    def _add_topics(self, batch: Any) -> None:
        topics, spelled = _column(batch, "topic"), _column(batch, "syntax")
        present = _only_value(spelled)
        numbers = numpy.empty(batch.num_rows, numpy.int8)
        for number, (syntax, codes) in enumerate(self._topics.items()):
            if syntax == present:
                codes.add(*_octets_of(topics))
                numbers[:] = number
            elif present is None:
                mask = pc.equal(spelled, syntax)
                codes.add(*_octets_of(topics.filter(mask)))
                numbers[mask.to_numpy(zero_copy_only=False)] = number
        self._syntaxes.append(numbers)

    def _topic_columns(self) -> dict[Attribute, ColumnOf]:
        columns = {}
        syntaxes = numpy.concatenate(self._syntaxes)
        for number, (syntax, texts) in enumerate(self._topics.items()):
            if not texts.rows:
                continue
            found, words = texts.finish()
            codes = found.astype(numpy.int32)
            if texts.rows < self._rows:
                codes = numpy.full(self._rows, -1, numpy.int32)
                codes[syntaxes == number] = found
            columns[TOPIC[syntax]] = ColumnOf(texts=TextColumn(codes, words), lacks=OTHERS - {"text"})
        return columns

    def _add_times(self, batch: Any, end: int) -> None:
        latest = int(_fixed(_column(batch, "timestamp"), numpy.int64).max())
        times = self._times
        if times and self._rows - (times[-2][0] if len(times) > 1 else 0) < BLOCK:
            times[-1] = (end, max(times[-1][1], latest))
        else:
            times.append((end, latest))


class SegmentRows(IndexedSegments[Span]):
    """Which rows of closed segments a replay has to look at.

    wants         whether it wants the messages of a topic in a syntax
    body_formats  the setting payload_format; the numbers of an index that was made with another one are not asked
    """

    def __init__(
        self,
        folder: Path,
        archive: str,
        filter: bytes,
        syntax: str,
        wants: Callable[[bytes, str], bool],
        condition: Condition | None,
        body_formats: str = "",
    ) -> None:
        selector = None if condition is None else condition.selector
        lookup = MessageLookup(wants, prefixes_of(filter, syntax), selector, body_formats)
        super().__init__(partial(read_index, folder, archive), lookup, _report)


def fields_named(text: str) -> tuple[Attribute, ...]:
    """The attributes of `archive_index_fields`: names separated by commas, as selectors write them.

    Raises InvalidSelector.
    """
    found: dict[Attribute, None] = {}
    for name in text.split(","):
        if name.strip():
            test = parse_where(f"{name.strip()} IS NOT NULL")
            assert isinstance(test, Present)
            found[test.attribute] = None
    return tuple(found)


def _column(batch: Any, name: str) -> Any:
    return batch.column(batch.schema.get_field_index(name))


def _fixed(column: Any, kind: Any) -> Any:
    """The values of a column of numbers without nulls, where they are."""
    return numpy.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def _octets_of(column: Any) -> tuple[Any, Any, int, int]:
    """The buffers of a column of text without nulls: ends, octets; its first row and how many."""
    _, ends, octets = column.buffers()
    return memoryview(ends).cast("i"), memoryview(octets or b"").cast("B"), column.offset, len(column)


def _only_value(column: Any) -> str | None:
    """The text that all rows have; None if they differ. The column is not empty, and has no nulls."""
    ends, octets, first, count = _octets_of(column)
    bounds = numpy.frombuffer(ends, numpy.int32)[first : first + count + 1]
    value = bytes(octets[bounds[0] : bounds[1]])
    if (bounds[1:] - bounds[:-1] != len(value)).any():
        return None
    return value.decode() if bytes(octets[bounds[0] : bounds[-1]]) == value * count else None


def _report(span: Span, reason: object) -> None:
    log.warning("archive_index_ignored", segment=span.name, reason=str(reason))
