"""Marks on their way to the archive, each to be written with the message that it is of, or behind it.

The tap may hand over a batch while a message is being sent, which is the one that filled it. So a mark is noted before
its message is sent, with how many messages the tap will have taken then, and goes with the first batch that reaches so
far. Earlier would lose the message in a crash, later would have it taken twice.
"""

from collections.abc import Iterable
from typing import Final

from fanlight_broker.core.marks import Mark

ROOM: Final = 48  # bytes of a mark beside its names: two numbers of 20 digits, quotes and commas
ESCAPED: Final = 6  # bytes that one of a name may become in JSON


class PendingMarks:
    def __init__(self) -> None:
        self.octets = 0  # that they may take when they are written, at most
        self._marks: dict[tuple[str, str], Mark] = {}  # the highest of each producer, the last that moved up last
        self._last: tuple[Mark, int] | None = None  # its message is being sent, or was

    def note(self, mark: Mark, end: int) -> None:
        """A message with this mark is about to be sent; the tap will have taken so many then, if it takes it."""
        self._keep()
        self._last = (mark, end)

    def undo_note(self) -> None:
        """The message of the last `note` was held back."""
        self._last = None

    def pop(self, end: int) -> tuple[Mark, ...]:
        """Those whose messages are among so many that the tap has taken, or are not to be archived at all."""
        if self._last is not None and self._last[1] <= end:
            self._keep()
        return self._pop()

    def pop_all(self) -> tuple[Mark, ...]:
        """All of them. Not to be called while a message is being sent."""
        self._keep()
        return self._pop()

    def _keep(self) -> None:
        if self._last is not None:
            mark, self._last = self._last[0], None
            if self._marks.pop(mark[:2], None) is None:
                self.octets += octets_of(mark)
            self._marks[mark[:2]] = mark

    def _pop(self) -> tuple[Mark, ...]:
        marks, self._marks, self.octets = tuple(self._marks.values()), {}, 0
        return marks


def octets_of(mark: Mark) -> int:
    """What a mark may take when it is written, at most."""
    return ROOM + ESCAPED * (len(mark.user.encode()) + len(mark.producer.encode()))


def merged(first: Iterable[Mark], second: Iterable[Mark], most: int) -> tuple[Mark, ...]:
    """The highest of each producer, the last that moved up last, and at most so many."""
    found: dict[tuple[str, str], Mark] = {}
    for mark in (*first, *second):
        found[mark[:2]] = max(found.pop(mark[:2], mark), mark)
    return tuple(found.values())[-most:]
