"""Marked messages that were refused on a connection: later ones of the same batch are refused, too (section 3.8).

So a client may have many in flight: none of them advances the producer's mark above one that is to be sent again.
"""

from typing import Final

from fanlight_broker.core.errors import FanlightError

PRODUCERS_MAX: Final = 100  # per connection, the latest; few connections have more than one

MarkNumber = tuple[str, int, int]  # producer, batch, sequence


class Refusals:
    def __init__(self) -> None:
        self._first: dict[str, tuple[MarkNumber, FanlightError]] = {}  # of each producer

    def check(self, mark: MarkNumber) -> None:
        """Raises the error with which an earlier message of its batch was refused."""
        known = self._first.get(mark[0])
        if known is None:
            return
        refused, error = known
        if mark[1] == refused[1] and mark > refused:
            raise error.with_traceback(None)  # each raise would add frames, and keep what they refer to
        del self._first[mark[0]]  # it is sent again, or given up with its batch

    def add(self, mark: MarkNumber, error: FanlightError) -> None:
        self._first.setdefault(mark[0], (mark, error))
        if len(self._first) > PRODUCERS_MAX:
            del self._first[next(iter(self._first))]
