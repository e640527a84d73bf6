"""The archive writer thread: it takes batches from a queue, writes them, and reports its progress to the loop.

    WriteJob --inbox--> append --> (sync) --> WriteProgress --> the loop: free memory, send receipts

The thread survives every error: batches that are not in the archive yet are kept, and tried again every RETRY_SECONDS;
until then the archive counts as unhealthy. Where a receipt may wait for a sync, batches are kept until the sync is
done: if it fails, the writer removes what was written, and they are written again.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fanlight_archive import ArchiveError, Writer
from fanlight_archive.holds import Hold
from fanlight_broker import event_log
from fanlight_broker.core.limits import Durability, Limits
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.metrics import Histogram
from fanlight_broker.storage.archive_holds import ArchiveHolds
from fanlight_broker.storage.pending_marks import merged, octets_of
from fanlight_broker.storage.tables import batch_of
from fanlight_broker.wire.archive_tap import Columns

log: Final = event_log.get("archive")

RETRY_SECONDS: Final = 0.5
RETENTION_SECONDS: Final = 5.0
CLOSE_SECONDS_MAX: Final = 5.0  # how long a stopping broker waits for room on a full disk


@dataclass(slots=True)
class WriteJob:
    """A batch of messages with their marks; or marks alone, which are synced immediately."""

    columns: Columns | None
    marks: tuple[Mark, ...] = ()
    octets: int = 0  # of the tap's bound
    batch: Any = None  # of the columns; None if they cannot be converted
    end: int = 0  # the offset after it, once it is appended


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """The state of the archive after a step."""

    sequence: int = 0  # messages of the tap that are written, synced where needed, or lost
    octets: int = 0  # of the tap's bound that are free again, since the last report
    epoch: int = 0
    start: int = 0  # offsets of the archive
    end: int = 0
    written: int = 0  # the tap's sequence at `end`
    size: int = 0
    segments: int = 0
    messages: int = 0  # appended since the start
    lost: int = 0  # taken, and will never be in the archive
    removed: int = 0  # segments, by retention
    indexes: int = 0  # of segments, written
    index_failures: int = 0
    holds: tuple[Hold, ...] = ()
    held_bytes: int = 0  # of segments that would be removed, were there no hold
    overruled: int = 0  # segments, removed although a hold needed them
    trouble: str | None = None  # why it is unhealthy


@dataclass(frozen=True, slots=True)
class Unwritten:
    """What was taken for the archive and is not in it, or may not be, when the broker has stopped."""

    messages: int = 0
    octets: int = 0


class ArchiveWriterThread(threading.Thread):
    """report  called in this thread, after every step"""

    def __init__(
        self,
        writer: Writer,
        report: Callable[[WriteProgress], None],
        *,
        durability: Durability,
        sync_seconds: float,
        limits: Callable[[], Limits],
    ) -> None:
        super().__init__(name="archive", daemon=True)
        self.writer = writer
        self.inbox: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._report = report
        self.syncs = Histogram()  # how long syncs took
        self._durability, self._sync_seconds, self._limits = durability, sync_seconds, limits
        self._waiting: deque[WriteJob] = deque()  # to be appended
        self._unsynced: deque[WriteJob] = deque()  # appended
        self._unsynced_octets = 0
        self._free = 0
        self._sequence = self._written = 0
        self._messages = self._lost = self._removed = 0
        self._sync_at = self._retain_at = time.monotonic()
        self._retry_at: float | None = None  # after an error
        self._stop_by: float | None = None
        self._trouble: str | None = None
        self._catching_up = True  # with the indexes of segments that have none
        self._holds = ArchiveHolds(writer)
        self.unwritten = Unwritten()

    def progress(self) -> WriteProgress:
        writer = self.writer
        free, self._free = self._free, 0
        return WriteProgress(
            sequence=self._sequence, octets=free, epoch=writer.epoch, start=writer.start, end=writer.end,
            written=self._written, size=writer.size, segments=writer.segments, messages=self._messages,
            lost=self._lost + writer.lost, removed=self._removed, indexes=writer.indexes.written,
            index_failures=writer.indexes.failed, holds=self._holds.found, held_bytes=self._holds.bytes,
            overruled=self._holds.overruled, trouble=self._trouble,
        )  # fmt: skip

    def run(self) -> None:
        while True:
            job, came = None, False
            try:
                job = self.inbox.get(timeout=self._patience())
                came = True
            except queue.Empty:
                pass  # a retry, a sync or retention is due, or there is time for an index
            if came and job is None:
                self._stop_by = self._stop_by or time.monotonic() + CLOSE_SECONDS_MAX
                self._retry_at = None
            if job is not None:
                self._take(job)
            done = self._may_work() and self._work()
            if not came and self._stop_by is None:
                self._catch_up()
            self._report(self.progress())
            if self._stop_by is not None and (done or time.monotonic() >= self._stop_by):
                break
        self._close()
        self._report(self.progress())

    # -- inside -------------------------------------------------------------------------------------------------------

    def _patience(self) -> float:
        """Seconds until the next step is due."""
        due = self._retain_at
        if self._catching_up and self._retry_at is None:
            due = time.monotonic()
        if self._retry_at is not None:
            due = self._retry_at
        elif self._unsynced:
            due = min(due, self._sync_at)
        if self._stop_by is not None:
            due = min(due, self._stop_by)
        return max(due - time.monotonic(), 0.0)

    def _may_work(self) -> bool:
        """After an error everything waits, because each attempt may sync and begin an epoch."""
        return self._retry_at is None or time.monotonic() >= self._retry_at

    def _take(self, job: WriteJob) -> None:
        columns = job.columns
        if columns is None:
            self._take_marks(job)
            return
        try:
            job.batch = batch_of(columns)
        except Exception as error:  # a batch that cannot be converted must not block the others
            self._lost += columns.rows
            log.error("archive_batch_lost", messages=columns.rows, exc_info=error)
        self._waiting.append(job)

    def _take_marks(self, job: WriteJob) -> None:
        if self._waiting and self._waiting[-1].columns is None:  # the disk fails: merging bounds what waits
            before = self._waiting.pop()
            job.marks = merged(before.marks, job.marks, self._limits().marks_max)
            octets = sum(octets_of(mark) for mark in job.marks)
            self._free += before.octets + job.octets - octets
            job.octets = octets
        self._waiting.append(job)

    def _work(self) -> bool:
        """Write, and apply retention. Returns whether nothing is left to do."""
        trouble: str | None = None
        # Retention runs even if nothing can be written: it may make room on the disk.
        for step in (self._write, self._keep_up):
            try:
                step()
            except OSError as error:
                trouble = trouble or f"{error.strerror or error}: {self.writer.folder}"
            except Exception as error:  # if the thread ended, receipts would wait without end
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
            job = self._waiting[0]
            if job.batch is None and job.marks:
                self._sync()
                self.writer.append_marks(job.marks)
            elif job.batch is not None:
                self.writer.append(job.batch, job.marks)
            self._waiting.popleft()
            if job.columns is not None:
                self._messages += job.columns.rows if job.batch is not None else 0
                self._written = job.columns.end
            job.end = self.writer.end
            if self._durability is Durability.NONE or job.columns is None:
                self._complete(job)
            else:
                self._unsynced.append(job)
                self._unsynced_octets += job.octets
                if self._durability is Durability.BATCH:
                    self._sync()
            if self._waiting:
                # Report each batch: `end` and `written` agree only where a batch ends; there replays switch to live.
                self._report(self.progress())

    def _must_sync(self) -> bool:
        if self._stop_by is not None:
            return True
        # Batches that are kept to be written again must not fill the buffer.
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
            self._complete(self._unsynced.popleft())
        self._unsynced_octets = 0

    def _complete(self, job: WriteJob) -> None:
        if job.columns is not None:
            self._sequence = job.columns.end
        self._free += job.octets

    def _reopen(self) -> None:
        """Open the archive again after an error, and write again the batches that it has lost."""
        found = self.writer.recover()
        self._catching_up = True  # what recovery closes has no index
        for sentence in found.sentences():
            log.warning("archive_recovered", what=sentence)
        while self._unsynced and self._unsynced[-1].end > found.whole:
            job = self._unsynced.pop()
            assert job.columns is not None  # marks alone are on the disk when they are written
            self._unsynced_octets -= job.octets
            self._written = job.columns.first
            self._waiting.appendleft(job)
            if job.batch is not None:  # one that could not be converted was never written
                self._messages -= job.columns.rows
                self.writer.lost -= job.columns.rows

    def _keep_up(self) -> None:
        """Close the segment if it is old enough, and remove segments that are too old."""
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
        keeping = self._holds.look(limits)
        size = limits.archive_bytes_max or None
        self._removed += len(self.writer.remove_old(size=size, since=since, keeping=keeping))
        self._holds.report()
        self.writer.roll_if_due()

    def _catch_up(self) -> None:
        """Make a step of an index of an earlier writer's segment, while nothing else is to be done."""
        failed = self.writer.indexes.failed
        self._catching_up = self.writer.catch_up()
        if self.writer.indexes.failed > failed:
            log.warning("archive_index_failed", reason=repr(self.writer.indexes.error))

    def _close(self) -> None:
        broken, lost, unsure = self.writer.broken, self.writer.lost, 0
        try:
            self.writer.close()
        except (OSError, ArchiveError) as error:
            self._trouble, broken = f"{error}: {self.writer.folder}", True
        left = [*self._waiting]
        if broken:
            left += self._unsynced
            # With durability none, batches are not kept after they were written.
            unsure = 0 if self._unsynced else self.writer.lost - lost
        rows = sum(job.columns.rows for job in left if job.columns is not None)
        self._lost += sum(job.columns.rows for job in self._waiting if job.columns is not None)
        self.unwritten = Unwritten(rows + unsure, sum(job.octets for job in left))
        if self.unwritten.messages:
            log.error(
                "archive_unwritten", messages=self.unwritten.messages, bytes=self.unwritten.octets,
                reason=self._trouble,
            )
