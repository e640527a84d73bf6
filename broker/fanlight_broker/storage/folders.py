"""Names of files that survive a power cut: for commands on a store, which have no Disk."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """New, changed and removed names in it are durable. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
