"""Reads a file of permissions, and notes which file it was and how long a thread was busy without a pause.

What is large of the table is hidden from Python's garbage collector (wire/hidden.pxd), which is off meanwhile: its next
pass, however short it would be else, goes through all that was made since, in one step.
"""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from fanlight_broker.core.limits import Limits
from fanlight_broker.parts import PartError
from fanlight_broker.wire.hidden import hide
from fanlight_permissions.permission_file import PermissionFileError, load
from fanlight_permissions.table import PermissionTable

HIDDEN_AT_ONCE: Final = 5_000  # some 0.2 ms

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
    plain = table.plain()
    while some := tuple(islice(plain, HIDDEN_AT_ONCE)):
        hide(*some)
        pieces()
    return table, PermissionSource(path, state, datetime.now(UTC).isoformat(timespec="seconds"), pieces.longest)
