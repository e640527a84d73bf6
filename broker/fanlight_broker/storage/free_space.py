"""The low-space mark: a store takes nothing more while its file system has too little room.

So the disk is never full of what clients send: consumers go on, whose acknowledgements need a little room, too.
"""

import os
from collections.abc import Callable
from pathlib import Path

WELL_AGAIN = 1.25  # times the mark: else each message that is consumed would let one in


def free_bytes(folder: Path) -> int:
    """What this process may still write there."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class FreeSpace:
    """least: bytes that must be free; 0: it does not matter"""

    def __init__(self, folder: Path, least: int, look: Callable[[Path], int] = free_bytes) -> None:
        self.folder, self.least, self._look = folder, least, look
        self.free = look(folder)  # when it was looked at last
        self.low: str | None = None  # why the store takes nothing more

    def look(self) -> None:
        """See how much is free. OSError: it cannot be seen; then nothing changes."""
        self.free = self._look(self.folder)
        if self.free < self.least:
            self.low = f"{self.free:,} bytes are free in {self.folder}: data_free_bytes_min is {self.least:,}"
        elif self.free >= self.least * WELL_AGAIN:
            self.low = None
