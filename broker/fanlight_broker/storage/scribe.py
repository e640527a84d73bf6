"""The scribe: the thread that writes the archive. Batches come in by a queue, word of them goes back to the loop.

    Load --inbox--> append --> (sync) --> Progress --> the loop: memory is free, receipts may go

No error is an end: what is not in the archive yet is kept and tried again, every RETRY_SECONDS, and meanwhile the
archive is unwell. Where a receipt may wait for a sync, batches are kept until it is done: one that fails
takes back what was written, and they are written again.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog

from fanlight_archive import ArchiveError, Writer
from fanlight_broker.core.limits import Durability, Limits
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.measures import Histogram
from fanlight_broker.storage.noted import merged, octets_of
from fanlight_broker.storage.tables import batch_of
from fanlight_broker.wire.tap import Columns

log: Final = structlog.stdlib.get_logger("archive")

RETRY_SECONDS: Final = 0.5
RETENTION_SECONDS: Final = 5.0
CLOSE_SECONDS_MAX: Final = 5.0  # that a full disk may take to become less full when the broker stops


@dataclass(slots=True)
class Load:
    """Messages with the marks that move up with them; or marks alone, which are synced at once."""

    columns: Columns | None
    marks: tuple[Mark, ...] = ()
    octets: int = 0  # of the tap's bound
    batch: Any = None  # of the columns; None if they cannot be told
    end: int = 0  # the offset behind it, when it is appended


@dataclass(frozen=True, slots=True)
class Progress:
    """What the archive is like after something was done to it."""

    sequence: int = 0  # messages of the tap that are dealt with
    octets: int = 0  # of the tap's bound that are free again, since the last word
    epoch: int = 0
    start: int = 0  # offsets of the archive
    end: int = 0
    written: int = 0  # the tap's sequence at `end`
    size: int = 0
    segments: int = 0
    messages: int = 0  # appended since the start
    lost: int = 0  # taken, and never to be in the archive
    removed: int = 0  # segments, by retention
    trouble: str | None = None  # why it is unwell


@dataclass(frozen=True, slots=True)
class Unwritten:
    """What was taken for the archive and is not in it, or not surely, when the broker has stopped."""

    messages: int = 0
    octets: int = 0


class Scribe(threading.Thread):
    """tell is called in this thread, after everything that is done."""

    def __init__(
        self,
        writer: Writer,
        tell: Callable[[Progress], None],
        *,
        durability: Durability,
        sync_seconds: float,
        limits: Callable[[], Limits],
    ) -> None:
        super().__init__(name="archive", daemon=True)
        self.writer = writer
        self.inbox: queue.SimpleQueue[Load | None] = queue.SimpleQueue()
        self._tell = tell
        self.syncs = Histogram()  # how long syncs took
        self._durability, self._sync_seconds, self._limits = durability, sync_seconds, limits
        self._waiting: deque[Load] = deque()  # to be appended
        self._unsynced: deque[Load] = deque()  # appended
        self._unsynced_octets = 0
        self._free = 0
        self._sequence = self._written = 0
        self._messages = self._lost = self._removed = 0
        self._sync_at = self._retain_at = time.monotonic()
        self._retry_at: float | None = None  # after an error
        self._stop_by: float | None = None
        self._trouble: str | None = None
        self.unwritten = Unwritten()

    def progress(self) -> Progress:
        writer = self.writer
        free, self._free = self._free, 0
        return Progress(
            sequence=self._sequence, octets=free, epoch=writer.epoch, start=writer.start, end=writer.end,
            written=self._written, size=writer.size, segments=writer.segments, messages=self._messages,
            lost=self._lost + writer.lost, removed=self._removed, trouble=self._trouble,
        )  # fmt: skip

    def run(self) -> None:
        while True:
            load, came = None, False
            try:
                load = self.inbox.get(timeout=self._patience())
                came = True
            except queue.Empty:
                pass  # something is due
            if came and load is None:
                self._stop_by = self._stop_by or time.monotonic() + CLOSE_SECONDS_MAX
                self._retry_at = None
            if load is not None:
                self._take(load)
            done = self._may_work() and self._work()
            self._tell(self.progress())
            if self._stop_by is not None and (done or time.monotonic() >= self._stop_by):
                break
        self._close()
        self._tell(self.progress())

    # -- inside -------------------------------------------------------------------------------------------------------

    def _patience(self) -> float:
        """How long there is nothing to do, in seconds, if nothing comes."""
        due = self._retain_at
        if self._retry_at is not None:
            due = self._retry_at
        elif self._unsynced:
            due = min(due, self._sync_at)
        if self._stop_by is not None:
            due = min(due, self._stop_by)
        return max(due - time.monotonic(), 0.0)

    def _may_work(self) -> bool:
        """After an error all things wait, whatever comes: each attempt may sync, and begin an epoch."""
        return self._retry_at is None or time.monotonic() >= self._retry_at

    def _take(self, load: Load) -> None:
        columns = load.columns
        if columns is None:
            self._take_marks(load)
            return
        try:
            load.batch = batch_of(columns)
        except Exception as error:  # one batch that cannot be told is no reason to keep none of the others
            self._lost += columns.rows
            log.error("archive_batch_lost", messages=columns.rows, exc_info=error)
        self._waiting.append(load)

    def _take_marks(self, load: Load) -> None:
        if self._waiting and self._waiting[-1].columns is None:  # the disk is not well; so there is a bound
            before = self._waiting.pop()
            load.marks = merged(before.marks, load.marks, self._limits().marks_max)
            octets = sum(octets_of(mark) for mark in load.marks)
            self._free += before.octets + load.octets - octets
            load.octets = octets
        self._waiting.append(load)

    def _work(self) -> bool:
        """Do what there is to do. True if nothing is left of it."""
        trouble: str | None = None
        # Retention although nothing can be written: it may be what makes room.
        for step in (self._write, self._keep_up):
            try:
                step()
            except OSError as error:
                trouble = trouble or f"{error.strerror or error}: {self.writer.folder}"
            except Exception as error:  # a thread that ends would leave everybody waiting
                trouble = trouble or f"{error!r}: {self.writer.folder}"
                if not isinstance(error, ArchiveError) and self._trouble is None:
                    log.error("archive_failed", exc_info=error)
        self._trouble = trouble
        self._retry_at = None if trouble is None else time.monotonic() + RETRY_SECONDS
        return trouble is None

    def _write(self) -> None:
        if self.writer.broken:
            self._reopen()
        self._append()
        if self._unsynced and self._must_sync():
            self._sync()

    def _append(self) -> None:
        while self._waiting:
            load = self._waiting[0]
            if load.batch is None and load.marks:
                self._sync()
                self.writer.mark(load.marks)
            elif load.batch is not None:
                self.writer.append(load.batch, load.marks)
            self._waiting.popleft()
            if load.columns is not None:
                self._messages += load.columns.rows if load.batch is not None else 0
                self._written = load.columns.end
            load.end = self.writer.end
            if self._durability is Durability.NONE or load.columns is None:
                self._settle(load)
            else:
                self._unsynced.append(load)
                self._unsynced_octets += load.octets
                if self._durability is Durability.BATCH:
                    self._sync()
            if self._waiting:
                # Word of each batch: `end` and `written` belong together where a batch ends, and replays go live there.
                self._tell(self.progress())

    def _must_sync(self) -> bool:
        if self._stop_by is not None:
            return True
        # What is kept for a second writing must not fill the buffer.
        return (
            time.monotonic() >= self._sync_at
            or self._unsynced_octets > self._limits().archive_buffer_bytes_max // 4
        )

    def _sync(self) -> None:
        began = time.monotonic()
        self.writer.sync()
        self.syncs.observe(time.monotonic() - began)
        self._sync_at = time.monotonic() + self._sync_seconds
        while self._unsynced:
            self._settle(self._unsynced.popleft())
        self._unsynced_octets = 0

    def _settle(self, load: Load) -> None:
        if load.columns is not None:
            self._sequence = load.columns.end
        self._free += load.octets

    def _reopen(self) -> None:
        """Open the archive again after an error, and have written again what is not in it any more."""
        found = self.writer.recover()
        for sentence in found.sentences():
            log.warning("archive_recovered", what=sentence)
        while self._unsynced and self._unsynced[-1].end > found.whole:
            load = self._unsynced.pop()
            assert load.columns is not None  # marks alone are on the disk when they are written
            self._unsynced_octets -= load.octets
            self._written = load.columns.first
            self._waiting.appendleft(load)
            if load.batch is not None:  # one that could not be told was never written
                self._messages -= load.columns.rows
                self.writer.lost -= load.columns.rows

    def _keep_up(self) -> None:
        """Close a segment that is old enough, and remove what is too old."""
        now = time.monotonic()
        if now < self._retain_at:
            return
        self._retain_at = now + RETENTION_SECONDS
        self.writer.must_be_there()
        limits = self._limits()
        self.writer.segment_bytes = limits.archive_segment_bytes_max
        self.writer.segment_seconds = limits.archive_segment_seconds_max
        self.writer.marks_max = limits.marks_max
        since = None
        if limits.archive_seconds_max:
            since = int((time.time() - limits.archive_seconds_max) * 1e6)
        self._removed += len(self.writer.retain(size=limits.archive_bytes_max or None, since=since))
        self.writer.roll_if_due()

    def _close(self) -> None:
        broken, lost, unsure = self.writer.broken, self.writer.lost, 0
        try:
            self.writer.close()
        except (OSError, ArchiveError) as error:
            self._trouble, broken = f"{error}: {self.writer.folder}", True
        left = [*self._waiting]
        if broken:
            left += self._unsynced
            # With durability none, what was written is not kept to be written again.
            unsure = 0 if self._unsynced else self.writer.lost - lost
        rows = sum(load.columns.rows for load in left if load.columns is not None)
        self._lost += sum(load.columns.rows for load in self._waiting if load.columns is not None)
        self.unwritten = Unwritten(rows + unsure, sum(load.octets for load in left))
        if self.unwritten.messages:
            log.error(
                "archive_unwritten", messages=self.unwritten.messages, bytes=self.unwritten.octets,
                reason=self._trouble,
            )
