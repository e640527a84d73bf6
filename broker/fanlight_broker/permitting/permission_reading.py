"""Reads a file of permissions, and notes which file it was and how long a thread was busy without a pause."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from fanlight_broker.core.limits import Limits
from fanlight_broker.parts import PartError
from fanlight_permissions.permission_file import PermissionFileError, load
from fanlight_permissions.table import PermissionTable

FileState = tuple[int, int, int] | None  # time of the last change in ns, bytes, inode; None: it cannot be seen


class PermissionSource(NamedTuple):
    """Where a table is from. longest: processor seconds of the longest piece between two pauses."""

    path: Path
    state: FileState
    read: str  # when
    longest: float

    @property
    def changed(self) -> bool:
        """Is the file another one than when it was read?"""
        return self.state is None or state_of(self.path) != self.state


class Pieces:
    """Passes calls of `pause` on, and measures the work between them."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self.longest = 0.0
        self._pause = pause
        self._since = time.thread_time()

    def __call__(self) -> None:
        self.note()
        self._pause()
        self._since = time.thread_time()

    def note(self) -> None:
        self.longest = max(self.longest, time.thread_time() - self._since)


def state_of(path: Path) -> FileState:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def read_permissions(
    path: Path, limits: Limits, pause: Callable[[], None]
) -> tuple[PermissionTable, PermissionSource]:
    """The table of a file, and where it is from. In the thread that does it. Raises PartError."""
    state, pieces = state_of(path), Pieces(pause)
    try:
        table = load(path, limits, pieces)
    except PermissionFileError as error:
        raise PartError("; ".join(error.problems)) from error
    pieces.note()
    return table, PermissionSource(path, state, datetime.now(UTC).isoformat(timespec="seconds"), pieces.longest)
