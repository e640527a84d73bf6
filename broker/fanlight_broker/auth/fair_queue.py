"""The queue of logins: one line for each address; the lines take turns.

    address A   login login login ...      A, B, C, A, B, C, ...: a single login waits for one login of each other
    address B   login
    address C   login login                address at most; a login is skipped until its penalty is over

The number of logins is bounded, in all and for each line. When the queue is full, a login of an address with fewer
places replaces the last one in the longest line. So a flood from one address does not keep other addresses out.
No clock here: `now` is an argument.
"""

from collections import OrderedDict
from dataclasses import dataclass
from math import inf

from fanlight_broker.auth.penalties import Penalties


@dataclass(eq=False, slots=True)
class QueuedLogin:
    """One login of one address, in the queue."""

    address: str
    user: str
    login: bytes  # identifies the check, see verifier.py


class FairQueue:
    """At most `places_max` logins, and `line_max` of one address, those that are being checked included."""

    def __init__(self, penalties: Penalties, places_max: int, line_max: int) -> None:
        self._penalties = penalties
        self._places_max = places_max
        self._line_max = line_max
        self._lines: OrderedDict[str, list[QueuedLogin]] = OrderedDict()  # in the order of their turns
        self._taken: dict[str, int] = {}  # places by address, those that are being checked included
        self._waiting = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def waiting(self) -> int:
        """Logins that are not being checked yet."""
        return self._waiting

    def join(self, place: QueuedLogin, now: float) -> tuple[bool, QueuedLogin | None]:
        """Enter a login. Returns whether there was a place, and the login that lost its place for it, if one did."""
        mine = self._taken.get(place.address, 0)
        loser = None
        if mine >= self._line_max:
            return False, None
        if self._count >= self._places_max:
            loser = self._loser(place.address, mine, now)
            if loser is None:
                return False, None
            self.leave(loser)
        self._lines.setdefault(place.address, []).append(place)
        self._taken[place.address] = mine + 1
        self._waiting += 1
        self._count += 1
        return True, loser

    def _loser(self, address: str, mine: int, now: float) -> QueuedLogin | None:
        """The last login of the longest line; among equals, of the address with most failures; None if mine is it."""
        rank = (mine + 1, self._penalties.failures(address, now))
        worst, place = rank, None
        for other, line in self._lines.items():
            theirs = (self._taken[other], self._penalties.failures(other, now))
            if other != address and theirs > worst:
                worst, place = theirs, line[-1]
        return place

    def leave(self, place: QueuedLogin) -> None:
        """Remove a login that waits."""
        line = self._lines[place.address]
        line.remove(place)
        if not line:
            del self._lines[place.address]
        self._waiting -= 1
        self.done(place)

    def pop(self, now: float) -> QueuedLogin | None:
        """The next login to check; None if none may be checked now. It keeps its place until `done`."""
        for address, line in self._lines.items():
            for place in line:
                if self._penalties.until(address, place.user) <= now:
                    line.remove(place)
                    self._waiting -= 1
                    self._lines.move_to_end(address)
                    if not line:
                        del self._lines[address]
                    return place
        return None

    def done(self, place: QueuedLogin) -> None:
        """A login from `pop` has been checked."""
        self._count -= 1
        left = self._taken[place.address] - 1
        if left:
            self._taken[place.address] = left
        else:
            del self._taken[place.address]

    def next_at(self) -> float:
        """When the next waiting login may be checked; inf if none waits."""
        return min(
            (self._penalties.until(address, place.user) for address, line in self._lines.items() for place in line),
            default=inf,
        )
