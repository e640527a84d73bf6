"""One broker for each folder: a lock that ends with the process, however it ends."""

import fcntl
import os
from pathlib import Path

from fanlight_broker.storage.segments import LogError


class FolderLock:
    """Makes the folder if it does not exist, and locks it. LogError: another process has it.

    read_only: change nothing. The folder must be there; a copy of a store that no broker had may be without a lock.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self._fd = -1
        if read_only:
            if not folder.is_dir():
                raise LogError(f"{folder} is no folder")
            try:
                self._fd = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(self._fd, (fcntl.LOCK_SH if read_only else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._fd, 20, 0).decode("ascii", "replace").strip()
            self.close()
            advice = "stop it" if read_only else "stop it, or give this one a folder of its own"
            raise LogError(f"{folder} is in use by another broker (process {owner or 'unknown'}): {advice}") from None
        if not read_only:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, b"%d\n" % os.getpid(), 0)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self.close()
