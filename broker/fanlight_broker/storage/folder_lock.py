"""One broker for each folder: a lock that ends with the process, however it ends."""

import fcntl
import os
from pathlib import Path

from fanlight_broker.storage.segments import LogError


class FolderLock:
    """Makes the folder if there is none, and locks it. LogError: another process has it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._fd, 20, 0).decode("ascii", "replace").strip()
            self.close()
            raise LogError(
                f"{folder} is in use by another broker (process {owner or 'unknown'}): "
                "stop it, or give this one a folder of its own"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%d\n" % os.getpid(), 0)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self.close()
