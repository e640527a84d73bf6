"""A segment on the disk: an Arrow IPC stream of batches with consecutive offsets, named by the first of them.

    00000000000000008192.arrows.open     the one that is being written
    00000000000000008192.arrows          whole, on the disk, and never changed again

`Segment` finds its batches by their heads alone and can be asked again while the file grows. Only what is whole is ever
shown: in an open segment the first message that is not is where it ends for now.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fanlight_archive import frames, marks
from fanlight_archive.arrow import ipc, pa, pc
from fanlight_archive.errors import Corrupt, UnknownFormat
from fanlight_archive.marks import Row
from fanlight_archive.schema import SCHEMA, conform, identity, must_have_columns

CLOSED, OPEN = ".arrows", ".arrows.open"
CHECKED_TIMES: Final = 4  # of the bytes behind damage, that checksums are made of: false heads may claim to be long
_NAME: Final = re.compile(r"(\d{20})\.arrows(\.open)?")


def name_of(first: int, *, is_open: bool = False) -> str:
    return f"{first:020d}{OPEN if is_open else CLOSED}"


def first_of(name: str) -> tuple[int, bool] | None:
    """(first offset, whether it is open) by a file's name; None if it is no segment."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), match[2] is not None) if match else None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a batch lies."""

    at: int  # in the file, in bytes
    size: int
    first: int  # offset of its first message
    rows: int

    @property
    def end(self) -> int:
        return self.first + self.rows


class Segment:
    """A segment that is being read. `extend` first, and again when an open one may have grown."""

    def __init__(self, path: Path, first: int) -> None:
        self.path, self.first = path, first
        self.places: list[Place] = []
        self.schema: Any = None
        self.archive, self.epoch = "", 0
        self.size = 0  # bytes, of what is whole
        self.ended = False  # the mark of the end was seen
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def end(self) -> int:
        """The offset after the last whole message."""
        return self.places[-1].end if self.places else self.first

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def is_at(self, path: Path) -> bool:
        """Is this the file that has the name now? Raises FileNotFoundError."""
        return os.path.samestat(os.fstat(self._descriptor), os.stat(path))

    def extend(self, *, check: bool) -> None:
        """Find the batches that follow those that are known; with `check`, only such whose checksum is right."""
        if self.schema is None and not self._open_stream():
            return
        while not self.ended:
            head = self._head(self.size)
            if head == frames.END:
                self.ended = True
                self.size += len(head)
                return
            found = frames.frame(head) if head else None
            if found is None or not frames.is_batch(found) or not self._there(self.size + found.size):
                return
            if check and not frames.whole(found, self._read(self.size, found.size)):
                return
            if found.rows:
                self.places.append(Place(self.size, found.size, self.end, found.rows))
            self.size += found.size

    def batch(self, place: Place) -> Any:
        """The batch that lies there, with the columns of `SCHEMA`. Raises Corrupt."""
        data = self._read(place.at, place.size)
        size = frames.metadata_size(data[: frames.PREFIX]) or 0
        found = frames.frame(data[: frames.PREFIX + size])
        if found is None or not frames.whole(found, data):
            raise Corrupt(f"{self.path.name}: the batch at {place.at} is not what was written there")
        return conform(frames.decode(data, self.schema))

    def marks(self) -> Iterator[Row]:
        """Those that its batches bring, in their order. Raises Corrupt."""
        for place in self.places:
            try:
                yield from marks.decode(frames.marks(self._head(place.at)))
            except ValueError as error:
                raise Corrupt(f"{self.path.name}: the marks of the batch at {place.at}: {error}") from error

    def after(self, offset: int) -> list[Place]:
        """The batches that have messages from this offset on."""
        at = bisect_right(self.places, offset, key=lambda place: place.end)
        return self.places[at:]

    def rest(self) -> bytes:
        """What is in the file behind what is whole."""
        return self._read(self.size, max(os.fstat(self._descriptor).st_size - self.size, 0))

    def behind(self, rest: bytes, end_max: int) -> list[Place]:
        """The whole batches in what is behind `size`, by their checksums and the offsets that they have."""
        found: list[Place] = []
        budget, past = CHECKED_TIMES * len(rest), 0
        for at, head in frames.batches_in(rest):
            if at < past or at + head.size > len(rest):
                continue
            budget -= head.size
            if budget < 0:
                break
            data = rest[at : at + head.size]
            first = self._first_offset(data) if frames.whole(head, data) and head.rows else None
            # A payload may hold what looks like a batch.
            if first is not None and (found[-1].end if found else self.end) <= first <= end_max - head.rows:
                found.append(Place(self.size + at, head.size, first, head.rows))
                past = at + head.size
        return found

    def salvage(self, end: int) -> None:
        """Find what there is of a closed segment that is damaged, and should end at this offset."""
        self.places, self.ended = [], False
        if self._open_stream():
            self.extend(check=True)
            self.places += self.behind(self.rest(), end)

    def _first_offset(self, data: bytes) -> int | None:
        """That of a whole batch's first message; None if it has none."""
        try:
            batch = frames.decode(data, SCHEMA if self.schema is None else self.schema)
            batch.validate()
            return int(batch.column("offset")[0].as_py())
        except (Corrupt, ArithmeticError, LookupError, TypeError, ValueError):
            return None

    def times(self) -> tuple[int, int]:
        """The earliest and the latest time in it, in microseconds; reads all of it. (0, 0) if it is empty."""
        bounds = [bounds_of(self.batch(place)) for place in self.places]
        return (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else (0, 0)

    def _open_stream(self) -> bool:
        head = self._head(0)
        found = frames.frame(head) if head else None
        if found is None or not frames.is_schema(found) or not self._there(found.size):
            return False
        try:
            schema = ipc.read_schema(pa.py_buffer(self._read(0, found.size)))
        except (pa.ArrowException, OSError, ValueError):
            return False
        self.archive, self.epoch, first = identity(schema)
        if first != self.first:
            raise UnknownFormat(f"{self.path.name} begins with offset {first}: it was renamed")
        must_have_columns(schema, self.path.name)
        self.schema = schema
        self.size = found.size
        return True

    def _head(self, at: int) -> bytes:
        """The prefix and metadata of the message there; b"" if they are not all there."""
        prefix = self._read(at, frames.PREFIX)
        size = frames.metadata_size(prefix)
        if size is None:
            return b""
        metadata = self._read(at + frames.PREFIX, size)
        return prefix + metadata if len(metadata) == size else b""

    def _there(self, end: int) -> bool:
        return os.fstat(self._descriptor).st_size >= end

    def _read(self, at: int, size: int) -> bytes:
        # Not a memory map: a torn tail that recovery cuts off while we look at it would be a SIGBUS.
        data = os.pread(self._descriptor, size, at)
        while 0 < len(data) < size:
            more = os.pread(self._descriptor, size - len(data), at + len(data))
            if not more:
                break
            data += more
        return data


def bounds_of(batch: Any) -> tuple[int, int]:
    """The earliest and the latest time in a batch that is not empty, in microseconds."""
    found = pc.min_max(batch.column(batch.schema.get_field_index("timestamp")).cast(pa.int64()))
    return found["min"].as_py(), found["max"].as_py()
