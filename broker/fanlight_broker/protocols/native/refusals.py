"""Marked messages that were refused on a connection: what is behind one in its batch is refused, too (section 3.8).

So a client may have many on the way: none of them pushes the producer's mark above one that is to be tried again.
"""

from typing import Final

from fanlight_broker.core.errors import FanlightError

PRODUCERS_MAX: Final = 100  # remembered for a connection, the latest; few have more than one

MarkNumber = tuple[str, int, int]  # producer, batch, sequence


class Refusals:
    def __init__(self) -> None:
        self._first: dict[str, tuple[MarkNumber, FanlightError]] = {}  # of each producer

    def check(self, mark: MarkNumber) -> None:
        """Raises the error with which one before it in its batch was refused."""
        known = self._first.get(mark[0])
        if known is None:
            return
        refused, error = known
        if mark[1] == refused[1] and mark > refused:
            raise error.with_traceback(None)  # each raise adds to it, and it holds the frames with what they had
        del self._first[mark[0]]  # it is tried again, or given up with its batch

    def add(self, mark: MarkNumber, error: FanlightError) -> None:
        self._first.setdefault(mark[0], (mark, error))
        if len(self._first) > PRODUCERS_MAX:
            del self._first[next(iter(self._first))]
