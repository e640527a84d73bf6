"""The archive's half in the event loop: a tap on the routes, a writer thread, and receipts that wait for both.

    fan_out --> wire.ArchiveTap --full, or batch_seconds--> ArchiveWriterThread.inbox
                  ^                                      |
                  '-- memory is free <-- `_heard` <------' WriteProgress (call_soon_threadsafe)
                                            '--> acknowledgements that waited, publishers that were held back

`ports.Recorder`: with `archive_receipts` an acknowledgement waits until all messages that the tap took before it are
in the archive. The tap's bound is the bound of everything here: while it is full, publishers that ask for an
acknowledgement are held back.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from fanlight_archive import Writer
from fanlight_broker import event_log
from fanlight_broker.core.acknowledgements import Acknowledgements
from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.core.condition import Condition
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.limits import Durability, Limits
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.metrics import MetricFamily
from fanlight_broker.core.ports import View
from fanlight_broker.core.replay import Encode, ReplayReader, ReplayRequest
from fanlight_broker.storage.archive_views import hold_views, replay_views, segment_views
from fanlight_broker.storage.pending_marks import PendingMarks, octets_of
from fanlight_broker.storage.replays import ArchiveReplays
from fanlight_broker.storage.writer_thread import ArchiveWriterThread, WriteJob, WriteProgress
from fanlight_broker.wire.archive_tap import ArchiveTap, Columns
from fanlight_broker.wire.route import Route
from matchcore.row_screener import RowScreener

log: Final = event_log.get("archive")

BATCH_BYTES_MAX: Final = 8 * 1024 * 1024  # written together: large payloads make small batches
MARKS_BYTES_MAX: Final = 512 * 1024  # written together: half of what a batch's metadata may be

COUNTERS: Final[Mapping[str, str]] = {
    "archive_messages": "Messages written to the archive",
    "archive_dropped": "Messages not archived because the buffer was full",
    "archive_unspellable": "Messages not archived because their topic is not UTF-8",
    "archive_lost": "Messages taken for the archive and lost: a sync failed, or the disk was full at the stop",
    "archive_segments_removed": "Segments removed by retention",
    "archive_holds_overruled": "Segments removed although a hold needed them: past archive_hold_bytes_max",
    "archive_indexes": "Indexes of closed segments written",
    "archive_index_failures": "Closed segments whose index could not be made or written; they are read as a whole",
    "archive_replayed": "Messages replayed from the archive",
    "archive_held_back": "Times that publishers were held back until the archive had room",
}
GAUGES: Final[Mapping[str, str]] = {
    "archive_healthy": "1 while messages get to the disk, 0 while they do not",
    "archive_buffer_bytes": "Messages on their way to the archive",
    "archive_waiting_receipts": "Receipts and acknowledgements that wait for the archive",
    "archive_replays": "Replays that have not reached the live messages",
    "archive_start": "The oldest offset in the archive",
    "archive_end": "The next offset",
    "archive_epoch": "The epoch of offsets",
    "archive_bytes": "Bytes of all segments and their indexes",
    "archive_segments": "Segments, the open one included",
    "archive_holds": "Readers that retention waits for",
    "archive_holds_ignored": "Holds that count for nothing: stale, unreadable, or of another archive",
    "archive_held_bytes": "Bytes of segments that are kept for a hold alone",
}


class EventLoop(Protocol):
    """The part of an event loop that the archive uses."""

    def call_later(self, delay: float, callback: Callable[[], Any]) -> Any: ...

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> Any: ...

    def call_soon_threadsafe(self, callback: Callable[..., Any], *args: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    folder: Path
    filters: tuple[tuple[bytes, str], ...]  # (text, syntax)
    durability: Durability
    sync_seconds: float
    receipts: bool
    index: bool = True  # whether replays ask the indexes of segments
    body_formats: str = ""  # the setting payload_format: indexes made with another one do not know of numbers


class Archive:
    """The archive of one broker, over a writer that has opened its folder.

    clock        in seconds; the clock that `now` comes from everywhere
    selector_of  makes what asks a selector about archived messages; needed where replays have selectors
    """

    counted, gauged = COUNTERS, GAUGES

    def __init__(
        self, options: ArchiveOptions, writer: Writer, loop: EventLoop, clock: Callable[[], float],
        acknowledgements: Acknowledgements, limits: Callable[[], Limits],
        selector_of: Callable[[Condition], RowScreener] | None = None,
    ) -> None:
        self.options = options
        self.awaited = options.receipts
        self.receipts = acknowledgements.receipts if options.receipts else None
        self.held_back = 0
        self.state = WriteProgress()
        self._loop, self._clock, self._acknowledgements, self._limits = loop, clock, acknowledgements, limits
        present = limits()
        self.tap = ArchiveTap(
            rows_max=present.archive_batch_messages_max, bytes_max=present.archive_buffer_bytes_max,
            batch_bytes_max=BATCH_BYTES_MAX, begun=self._begun, full=self._full,
        )
        self.selection = ArchiveSelection(self.tap, options.filters)
        self.writer_thread = ArchiveWriterThread(
            writer, lambda progress: loop.call_soon_threadsafe(self._heard, progress),
            durability=options.durability, sync_seconds=options.sync_seconds, limits=limits,
        )
        self.state = self.writer_thread.progress()
        self.replays = ArchiveReplays(
            options.folder, loop, selector_of, indexed=options.index, body_formats=options.body_formats
        )
        self._readers: list[Callable[[], None]] = []  # are called when more has been written
        self._marks: deque[tuple[int, Callable[[int], None]]] = deque()  # (sequence, what is called with its offset)
        self.kept = [Mark(*row) for row in writer.marks]  # as they were when the archive was opened
        self._pending = PendingMarks()
        self._timer: Any = None
        self._marks_timer: Any = None
        self._hurrying = False
        self._handed = 0  # messages of the tap that were given to the writer thread
        recovered = writer.recovered
        log.info(
            "archive_opened", folder=str(options.folder), epoch=writer.epoch, start=writer.start, end=writer.end,
            durability=options.durability.value, receipts=options.receipts, marks=len(self.kept),
        )
        for sentence in recovered.sentences():
            if recovered.created:
                log.info("archive_created", what=sentence)
            else:
                log.warning("archive_recovered", what=sentence)

    def start(self) -> None:
        self.writer_thread.start()

    def stop(self) -> None:
        """Write all messages that were taken, and close the archive. `unwritten` counts those that failed.

        Blocks: not to be called in the loop's thread.
        """
        self.replays.stop()
        if self.writer_thread.ident is None:
            self.start()  # the thread closes the archive
        self._hand_over_marks()
        self.writer_thread.inbox.put(None)
        self.writer_thread.join()

    @property
    def unwritten(self) -> int:
        """Messages that were taken and were not in the archive when it was stopped."""
        return self.writer_thread.unwritten.messages

    # -- ports.Recorder -----------------------------------------------------------------------------------------------

    @property
    def taken(self) -> int:
        return self.tap.taken if self.awaited else 0

    def note(self, mark: Mark, route: Route) -> None:
        if self._pending.octets >= MARKS_BYTES_MAX:
            self._hand_over_marks()
        self._pending.note(mark, self.tap.taken + (route.tap is not None))
        if self._marks_timer is None:
            self._marks_timer = self._loop.call_later(self.options.sync_seconds, self._marks_due)

    def undo_note(self) -> None:
        self._pending.undo_note()

    def has_room(self, route: Route) -> bool:
        if self.receipts is None:
            return True
        if self._pending.octets >= MARKS_BYTES_MAX:
            self._hand_over_marks()  # they take room: before the look at the room, not between it and the message
        return route.tap is None or not (self.receipts.closed or self.tap.crowded)

    def make_room(self) -> None:
        self.held_back += 1
        self.tap.flush()

    @property
    def roomy(self) -> bool:
        return 2 * self.tap.bytes <= self.tap.bytes_max

    # -- core.replay.ReplaySource -------------------------------------------------------------------------------------

    def read(self, wanted: ReplayRequest, encode: Encode, size: Callable[[Any], int] = len) -> ReplayReader:
        most = self._limits().archive_replays_max
        if self.replays.running >= most:
            raise LimitExceeded("too many replays at once", "archive_replays_max", most)
        return self.replays.read(wanted, encode, size)

    def report_end(self, then: Callable[[int], None]) -> None:
        # A batch ends here: the writer thread says at which offset.
        self.tap.flush()
        if not self._marks and self.state.written == self.tap.taken:
            self._loop.call_soon(then, self.state.end)
        else:
            self._marks.append((self.tap.taken, then))

    @property
    def written(self) -> int:
        return self.state.written

    def wait(self, then: Callable[[], None]) -> None:
        self._readers.append(then)

    # -- the tap ------------------------------------------------------------------------------------------------------

    def _begun(self) -> None:
        self.tap.utc = time.time() - self._clock()
        self._timer = self._loop.call_later(self._limits().archive_batch_seconds_max, self._due)

    def hurry(self) -> None:
        """A receipt waits: hand over the present batch as soon as the writer thread is idle.

        So a batch has the messages that arrived while the one before was written, and a receipt waits for at most two
        batches.
        """
        if self.tap.batch is not None and not self._hurrying and self._handed == self.state.written:
            self._hurrying = True
            self._loop.call_soon(self._hurried)

    def _hurried(self) -> None:
        self._hurrying = False
        self.tap.flush()

    def _due(self) -> None:
        self._timer = None
        self.tap.flush()

    def _full(self, columns: Columns) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._handed = columns.end
        self._hand_over(columns, self._pending.pop(columns.end))

    def _hand_over(self, columns: Columns | None, marks: tuple[Mark, ...]) -> None:
        octets = sum(octets_of(mark) for mark in marks)
        self.tap.free_bytes(-octets)  # until they are written they count towards the tap's bound
        self.writer_thread.inbox.put(WriteJob(columns, marks, octets + (columns.octets if columns is not None else 0)))

    def _hand_over_marks(self) -> None:
        """Together with the present batch if there is one."""
        self.tap.flush()
        if marks := self._pending.pop_all():
            self._hand_over(None, marks)

    def _marks_due(self) -> None:
        """Hand over the marks that no batch has carried: those of topics that are not archived."""
        self._marks_timer = None
        self._hand_over_marks()

    # -- the writer thread --------------------------------------------------------------------------------------------

    def _heard(self, progress: WriteProgress) -> None:
        before, self.state = self.state, progress
        self.tap.free_bytes(progress.octets)
        if progress.trouble != before.trouble:
            if progress.trouble is not None:
                log.error("archive_unwell", reason=progress.trouble, advice="messages are routed but not archived")
            else:
                log.info("archive_well", end=progress.end)
        if progress.epoch != before.epoch:
            log.warning("archive_epoch", epoch=progress.epoch, end=progress.end)
        if progress.written != before.written:
            readers, self._readers = self._readers, []
            for reader in readers:
                reader()
        while self._marks and self._marks[0][0] <= progress.written:
            self._marks.popleft()[1](progress.end)
        try:
            if self.awaited:
                self._acknowledgements.release(self._clock(), progress.sequence)
        finally:
            if self._waiting:
                self.hurry()

    @property
    def _waiting(self) -> int:
        return self._acknowledgements.waiting if self.awaited else 0

    # -- inspection ---------------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str | None:
        return self.state.trouble

    def counters(self) -> dict[str, int]:
        return {
            "archive_messages": self.state.messages,
            "archive_dropped": self.tap.dropped,
            "archive_unspellable": self.tap.unspellable,
            "archive_lost": self.state.lost,
            "archive_segments_removed": self.state.removed,
            "archive_holds_overruled": self.state.overruled,
            "archive_indexes": self.state.indexes,
            "archive_index_failures": self.state.index_failures,
            "archive_replayed": self.replays.messages,
            "archive_held_back": self.held_back,
        }

    def gauges(self) -> dict[str, float]:
        state = self.state
        return {
            "archive_healthy": float(state.trouble is None),
            "archive_buffer_bytes": self.tap.bytes,
            "archive_waiting_receipts": self._waiting,
            "archive_replays": self.replays.running,
            "archive_start": state.start,
            "archive_end": state.end,
            "archive_epoch": state.epoch,
            "archive_bytes": state.size,
            "archive_segments": state.segments,
            "archive_holds": sum(hold.problem is None for hold in state.holds),
            "archive_holds_ignored": sum(hold.problem is not None for hold in state.holds),
            "archive_held_bytes": state.held_bytes,
        }

    def families(self) -> list[MetricFamily]:
        return [self.writer_thread.syncs.family("archive_sync_seconds", "Time that a sync of the archive took")]

    def segment_views(self) -> list[View]:
        """Not in the loop. Raises OSError, ArchiveError."""
        return segment_views(self.options.folder, self.state)

    def hold_views(self) -> list[View]:
        return hold_views(self.state.holds, self.state.end)

    def replay_views(self) -> list[View]:
        return replay_views(self.replays.readings, self.state.end)

    def view(self) -> View:
        """Everything, for /archive."""
        return {
            "folder": str(self.options.folder),
            "filters": [{"filter": text.decode(), "syntax": syntax} for text, syntax in self.options.filters],
            "durability": self.options.durability.value, "receipts": self.options.receipts,
            "trouble": self.trouble, **self.counters(), **self.gauges(),
        }  # fmt: skip
