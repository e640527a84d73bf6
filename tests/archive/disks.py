"""A disk that fails when a test wants it."""

import errno
from collections.abc import Sequence
from pathlib import Path

from fanlight_archive.files import Disk, File, Piece


class FailingDisk(Disk):
    """full: writes fail when they have written half. rotten: syncs fail."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.full = self.rotten = False
        self.syncs = 0

    def create(self, name: str) -> File:
        return FailingFile(self, super().create(name))

    def open(self, name: str) -> File:
        return FailingFile(self, super().open(name))


class FailingFile:
    def __init__(self, disk: FailingDisk, file: File) -> None:
        self.disk, self.file = disk, file

    def write(self, pieces: Sequence[Piece]) -> None:
        if self.disk.full:
            whole = b"".join(bytes(piece) for piece in pieces)
            self.file.write([whole[: len(whole) // 2]])
            raise OSError(errno.ENOSPC, "No space left on device")
        self.file.write(pieces)

    def sync(self) -> None:
        self.disk.syncs += 1
        if self.disk.rotten:
            raise OSError(errno.EIO, "Input/output error")
        self.file.sync()

    def truncate(self, size: int) -> None:
        self.file.truncate(size)

    def close(self) -> None:
        self.file.close()
