"""The writer: it appends batches to segments. A lock on the folder allows one writer at a time.

A batch gets its offsets when it is written, not before. So no offset is shown that is not readable, and a batch that a
full disk refuses leaves no gap. When an error has left the files in an unknown state, the writer is `broken`; `recover`
opens the archive again in the same process.

The writer has no thread and no timer: the caller decides when to `sync`, `roll` and `remove_old`.
"""

import errno
import fcntl
import os
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fanlight_archive import frames, manifest, recovery
from fanlight_archive.arrow import pa
from fanlight_archive.errors import InUse
from fanlight_archive.files import Disk, File, Files
from fanlight_archive.holds import Keeping
from fanlight_archive.indexes import Indexer, Indexes
from fanlight_archive.manifest import Span
from fanlight_archive.marks import Marks, Row, advance, encode, rows_of, trim
from fanlight_archive.recovery import Recovered, boot_id, recover
from fanlight_archive.schema import MESSAGE, SCHEMA, segment_schema
from fanlight_archive.segment import bounds_of, name_of

SEGMENT_BYTES: Final = 64 * 1024 * 1024
SEGMENT_SECONDS: Final = 60.0
LOCK: Final = "lock"


class Writer:
    """Raises InUse, Corrupt, OSError when it is made; `recovered` has what it found.

    compression  None, "lz4" or "zstd", of the bodies of batches
    marks_max    producers whose mark is kept: those that moved up last, of each user about as many
    indexer      makes the index of each segment that is closed (indexes.py); without it none has one
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        files: Files | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        segment_seconds: float = SEGMENT_SECONDS,
        compression: str | None = None,
        marks_max: int = recovery.MARKS_MAX,
        boot: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        indexer: Callable[[], Indexer] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.files = files or Disk(self.folder)
        self.segment_bytes, self.segment_seconds, self.compression = segment_bytes, segment_seconds, compression
        self.marks_max = marks_max
        self.indexes = Indexes(self.folder, self.files, indexer)
        self.boot = boot_id() if boot is None else boot
        self.clock = clock
        self._lock = _lock(self.folder)
        self._file: File | None = None
        self._log: File | None = None
        self._doubtful = False
        self.broken = False
        self.manifest = manifest.Manifest("")
        self.end = 0  # the next offset
        self.durable = 0  # the end of what is on the disk
        self._first = 0  # of the present segment: its first offset,
        self._opened = 0.0  # when it was begun,
        self._size = self._durable_size = 0  # its bytes, and those that are on the disk,
        self._earliest, self._latest = 0, 0  # its times,
        self._marks: Marks = {}  # and the marks that its batches brought
        self._closed_size = 0  # of the closed segments: bytes,
        self._closed_start: int | None = None  # and oldest offset; asked for with each batch
        self.lost = 0  # messages that were written, and not on the disk when a sync failed
        try:
            self.recovered = self.recover()
        except BaseException:
            os.close(self._lock)
            raise

    # -- inspection ---------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.manifest.epoch

    @property
    def start(self) -> int:
        """The oldest offset that is kept."""
        if self._closed_start is not None:
            return self._closed_start
        return self._first if self._file is not None else self.end

    @property
    def size(self) -> int:
        """Bytes of all segments and their indexes."""
        return self._closed_size + self._size + self.indexes.size

    @property
    def segments(self) -> int:
        return len(self.manifest.spans) + (self._file is not None)

    @property
    def marks(self) -> list[Row]:
        """How far the producers have got: those that moved up longest ago first."""
        found = dict(self.manifest.marks)
        advance(found, rows_of(self._marks))
        return rows_of(found)

    # -- writing ------------------------------------------------------------------------------------------------------

    def append(self, batch: Any, marks: Sequence[Row] = ()) -> int:
        """Write a batch of the columns of `schema.MESSAGE`. Returns the offset of its first message.

        marks  those that move up with its messages: both are in the archive, or neither is
        OSError: nothing of it is in the archive. If the writer is not `broken` then, it may be tried again.
        """
        self._must_be_sound()
        if not batch.num_rows:
            return self.end
        if self._file is None:
            self._create()
        elif self._size >= self.segment_bytes or self.clock() - self._opened >= self.segment_seconds:
            self.roll()
            self._create()
        file = self._file
        assert file is not None
        pieces = frames.encode(_with_offsets(batch, self.end), self.compression, encode(marks))
        try:
            file.write(pieces)
        except OSError:
            self._undo(file)
            raise
        first = self.end
        earliest, latest = bounds_of(batch)
        self._earliest, self._latest = min(self._earliest, earliest), max(self._latest, latest)
        self._size += sum(len(piece) for piece in pieces)
        self.end += batch.num_rows
        advance(self._marks, marks)
        trim(self._marks, self.marks_max)
        self.indexes.add(batch)
        return first

    def append_marks(self, marks: Sequence[Row]) -> None:
        """Keep marks that move up without a message of the archive; on the disk, behind what was appended.

        OSError as in `sync`.
        """
        self.sync()  # a producer's later mark says that its earlier messages need not come again: they must be there
        line = {"marks": [*marks]}
        self.manifest.take(line)
        trim(self.manifest.marks, self.marks_max)
        try:
            self._say(line)
        except OSError:
            self._break()
            raise

    def sync(self) -> int:
        """Write all appended batches to the disk. Returns the end of what is on it: `durable`.

        OSError: what was not on the disk yet is lost, and counted in `lost`: no system says whether a page that
        could not be written is still there to be written again. A new epoch begins.
        """
        self._must_be_sound()
        if self._file is not None and self.durable < self.end:
            try:
                self._file.sync()
            except OSError:
                self._doubt()
                raise
        self.must_be_there()
        self.durable, self._durable_size = self.end, self._size
        return self.durable

    def must_be_there(self) -> None:
        """Raises OSError, as a sync that fails, if somebody removed the folder or the segment that is being written.

        What is written then goes to files without a name, which nobody can read.
        """
        if self.broken or self._is_there():
            return
        self._doubt()
        raise OSError(errno.ENOENT, "the archive's folder, or its open segment, was removed")

    def roll(self) -> None:
        """Close the present segment, if there is one. OSError as in `append` or as in `sync`."""
        file = self._file
        if file is None:
            return
        self.must_be_there()
        span = Span(
            name_of(self._first), self._first, self.end, self.epoch, self._size + len(frames.END),
            self._earliest, self._latest,
        )  # fmt: skip
        try:
            file.write([frames.END])
        except OSError:
            self._undo(file)
            raise
        try:
            file.sync()
            self.durable, self._durable_size = self.end, self._size
            file.close()
            self._file = None
            self.files.rename(name_of(self._first, is_open=True), span.name)
            self.files.sync_names()
            self._size = 0
            # In one line, so that none is there without the other; one that is torn is read from the batches.
            line = span.line() | ({"marks": rows_of(self._marks)} if self._marks else {})
            self.manifest.take(line)
            trim(self.manifest.marks, self.marks_max)
            self._marks = {}
            self._count_closed()
            self._say(line)
        except OSError:
            self._doubt()
            raise
        self.indexes.write(span, self.manifest.archive)

    def roll_if_due(self) -> bool:
        """Close a segment that is old enough, though nothing comes. True if it was."""
        if self._file is None or self.clock() - self._opened < self.segment_seconds:
            return False
        self.roll()
        return True

    def remove_old(
        self, *, size: int | None = None, since: int | None = None, keeping: Keeping | None = None
    ) -> list[Span]:
        """Remove the oldest closed segments: while all, with their indexes, take more than `size` bytes, and those
        without a message as late as `since` (microseconds UTC), but for what holds keep. Returns them."""
        self._must_be_sound()
        gone: list[Span] = []
        left = self.size
        for _, span in sorted(self.manifest.spans.items()):
            if not ((size is not None and left > size) or (since is not None and span.latest < since)):
                break
            gone.append(span)
            left -= self._size_of(span)
        if keeping is not None:
            gone = keeping.divide(gone, self._size_of)
        if gone:
            # First the line, then the files: a crash between the two is finished when the archive is opened again.
            line = {"start": gone[-1].end}
            try:
                self.manifest.take(line)  # first: the line may be the one that has the manifest written anew
                self._count_closed()
                self._say(line)
                for span in gone:
                    self.files.remove(span.name)
                    self.indexes.remove(span)
                self.files.sync_names()
            except OSError:
                self._break()
                raise
        return gone

    def catch_up(self) -> bool:
        """Make a step of the index of a closed segment that has none; short. Whether there is more to do."""
        return not self.broken and self.indexes.catch_up(self.manifest)

    def close(self) -> None:
        """Close the current segment, and unlock the archive."""
        try:
            if not self.broken:
                self.roll()
                self._say({"closed": self.end})
        finally:
            self._release()
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def abandon(self) -> None:
        """Close the files without syncing, as a killed process does."""
        self._release()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def recover(self) -> Recovered:
        """Open the archive, at first or after an error. OSError: the writer stays broken."""
        self._release()
        self.broken = True
        made_again = not self._has_lock()
        if made_again:
            self._make_again()
        if self._doubtful:
            self._cut_to_durable()
        try:
            done = recover(
                self.folder, self.files, boot=self.boot, doubtful=self._doubtful, marks_max=self.marks_max
            )
        except OSError:
            if not self._doubtful and self.durable < self.end:
                self._doubt()  # the sync of the open segment may be what failed: a second one would prove nothing
            raise
        done.made_again = made_again
        if self._doubtful:
            self.lost -= min(max(done.whole - self.durable, 0), self.end - self.durable)  # they are there after all
        self.manifest = done.manifest
        self.indexes.opened(done.manifest)
        self._count_closed()
        self._log = self.files.open(manifest.NAME)
        self.end = self.durable = done.end
        self._size = 0
        self._marks = {}
        self._doubtful = self.broken = False
        return done

    # -- inside -------------------------------------------------------------------------------------------------------

    def _has_lock(self) -> bool:
        """Whether the locked file is still the one that other writers would lock."""
        try:
            return os.path.samestat(os.fstat(self._lock), os.stat(self.folder / LOCK))
        except FileNotFoundError:
            return False

    def _is_there(self) -> bool:
        opened = self._file is None or (self.folder / name_of(self._first, is_open=True)).exists()
        return opened and self._has_lock()

    def _make_again(self) -> None:
        """Lock the folder again, and make it if it was removed: the same archive, without a message, in a new epoch."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(self.folder)
        os.close(self._lock)
        self._lock = lock
        self._doubtful = True
        if self.manifest.epochs and {*os.listdir(self.folder)} == {LOCK}:
            known, marks = self.manifest, dict(self.manifest.marks)
            advance(marks, rows_of(self._marks))
            empty = manifest.Manifest(known.archive, [*known.epochs], marks=marks, start=self.durable, boot=self.boot)
            recovery.write(empty, self.files)

    def _size_of(self, span: Span) -> int:
        return span.size + self.indexes.size_of(span)

    def _count_closed(self) -> None:
        spans = self.manifest.spans
        self._closed_size = sum(span.size for span in spans.values())
        self._closed_start = min(spans, default=None)

    def _must_be_sound(self) -> None:
        if self.broken:
            # Not automatically: the archive may end before what the caller has seen appended.
            raise OSError(errno.EIO, "an error has left the archive to be opened again: recover()")

    def _create(self) -> None:
        name = name_of(self.end, is_open=True)
        schema = frames.encode_schema(segment_schema(self.manifest.archive, self.epoch, self.end))
        file = self.files.create(name)
        try:
            file.write([schema])
            self.files.sync_names()
        except OSError:
            file.close()
            self._break()
            raise
        self._file, self._first, self._opened = file, self.end, self.clock()
        self._size = self._durable_size = len(schema)
        self._earliest, self._latest = 1 << 62, -(1 << 62)
        self.indexes.begin()

    def _undo(self, file: File) -> None:
        """Remove what a failed write has left."""
        try:
            file.truncate(self._size)
        except OSError:
            self._break()

    def _doubt(self) -> None:
        self._doubtful = True
        self.lost += self.end - self.durable
        self._break()

    def _break(self) -> None:
        self.broken = True
        self._release()

    def _cut_to_durable(self) -> None:
        """Remove what may not be on the disk after a failed sync."""
        path = self.folder / name_of(self._first, is_open=True)
        if not path.exists():
            return  # it was renamed, which comes after its sync
        file = self.files.open(path.name)
        try:
            file.truncate(self._durable_size)
        finally:
            file.close()

    def _say(self, line: dict[str, Any]) -> None:
        """Add a line to the manifest, on the disk."""
        assert self._log is not None
        self._log.write([manifest.line_bytes(line)])
        self._log.sync()
        if self.manifest.lines > 2 * (len(self.manifest.spans) + len(self.manifest.marks)) + manifest.LINES_MORE:
            self._log.close()
            self._log = None
            recovery.write(self.manifest, self.files)
            self._log = self.files.open(manifest.NAME)

    def _release(self) -> None:
        files, self._file, self._log = (self._file, self._log), None, None
        for file in files:
            if file is not None:
                with suppress(OSError):  # what counts was synced; what was not is judged when the archive is opened
                    file.close()


def _with_offsets(batch: Any, first: int) -> Any:
    numbers = array("q", range(first, first + batch.num_rows))  # a quarter of the time of pa.array
    offsets = pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
    columns = [batch.column(batch.schema.get_field_index(field.name)) for field in MESSAGE]
    return pa.RecordBatch.from_arrays([offsets, *columns], schema=SCHEMA)


def _lock(folder: Path) -> int:
    """A descriptor that holds the archive against other writers. Raises InUse."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise InUse("it is being written by another process") from error
    return descriptor
