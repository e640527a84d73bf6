"""A budget of time: how long publishers may be held, in total, on one account.

    held        =====    ===                ====
    spent    0  .....5   ...8               ....4
                            |<-- window -->| it is 0 again

What was spent is forgotten only when nobody was held for a whole window. So in any span of time as long as the window,
no more than the budget is spent, however the holds are spread over it: an acknowledgement does not renew it.

No clock: `now` is an argument.
"""

from dataclasses import dataclass
from math import inf


@dataclass(slots=True)
class HoldTime:
    """Seconds in which publishers were held on account of one consumer, or in which one publisher was held."""

    spent: float = 0.0  # since it was last forgotten; without the hold that goes on
    since: float | None = None  # the hold that goes on has begun then
    until: float = -inf  # the last hold has ended then
    before: float = 0.0  # seconds in all, without `spent`

    def begin(self, now: float, window: float) -> None:
        """Somebody is held from now on; without effect if somebody is already."""
        if self.since is not None:
            return
        if now - self.until >= window:
            self.before += self.spent
            self.spent = 0.0
        self.since = now

    def end(self, now: float) -> float:
        """Nobody is held any more. Returns how long this hold has lasted."""
        if self.since is None:
            return 0.0
        lasted = max(now - self.since, 0.0)
        self.spent += lasted
        self.since, self.until = None, now
        return lasted

    def left(self, now: float, budget: float) -> float:
        """What is left of a budget; negative if a hold was ended late."""
        return budget - self.spent - (now - self.since if self.since is not None else 0.0)

    def total(self, now: float) -> float:
        """Seconds of all holds."""
        return self.before + self.spent + (now - self.since if self.since is not None else 0.0)

    def restored(self, now: float, window: float) -> bool:
        """Was nobody held for a whole window?"""
        return self.since is None and now - self.until >= window
