"""Chunks of long queues that keep no journal, on the disk until their turn comes.

A file without a name in the data folder: it is gone when the broker is, however that ends, and a restart finds nothing
of it. It has units of 64 KiB; a chunk takes as many as it needs, wherever they are. It is cut to nothing when the last
chunk has left. Nothing is synced. The page cache takes what is written, and `expect` makes the kernel read ahead.
"""

import os
import tempfile
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from fanlight_broker import event_log

log: Final = event_log.get("store")

UNIT: Final = 64 * 1024
ADVICE: Final = "what waits stays in memory until there is room; see data_pages_bytes_max and data_free_bytes_min"


class PagePlace(NamedTuple):
    units: tuple[int, ...]
    checksum: int


class PageFile:
    """free_min: bytes that writing leaves free on the disk. bytes_max: what the file takes at most."""

    def __init__(self, folder: Path, bytes_max: int, free_min: int) -> None:
        self._folder, self._units_max, self._free_min = folder, bytes_max // UNIT, free_min
        self._file: int | None = None  # none before the first chunk
        self._end = 0  # units that the file has
        self._unused: list[int] = []  # of these
        self._closed = False
        self._refused = False  # the last write was, and it is in the log
        self.unreadable = 0  # chunks that were lost because the disk has them no more, or otherwise

    @property
    def nbytes(self) -> int:
        """What the chunks take."""
        return (self._end - len(self._unused)) * UNIT

    def write(self, octets: bytes) -> PagePlace | None:
        """None: there is no room, or the disk refuses it."""
        count = -(-len(octets) // UNIT)
        try:
            if self._closed or self._end - len(self._unused) + count > self._units_max:
                self._refuse("data_pages_bytes_max")
                return None
            file = self._opened()
            if self._free(file) - count * UNIT < self._free_min:
                self._refuse("data_free_bytes_min")
                return None
            units = self._take(count)
            try:
                for number, unit in enumerate(units):
                    part = octets[number * UNIT : (number + 1) * UNIT]
                    if os.pwrite(file, part, unit * UNIT) != len(part):
                        raise OSError("a chunk was written in part")
            except OSError:
                self._unused += units
                raise
        except OSError as error:
            self._refuse(error.strerror or str(error))
            return None
        self._refused = False
        return PagePlace(tuple(units), crc32(octets))

    def read(self, place: PagePlace, size: int) -> bytes | None:
        """The octets of a chunk. None: they cannot be read, which is in the log."""
        parts = []
        try:
            assert self._file is not None
            for number, unit in enumerate(place.units):
                parts.append(os.pread(self._file, min(UNIT, size - number * UNIT), unit * UNIT))
            octets = b"".join(parts)
            if len(octets) == size and crc32(octets) == place.checksum:
                return octets
            reason = "it is not what was written"
        except OSError as error:
            reason = error.strerror or str(error)
        self.unreadable += 1
        log.error(
            "queue_page_unreadable", reason=reason, advice="its messages are lost, counted as dropped; check the disk"
        )
        return None

    def free(self, place: PagePlace) -> None:
        self._unused += place.units
        if len(self._unused) == self._end and self._file is not None:
            os.ftruncate(self._file, 0)
            self._unused, self._end = [], 0

    def expect(self, place: PagePlace) -> None:
        """It is read soon."""
        if self._file is not None:
            for unit in place.units:
                os.posix_fadvise(self._file, unit * UNIT, UNIT, os.POSIX_FADV_WILLNEED)

    def close(self) -> None:
        """The broker ends. What is freed later is freed with it."""
        self._closed = True
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        if self._file is None:
            with tempfile.TemporaryFile(dir=self._folder, buffering=0) as made:
                self._file = os.dup(made.fileno())
        return self._file

    def _free(self, file: int) -> int:
        found = os.fstatvfs(file)
        return found.f_bavail * found.f_frsize

    def _take(self, count: int) -> list[int]:
        units = [self._unused.pop() for _ in range(min(count, len(self._unused)))]
        fresh = count - len(units)
        units += range(self._end, self._end + fresh)
        self._end += fresh
        return units

    def _refuse(self, reason: str) -> None:
        if not self._refused and not self._closed:
            log.warning("queue_page_refused", reason=reason, bytes=self.nbytes, advice=ADVICE)
        self._refused = True
