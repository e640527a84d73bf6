"""Marks on their way to the archive. Each is written with its message, or after it.

The tap may hand over a batch while a message is being sent: the message that filled the batch. So a mark is noted
before its message is sent, together with the number of messages that the tap will have taken by then. It is written
with the first batch that reaches this number: earlier, a crash would lose the message; later, a crash would let it be
accepted twice.
"""

from collections.abc import Iterable
from typing import Final

from fanlight_broker.core.marks import Mark

ROOM: Final = 48  # bytes of a mark beside its names: two numbers of 20 digits, quotes and commas
ESCAPED: Final = 6  # bytes that one of a name may become in JSON


class PendingMarks:
    def __init__(self) -> None:
        self.octets = 0  # an upper bound of what they take when they are written
        self._marks: dict[tuple[str, str], Mark] = {}  # the highest of each producer, the latest one last
        self._last: tuple[Mark, int] | None = None  # its message is being sent, or was

    def note(self, mark: Mark, end: int) -> None:
        """A message with this mark is about to be sent. `end` is what the tap will have taken, if it takes it."""
        self._keep()
        self._last = (mark, end)

    def undo_note(self) -> None:
        """The message of the last `note` was held back, and not sent."""
        self._last = None

    def pop(self, end: int) -> tuple[Mark, ...]:
        """Remove and return the marks of the first `end` messages of the tap, and of messages that are not archived."""
        if self._last is not None and self._last[1] <= end:
            self._keep()
        return self._pop()

    def pop_all(self) -> tuple[Mark, ...]:
        """Remove and return all. Not to be called while a message is being sent."""
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
    """An upper bound of the bytes of a mark when it is written."""
    return ROOM + ESCAPED * (len(mark.user.encode()) + len(mark.producer.encode()))


def merged(first: Iterable[Mark], second: Iterable[Mark], most: int) -> tuple[Mark, ...]:
    """The highest mark of each producer, the latest one last; the last `most` of them."""
    found: dict[tuple[str, str], Mark] = {}
    for mark in (*first, *second):
        found[mark[:2]] = max(found.pop(mark[:2], mark), mark)
    return tuple(found.values())[-most:]
