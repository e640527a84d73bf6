"""Disks for tests: one that fails, and one that records what it was asked."""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fanlight_broker.storage.disk import PythonDisk

CHANGES = ("create", "write", "sync", "truncate", "link", "rename", "unlink", "sync_folder")


@dataclass(frozen=True)
class Operation:
    name: str
    path: bytes | int
    data: bytes | int | None
    offset: int


class FaultyDisk(PythonDisk):
    """`fails` is asked before each operation that changes something: an errno, or 0."""

    def __init__(self, fails: Callable[[Operation], int] = lambda operation: 0) -> None:
        self.fails = fails
        self.operations: list[Operation] = []
        self.failed: list[Operation] = []

    def operate(self, name: str, path: bytes | int, data: bytes | int | None, offset: int) -> None:
        if name not in CHANGES:
            return
        operation = Operation(name, path, data, offset)
        self.operations.append(operation)
        if error := self.fails(operation):
            self.failed.append(operation)
            if name == "write" and isinstance(path, int) and isinstance(data, bytes):
                os.pwrite(path, data[: len(data) // 2], offset)  # a part of it was done
            raise OSError(error, os.strerror(error))


@dataclass
class Nth:
    """Fails the operation with this number, and as many behind it."""

    first: int
    count: int = 1
    error: int = errno.EIO
    seen: int = field(default=0)

    def __call__(self, operation: Operation) -> int:
        self.seen += 1
        return self.error if self.first < self.seen <= self.first + self.count else 0


class Broken:
    """Fails all operations with these names while `error` is not 0."""

    def __init__(self, *names: str, error: int = errno.ENOSPC) -> None:
        self.names, self.error = names, error

    def __call__(self, operation: Operation) -> int:
        return self.error if operation.name in self.names else 0


def numbers() -> Iterator[bytes]:
    """Bodies that differ, of many lengths."""
    number = 0
    while True:
        yield b"%d" % number + bytes(number * 37 % 700)
        number += 1


class SmallDisk(FaultyDisk):
    """Has room for so many bytes in the files below a folder."""

    def __init__(self, folder: Path, room: int) -> None:
        super().__init__(self._fails)
        self.folder, self.room = folder, room

    @property
    def used(self) -> int:
        return sum(each.stat().st_size for each in self.folder.rglob("*") if each.is_file())

    def _fails(self, operation: Operation) -> int:
        self.operations.clear()  # there are many
        if operation.name != "write":
            return 0
        assert isinstance(operation.path, int)
        assert isinstance(operation.data, bytes)
        more = operation.offset + len(operation.data) - os.fstat(operation.path).st_size
        return errno.ENOSPC if more > 0 and self.used + more > self.room else 0
