"""Has the archive's retention wait for a job: its position as a hold in the archive's folder.

A job that cannot write there, to an archive that it may only read, does its work all the same, and warns once.
"""

import hashlib
import logging
import re
from pathlib import Path
from typing import Final

from fanlight_archive import holds
from fanlight_spark.positions import Position

log: Final = logging.getLogger(__name__)


class Hold:
    """by: who waits, for people. Raises ValueError if the name is none."""

    def __init__(self, archive: Path, name: str, by: str) -> None:
        if not holds.NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a hold: letters, digits, '.', '_' and '-', 64 at most")
        self.archive, self.name, self.by = archive, name, by
        self._warned = False

    def at(self, position: Position) -> None:
        """What is before the position is not needed any more."""
        try:
            holds.keep(self.archive, self.name, position.archive, position.epoch, position.offset, self.by)
        except OSError as error:
            if not self._warned:
                log.warning("retention does not wait for this job, as its hold cannot be written: %s", error)
                self._warned = True


def name_of(by: str) -> str:
    """A name for a hold, one for each table."""
    tail = re.sub(r"[^A-Za-z0-9._-]+", "-", by.rstrip("/").rpartition("/")[2])[:40]
    return f"compact-{tail}-{hashlib.sha256(by.encode()).hexdigest()[:8]}"
