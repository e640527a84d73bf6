"""The disk below a folder: what the device has written and flushed, a bare fdatasync, sizes, a cold cache.

Sectors and flushes are those of the whole device (Documentation/admin-guide/iostats.rst of the kernel): on a shared
machine they contain what neighbours write. A process's write_bytes is not used: it counts pages that become dirty, and
a small write into a large page of the cache counts as all of it.
"""

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fanlight_bench.load.histogram import Histogram

SECTOR_BYTES = 512
RECORD_BYTES = 281          # of a bare append: 256 bytes and what a log adds to them
PAGE_BYTES = 4096
PLACE_BYTES = 8 * 1024       # of a bare read: an entry of a log
RECYCLED_BYTES = 8 * 2**20  # of the file that is written again and again


@dataclass(frozen=True)
class Device:
    """The block device below a folder. Raises ValueError: there is none, so nothing is ever on a disk there."""

    path: Path
    name: str
    file_system: str

    @classmethod
    def below(cls, folder: Path) -> "Device":
        """That of an existing folder."""
        number = os.stat(folder).st_dev
        path = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        kind, options = _mounted(folder)
        if not (path / "stat").exists():
            raise ValueError(f"{folder} is on {kind or 'a file system'}, without a disk: choose another --folder")
        return cls(path, path.resolve().name, f"{kind} ({options})")

    def written(self) -> "Written":
        fields = (self.path / "stat").read_text().split()
        return Written(int(fields[6]) * SECTOR_BYTES, int(fields[15]) if len(fields) > 15 else None)

    def about(self) -> dict[str, str]:
        """Values for JSON."""
        cache = self.path / "queue" / "write_cache"
        if not cache.exists():  # a partition: the queue is that of the whole disk
            cache = self.path.resolve().parent / "queue" / "write_cache"
        return {
            "device": self.name,
            "file_system": self.file_system,
            "write_cache": cache.read_text().strip() if cache.exists() else "",
        }


@dataclass(frozen=True)
class Written:
    """What a device has written since the machine started. flushes: of its cache, None before Linux 5.5."""

    octets: int
    flushes: int | None

    def since(self, before: "Written") -> "Written":
        """What was written between two moments."""
        flushes = None if self.flushes is None or before.flushes is None else self.flushes - before.flushes
        return Written(self.octets - before.octets, flushes)


class BareSync:
    """Appends of RECORD_BYTES, each with an fdatasync, to a file below a folder that goes at the end.

    recycled: over blocks that were written before; otherwise the file grows. Use it as a context manager.
    """

    def __init__(self, folder: Path, *, recycled: bool) -> None:
        self.times = Histogram()
        self._path = folder / f"bare-{'recycled' if recycled else 'growing'}"
        self._recycled = recycled
        self._at = 0
        self._seconds = 0.0
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def __enter__(self) -> Self:
        if self._recycled:
            os.pwrite(self._file, bytes(RECYCLED_BYTES), 0)
        os.fsync(self._file)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._path.unlink()

    def run(self, seconds: float) -> None:
        """Append for so long, once at least."""
        record, begun, now = b"x" * RECORD_BYTES, time.perf_counter(), 0.0
        while now < begun + seconds:
            before = time.perf_counter_ns()
            os.pwrite(self._file, record, self._at)
            os.fdatasync(self._file)
            self.times.record(time.perf_counter_ns() - before)
            self._at += RECORD_BYTES
            if self._recycled and self._at + RECORD_BYTES > RECYCLED_BYTES:
                self._at = 0
            now = time.perf_counter()
        self._seconds += now - begun

    def figures(self) -> dict[str, float]:
        """p50_us, p99_us and per_second of all runs."""
        return {
            "p50_us": self.times.quantile(0.5) / 1e3,
            "p99_us": self.times.quantile(0.99) / 1e3,
            "per_second": self.times.total / self._seconds,
        }


def bare_reads(paths: Sequence[Path], count: int) -> float:
    """Read `count` places, spread evenly over files that the cache does not have: places a second.

    All are announced to the kernel before, so the disk has as much to do at once as it takes.
    """
    begun = time.perf_counter()
    with contextlib.ExitStack() as stack:
        places: list[tuple[int, int]] = []
        for number, path in enumerate(paths):
            file = os.open(path, os.O_RDONLY)
            stack.callback(os.close, file)
            own = count * (number + 1) // len(paths) - count * number // len(paths)
            places += [(file, os.fstat(file).st_size * at // own // PAGE_BYTES * PAGE_BYTES) for at in range(own)]
        for file, offset in places:
            os.posix_fadvise(file, offset, PLACE_BYTES, os.POSIX_FADV_WILLNEED)
        for file, offset in places:
            os.pread(file, PLACE_BYTES, offset)
    return count / (time.perf_counter() - begun)


def bytes_in(folder: Path) -> int:
    """What the files of a folder take on the disk: blocks, not lengths."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
            if path.is_file():
                total += path.stat().st_blocks * SECTOR_BYTES
    return total


def drop_cache(folder: Path) -> None:
    """Have the kernel forget the pages of these files, so that reading them reads the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(file)  # a page that is not written yet cannot be forgotten
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


def _mounted(folder: Path) -> tuple[str, str]:
    """Type and options of the file system that a folder is on."""
    found, longest = ("", ""), -1
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        place, options = before.split()[4:6]
        if folder.resolve().is_relative_to(place) and len(place) >= longest:
            kind, _, more = after.split(" ", 2)
            every = dict.fromkeys([*options.split(","), *more.strip().split(",")])
            found, longest = (kind, ",".join(every)), len(place)
    return found
