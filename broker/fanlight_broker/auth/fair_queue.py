"""The queue of logins: one line for each address, and the lines are served in turn.

    address A   login login login ...      A, B, C, A, B, C, ...: whoever has one login waits for one of each other
    address B   login
    address C   login login                a login whose penalty is not over is passed over until it is

The number of logins is bounded, in all and for each line. When all places are taken, a login of an address with fewer
of them takes the place of the last one in the longest line. So a flood fills the queue and keeps nobody out of it.
No clock here: `now` is an argument.
"""

from collections import OrderedDict
from dataclasses import dataclass
from math import inf

from fanlight_broker.auth.penalties import Penalties


@dataclass(eq=False, slots=True)
class QueuedLogin:
    """A place in the queue: one address wants one login checked."""

    address: str
    user: str
    login: bytes  # what is to be checked, see verifier.py


class FairQueue:
    """`places_max` logins, and `line_max` of one address; those that are being checked count too."""

    def __init__(self, penalties: Penalties, places_max: int, line_max: int) -> None:
        self._penalties = penalties
        self._places_max = places_max
        self._line_max = line_max
        self._lines: OrderedDict[str, list[QueuedLogin]] = OrderedDict()  # in the order in which they are served
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
        """Take a place. Returns whether there was one, and whose place was taken away for it, if anybody's was."""
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
        """The last of the longest line; among equals, of the address with most failures. It must be worse than mine."""
        rank = (mine + 1, self._penalties.failures(address, now))
        worst, place = rank, None
        for other, line in self._lines.items():
            theirs = (self._taken[other], self._penalties.failures(other, now))
            if other != address and theirs > worst:
                worst, place = theirs, line[-1]
        return place

    def leave(self, place: QueuedLogin) -> None:
        """A place that waits is given up."""
        line = self._lines[place.address]
        line.remove(place)
        if not line:
            del self._lines[place.address]
        self._waiting -= 1
        self.done(place)

    def pop(self, now: float) -> QueuedLogin | None:
        """The login whose turn it is; None if there is none now. It keeps its place until `done`."""
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
        """A login that was taken has been checked."""
        self._count -= 1
        left = self._taken[place.address] - 1
        if left:
            self._taken[place.address] = left
        else:
            del self._taken[place.address]

    def next_at(self) -> float:
        """When the first of those that wait may be taken; inf if nobody waits."""
        return min(
            (self._penalties.until(address, place.user) for address, line in self._lines.items() for place in line),
            default=inf,
        )
