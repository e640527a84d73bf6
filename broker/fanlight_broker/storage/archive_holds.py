"""What the archive's retention does for holds (fanlight_archive.holds), in the writer's thread.

A round looks at the files, removes what it may, and logs what has changed: a hold that begins to be ignored, and
segments that were removed though a hold needed them. Holds that cannot be read at all hold nothing and are no reason to
stop retention, which may be what makes room on a full disk.
"""

import time
from typing import Final

from fanlight_archive import Writer
from fanlight_archive.holds import Hold, Keeping, holds_in, lowest
from fanlight_broker import event_log
from fanlight_broker.core.limits import Limits

log: Final = event_log.get("archive")


class ArchiveHolds:
    """found: as of the last round. bytes, overruled: as WriteProgress has them."""

    def __init__(self, writer: Writer) -> None:
        self.found: tuple[Hold, ...] = ()
        self.bytes = 0
        self.overruled = 0
        self._writer = writer
        self._keeping = Keeping()
        self._reported: set[tuple[str, str]] = set()  # (name, problem) of holds that are ignored

    def look(self, limits: Limits) -> Keeping:
        """What this round is to keep."""
        since = time.time() - limits.archive_hold_seconds_max if limits.archive_hold_seconds_max else None
        try:
            self.found = tuple(holds_in(self._writer.folder, self._writer.manifest.archive, since))
        except OSError as error:
            self.found = ()
            self._ignored({("holds", str(error))})
        else:
            self._ignored({(hold.name, hold.problem) for hold in self.found if hold.problem is not None})
        room = limits.archive_hold_bytes_max
        self._keeping = Keeping(lowest(self.found) if room else None, room)
        return self._keeping

    def report(self) -> None:
        """After the round: say what was removed though it was needed."""
        held = self._keeping.held
        self.bytes = held.bytes
        if held.overruled:
            self.overruled += len(held.overruled)
            first, end = held.overruled[0].first, held.overruled[-1].end
            log.warning(
                "archive_holds_overruled", segments=len(held.overruled), first=first, end=end,
                holds=[hold.name for hold in self.found if hold.problem is None and hold.offset < end],
                reason="archive_hold_bytes_max is reached: these messages are gone before they were read",
            )  # fmt: skip

    def _ignored(self, problems: set[tuple[str, str]]) -> None:
        for name, problem in sorted(problems - self._reported):
            log.warning("archive_hold_ignored", hold=name, reason=problem)
        self._reported = problems
