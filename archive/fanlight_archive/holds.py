"""Holds: readers that retention waits for, within limits.

    holds/NAME.json     {"format": 1, "archive": "<uuid>", "epoch": 1, "offset": 8192, "by": "s3://lake/messages"}

A reader that must not miss a message writes the position before which it needs nothing any more, and writes it again
whenever it has run: the file's time says when. `keep` is for readers, `holds_in` for who removes segments. `Held` is
what a round of retention has to keep: of the segments that are due, those that a hold needs and that still fit into a
number of bytes. What does not fit is removed and reported, so that a reader that never comes back fills no disk.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fanlight_archive.files import Disk
from fanlight_archive.manifest import Span

FOLDER: Final = "holds"
FORMAT: Final = 1
HOLDS_MAX: Final = 64  # files that are looked at, the first by name: a reader a table, not a reader a query
BYTES_MAX: Final = 4_096  # of a file
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class Hold:
    """A reader needs the messages from `offset` on."""

    name: str
    offset: int
    epoch: int
    by: str  # who it is, for people
    written: float  # seconds since 1970
    problem: str | None = None  # why it counts for nothing; None: it counts


@dataclass(frozen=True, slots=True)
class Held:
    """What holds did to a round of retention."""

    spans: Sequence[Span] = ()  # due, and kept
    overruled: Sequence[Span] = ()  # needed by a hold, and removed all the same
    bytes: int = 0  # of `spans`


@dataclass(slots=True)
class Keeping:
    """What remove_old is to keep: messages from `offset` on, of those segments that are due, at most `bytes_max`."""

    offset: int | None = None  # None: no hold
    bytes_max: int = 0
    held: Held = field(default_factory=Held)  # of the last round

    def divide(self, due: Sequence[Span], size_of: Callable[[Span], int]) -> list[Span]:
        """Those of the due segments, oldest first, that are to be removed."""
        needed = [span for span in due if self.offset is not None and span.end > self.offset]
        room, kept = self.bytes_max, 0
        for span in reversed(needed):  # the newest: what goes is always the oldest, so that no gap comes about
            room -= size_of(span)
            if room < 0:
                break
            kept += 1
        at = len(needed) - kept
        self.held = Held(needed[at:], needed[:at], sum(size_of(span) for span in needed[at:]))
        return [*due[: len(due) - kept]]


def keep(folder: Path, name: str, archive: str, epoch: int, offset: int, by: str) -> None:
    """Write a hold in place of the one of this name, on the disk. Raises ValueError, OSError."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a hold: letters, digits, '.', '_' and '-', 64 at most")
    holds = Path(folder) / FOLDER
    holds.mkdir(exist_ok=True)
    line = {"format": FORMAT, "archive": archive, "epoch": epoch, "offset": offset, "by": by[:1_024]}
    aside = holds / f"{name}.new"
    with aside.open("w", encoding="utf-8") as file:  # by the umask: the broker may be another user
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())
    aside.rename(holds / (name + SUFFIX))
    Disk(holds).sync_names()


def release(folder: Path, name: str) -> None:
    """Remove a hold, if it is there. Raises OSError."""
    with suppress(FileNotFoundError):
        (Path(folder) / FOLDER / (name + SUFFIX)).unlink()


def holds_in(folder: Path, archive: str, since: float | None) -> list[Hold]:
    """The holds of an archive, by name. Raises OSError.

    since: those that were written before are stale; None: none is
    """
    try:
        names = sorted(name for name in os.listdir(Path(folder) / FOLDER) if name.endswith(SUFFIX))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = []
    for name in names[:HOLDS_MAX]:
        with suppress(FileNotFoundError):  # removed since
            found.append(_read(Path(folder) / FOLDER / name, archive, since))
    return found


def lowest(holds: Iterable[Hold]) -> int | None:
    """From which offset on messages are needed; None if no hold counts."""
    return min((hold.offset for hold in holds if hold.problem is None), default=None)


def _read(path: Path, archive: str, since: float | None) -> Hold:
    written = path.stat().st_mtime
    stored: dict[str, Any] = {}
    problem = None
    try:
        with path.open("rb") as file:
            stored = json.loads(file.read(BYTES_MAX))
        offset, epoch, by = int(stored["offset"]), int(stored["epoch"]), str(stored["by"])
        if stored["format"] != FORMAT:
            problem = f"it is in format {stored['format']}"
        elif stored["archive"] != archive:
            problem = "it is of another archive"
    except (ValueError, KeyError, TypeError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        offset, epoch, by, problem = 0, 0, "", f"it cannot be read: {error!r}"
    if problem is None and since is not None and written < since:
        problem = "stale"
    return Hold(path.name.removesuffix(SUFFIX), offset, epoch, by, written, problem)
