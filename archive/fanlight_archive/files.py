"""The disk operations of an archive, as a port: tests replace it by recorders and failing disks.

Only writing uses it. Reading opens files directly.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

Piece = bytes | memoryview


class File(Protocol):
    """A file that is written at its end."""

    def write(self, pieces: Sequence[Piece]) -> None:
        """Write all of it, or raise OSError when some may have been written."""
        ...

    def sync(self) -> None:
        """Return when all that was written is on the disk."""
        ...

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


class Files(Protocol):
    """The files of one folder, by name."""

    def create(self, name: str) -> File:
        """A new, empty file; one that is there is an error."""
        ...

    def open(self, name: str) -> File:
        """A file that is there, to write on at its end."""
        ...

    def rename(self, old: str, new: str) -> None:
        """In place of what has the new name."""
        ...

    def remove(self, name: str) -> None: ...

    def sync_names(self) -> None:
        """Return when all that was created, renamed and removed is so on the disk."""
        ...


class DiskFile:
    def __init__(self, path: Path, flags: int) -> None:
        self._descriptor = os.open(path, flags | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o640)

    def write(self, pieces: Sequence[Piece]) -> None:
        left = [memoryview(piece) for piece in pieces]
        while left:
            written = os.writev(self._descriptor, left)
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            if left:
                left[0] = left[0][written:]

    def sync(self) -> None:
        # fdatasync(2): it writes the length too, and leaves out the time of modification.
        (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(self._descriptor)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1  # even if close fails, the descriptor is closed
        if descriptor >= 0:
            os.close(descriptor)


class Disk:
    """The files of a real folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, name: str) -> File:
        return DiskFile(self.folder / name, os.O_CREAT | os.O_EXCL)

    def open(self, name: str) -> File:
        return DiskFile(self.folder / name, 0)

    def rename(self, old: str, new: str) -> None:
        os.rename(self.folder / old, self.folder / new)

    def remove(self, name: str) -> None:
        os.unlink(self.folder / name)

    def sync_names(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_whole(files: Files, name: str, data: bytes, aside: str) -> None:
    """Write a file so that a crash leaves all of it or what was there before, once `sync_names` has returned.

    aside: the name that it has meanwhile; one that a crash has left is removed.
    """
    with suppress(FileNotFoundError):
        files.remove(aside)
    file = files.create(aside)
    try:
        file.write([data])
        file.sync()
    finally:
        file.close()
    files.rename(aside, name)
