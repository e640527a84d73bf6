"""Present rates of topics: the difference between two readings of their routes' counts.

A route counts its messages and is never reset. Each reading is compared with the one before it, of any user, so that
two users who look at the same time both see present rates.
"""

from collections.abc import Mapping
from typing import Final

WINDOW_SECONDS_MIN: Final = 0.05  # readings closer together share an earlier one, because of noise

Counts = Mapping[int, int]
"""Messages by the hash of a namespace and a route's key: some 100 bytes for each topic, however long its name."""


class Readings:
    """The last two readings, each of as many topics as there are cached routes."""

    def __init__(self) -> None:
        self._older: tuple[float, Counts] | None = None
        self._newer: tuple[float, Counts] | None = None

    def exchange(self, now: float, counts: Counts) -> tuple[float, Counts] | None:
        """Keep this reading; the seconds since an earlier one, and that one. None: this is the first."""
        if self._newer is not None and now - self._newer[0] < WINDOW_SECONDS_MIN:
            earlier = self._older
        else:
            earlier, self._older = self._newer, self._newer
            self._newer = now, counts
        return None if earlier is None else (now - earlier[0], earlier[1])
