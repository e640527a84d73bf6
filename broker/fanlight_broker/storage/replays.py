"""Replays: a thread reads the archive for clients, one part at a time.

A part is about 32 KiB of whole frames, made in the thread by the protocol's `encode`. Reading, filtering and encoding
take nothing of the loop but the GIL, which the thread gives back every few milliseconds. A replay asks for its next
part when the one before has been sent, so each replay reads at most one batch ahead. A part also ends, with few
messages or none, when it has read BATCHES_MAX batches: so a filter that matches little delays neither other replays nor
a stop.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

from fanlight_archive import Archive as Reader
from fanlight_archive import ArchiveError, Gone, Loss, Missing
from fanlight_archive.arrow import pa, pc
from fanlight_broker import event_log
from fanlight_broker.core.archive_selection import TopicSelection
from fanlight_broker.core.condition import Condition
from fanlight_broker.core.content import Content
from fanlight_broker.core.errors import FanlightError, MessagesGone, ReplayFailed
from fanlight_broker.core.replay import Encode, ReplayPart, ReplayRequest, ReplayStart
from fanlight_broker.core.topics import NAMESPACE_ROOT, SYNTAXES, first_word, namespace_prefix
from fanlight_broker.storage.archive_index import SegmentRows
from fanlight_broker.storage.archived_rows import NUMBERS, RowFormats, shown_value, values_of
from matchcore.message_rows import MessageRows
from matchcore.row_screener import RowScreener

log: Final = event_log.get("archive")

BATCHES_MAX: Final = 32  # read for one part
PART_BYTES: Final = 32 * 1024  # half of control_bytes_max: the client can still send requests during a replay
ROWS: Final = 256  # converted to Python objects at a time
ANSWER: Final = ("offset", "timestamp", "topic", "value", "headers", "syntax", "content_type", "reply_topic",
                 "correlation")  # fmt: skip


class CallbackLoop(Protocol):
    def call_soon_threadsafe(self, callback: Callable[..., Any], *args: Any) -> Any: ...


class ArchiveReplays:
    """selector_of   makes what asks a selector, for the thread; needed where replays have selectors
    indexed       whether the indexes of closed segments are asked
    body_formats  the setting payload_format
    """

    def __init__(
        self, folder: Path, loop: CallbackLoop, selector_of: Callable[[Condition], RowScreener] | None = None,
        *, indexed: bool = True, body_formats: str = "",
    ) -> None:
        self.folder, self.loop, self.selector_of = folder, loop, selector_of
        self.indexed, self.body_formats = indexed, body_formats
        self.formats = RowFormats(body_formats)  # for the thread
        self.messages = 0
        self.readings: set[ArchiveReading] = set()  # those that have not ended
        self._numbers = count(1)
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="replay")
        self._stopping, self._stopped = Lock(), False
        self.open: set[ArchiveReading] = set()  # those that may have a file of the archive open

    @property
    def running(self) -> int:
        return len(self.readings)

    def read(self, wanted: ReplayRequest, encode: Encode, size: Callable[[Any], int] = len) -> "ArchiveReading":
        return ArchiveReading(self, next(self._numbers), wanted, encode, size)

    def submit(self, work: Callable[..., None], *arguments: Any) -> None:
        """Let the thread do it. After `stop` nothing is read any more: the work is dropped."""
        with self._stopping:
            if not self._stopped:
                self._threads.submit(work, *arguments)

    def stop(self) -> None:
        """End the thread, and close what it has open. Blocks while it reads; the loop may go on, and submit work that
        is dropped.
        """
        with self._stopping:
            self._stopped = True
        self._threads.shutdown(wait=True, cancel_futures=True)
        for reading in list(self.open):
            reading.let_go()


class ArchiveReading:
    """`core.replay.ReplayReader`.

    position  the offset from which on it has read nothing yet; None before its first part
    """

    def __init__(
        self, replays: ArchiveReplays, number: int, wanted: ReplayRequest, encode: Encode, size: Callable[[Any], int]
    ) -> None:
        self.number, self.messages = number, 0
        self.position: int | None = None
        self._replays, self._wanted, self._encode, self._size = replays, wanted, encode, size
        self._selection = TopicSelection([(wanted.filter, wanted.syntax)])
        self._before = {
            syntax: namespace_prefix(wanted.namespace, syntax) if wanted.namespace else b"" for syntax in SYNTAXES
        }
        self._selector: RowScreener | None = None
        if wanted.condition is not None:
            assert replays.selector_of is not None
            self._selector = replays.selector_of(wanted.condition)
        self._reader: Reader | None = None
        self._rows_of: SegmentRows | None = None  # with the reader
        self._batches: Iterator[Any] | None = None
        self._frames: Iterator[tuple[int, Any]] | None = None  # of the current batch
        self._until = 0  # the offset at which they end
        self._next = 0  # the offset to read next
        self._epoch = 0  # of that offset
        self._kept: ReplayStart | None = None  # of the part that is being read, if it is the first
        self._gone: Gone | None = None  # to be raised after the part that was returned last
        self._searching: Iterator[None] | None = None  # for the last message
        self._closed = False
        replays.readings.add(self)

    @property
    def wanted(self) -> ReplayRequest:
        return self._wanted

    def ask(self, end: int | None, then: Callable[[ReplayPart], None]) -> None:
        self._replays.submit(self._part, end, then)

    def begin_at(self, offset: int) -> None:
        self._wanted = self._wanted._replace(offset=offset)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._replays.readings.discard(self)
            self._replays.submit(self.let_go)  # after the part that the thread may be reading

    # -- in the thread ------------------------------------------------------------------------------------------------

    def let_go(self) -> None:
        self._batches = self._frames = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._replays.open.discard(self)

    def _part(self, end: int | None, then: Callable[[ReplayPart], None]) -> None:
        if self._closed:
            return
        try:
            part = self._gather(end)
        except Gone as error:
            part = ReplayPart(error=MessagesGone(str(error), first=error.first, end=error.end))
        except FanlightError as error:
            part = ReplayPart(error=error)
        except (ArchiveError, OSError) as error:
            part = ReplayPart(error=ReplayFailed(f"the archive cannot be read: {error}"))
        except Exception as error:  # the client waits for an answer in any case
            log.exception("replay_failed", wanted=self._wanted)
            part = ReplayPart(error=ReplayFailed(f"the archive cannot be read: {error!r}"))
        part, self._kept = part._replace(kept=self._kept), None
        self._replays.messages += len(part.messages)
        self.messages += len(part.messages)
        if part.error is None:
            self.position = part.offset
        self._replays.loop.call_soon_threadsafe(then, part)

    def _gather(self, end: int | None) -> ReplayPart:
        reader = self._reader
        if reader is None:
            self._replays.open.add(self)
            reader = self._reader = Reader(self._replays.folder)
            if self._replays.indexed:
                wanted = self._wanted
                # An index has topics as they are archived: what a selector says of them is not for it.
                condition = wanted.condition if not wanted.namespace else None
                self._rows_of = SegmentRows(
                    self._replays.folder, reader.id, self._before[wanted.syntax] + wanted.filter, wanted.syntax,
                    self._wants, condition, self._replays.body_formats,
                )
            self._next, self._epoch = self._first(reader), reader.epoch
            self._kept = ReplayStart(
                reader.id, reader.start, reader.end, self._next, reader.size_between(reader.start, reader.end),
                reader.oldest_end,
            )  # fmt: skip
        if self._gone is not None:
            raise self._gone
        found: list[Any] = []
        try:
            return self._filled(reader, end, found)
        except Gone as error:
            if not found:
                raise
            self._gone = error  # raised by the next part: first the messages before the gap
            return ReplayPart(found, self._next, self._epoch)

    def _filled(self, reader: Reader, end: int | None, found: list[Any]) -> ReplayPart:
        size = looked_at = 0
        if self._searching is not None:
            for _ in islice(self._searching, BATCHES_MAX):
                looked_at += 1
            if looked_at == BATCHES_MAX:
                return ReplayPart(found, self._next, reader.epoch)
            self._searching = None
        while True:
            if self._frames is None and self._batches is None:
                reader.refresh()
                if reader.epoch != self._epoch:
                    if self._wanted.patient:
                        self._next = min(self._next, reader.end)
                    else:
                        reader.check(self._epoch, self._next)  # recovery may have removed what was read
                    self._epoch = reader.epoch
                until = reader.end if end is None else min(end, reader.end)
                if self._next >= until:
                    return ReplayPart(found, self._next, reader.epoch, True)
                select = None if self._rows_of is None else self._rows_of.select
                self._batches = reader.read(self._next, until, lost=self._lost, select=select)
                self._until = until
            if self._frames is None:
                assert self._batches is not None
                batch = next(self._batches, None)
                if batch is None:
                    self._batches, self._next = None, self._until  # skips offsets without a message
                    continue
                looked_at += 1
                self._frames = self._rows(batch) if batch.num_rows else iter(())
            for offset, frame in self._frames:
                self._next = offset + 1
                found.append(frame)
                size += self._size(frame)
                if size >= PART_BYTES:
                    return ReplayPart(found, self._next, reader.epoch)
            self._frames = None
            if looked_at >= BATCHES_MAX:
                return ReplayPart(found, self._next, reader.epoch)

    def _lost(self, loss: Loss) -> None:
        """Messages are missing in the middle: an error for a client that keeps positions; other clients skip them."""
        if not self._wanted.patient and (self._wanted.epoch is not None or not isinstance(loss.error, Missing)):
            raise loss.error
        log.warning("replay_passed_over", first=loss.first, end=loss.end, reason=str(loss.error))

    def _first(self, reader: Reader) -> int:
        wanted = self._wanted
        if wanted.offset is not None and wanted.patient:
            return min(max(wanted.offset, reader.start), reader.end)
        if wanted.offset is not None:
            reader.check(reader.epoch if wanted.epoch is None else wanted.epoch, wanted.offset)
            if wanted.offset < reader.start:
                raise Gone(wanted.offset, reader.start, "retention has removed them")
            return wanted.offset
        if wanted.since is not None:
            return reader.offset_at(wanted.since, None if self._rows_of is None else self._rows_of.first_since)
        if wanted.last:
            self._searching = self._search(reader)
        return reader.start

    def _search(self, reader: Reader) -> Iterator[None]:
        """Look for the batch that was written last and has any message, the newest segments first; yields after each
        batch. `_next` is where it has its first, or the end.
        """
        end = self._next = reader.end
        select = None if self._rows_of is None else self._rows_of.select
        begins = [span.first for span in reader.spans]
        begins.append(reader.spans[-1].end if reader.spans else reader.start)  # of the segment that is being written
        for begin in reversed(begins):
            found = None
            for batch in reader.read(begin, end, lost=self._lost, select=select):
                mask = self._mask(batch) if batch.num_rows else None
                if mask is not None:
                    found = values_of(batch.filter(mask).slice(0, 1), "offset")[0]
                yield
            if found is not None:
                self._next = found
                return
            end = begin

    def _rows(self, batch: Any) -> Iterator[tuple[int, Any]]:
        """(offset, frame) of each selected message of a batch."""
        end = values_of(batch.slice(batch.num_rows - 1), "offset")[0] + 1
        mask = self._mask(batch)
        batch = batch.slice(0, 0) if mask is None else self._shortened(batch.filter(mask))
        for at in range(0, batch.num_rows, ROWS):
            part = batch.slice(at, ROWS)
            wanted = self._true_of(part)
            columns = [values_of(part, name) for name in ANSWER]
            for row, fields in enumerate(zip(*columns, strict=True)):
                if wanted is not None and not wanted[row]:
                    continue
                offset, time, topic, value, headers, syntax, kind, reply, correlation = fields
                number = NUMBERS[syntax]
                content = None
                if headers or kind or reply or correlation:
                    content = Content(
                        topic, number, value, tuple((one["key"], shown_value(one["value"])) for one in headers or ()),
                        content_type=kind.decode() if kind else None, correlation=correlation, reply=reply or None,
                    )  # fmt: skip
                yield offset, self._encode(offset, time, topic, number, value, content)
        self._next = end  # also past messages that were not selected

    def _shortened(self, batch: Any) -> Any:
        """Rows of a namespace, with their topics as its clients spell them."""
        if not self._wanted.namespace:
            return batch
        place = batch.schema.get_field_index("topic")
        size = len(self._before[SYNTAXES[0]])  # the same in each syntax
        return batch.set_column(place, batch.schema.field(place), pc.utf8_slice_codeunits(batch.column(place), size))

    def _true_of(self, part: Any) -> list[bool] | None:
        """Of each row, whether the selector is true of it; None: there is no selector."""
        selector = self._selector
        if selector is None:
            return None
        found: list[bool] = selector.true_of(
            MessageRows(part, self._replays.formats.of(part) if selector.asks_bodies else None)
        ).tolist()
        return found

    def _mask(self, batch: Any) -> Any:
        """The mask of selected rows of a batch; None if no row is selected. Each topic is looked up once."""
        found = None
        for syntax in SYNTAXES:
            column = batch.column(batch.schema.get_field_index("topic")).dictionary_encode()
            spelled = pc.equal(batch.column(batch.schema.get_field_index("syntax")), syntax)
            if not pc.any(spelled).as_py():
                continue
            topics = [self._wants(topic.encode(), syntax) for topic in column.dictionary.to_pylist()]
            wanted = pc.and_(pa.array(topics, pa.bool_()).take(column.indices), spelled)
            found = wanted if found is None else pc.or_(found, wanted)
        return found

    def _wants(self, topic: bytes, syntax: str) -> bool:
        """Is an archived topic wanted? Of those of namespaces, only the replay's own are, without what is before."""
        before = self._before[syntax]
        if self._wanted.below:
            return topic.startswith(before + self._wanted.below[SYNTAXES.index(syntax)])
        if not topic.startswith(before) or (not before and first_word(topic, syntax) == NAMESPACE_ROOT):
            return False
        try:
            return self._selection.wants(topic[len(before) :], syntax)
        except ValueError:
            return False  # a topic that is invalid in the other syntax
