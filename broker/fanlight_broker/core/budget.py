"""A budget of time: how long publishers may be held back, in total, for one consumer or as one publisher.

    held        =====    ===                ====
    spent    0  .....5   ...8               ....4
                            |<-- window -->| it is 0 again

What was spent is forgotten only after a whole window without a hold. So in any span as long as the window no more than
the budget is spent, however the holds are distributed: an acknowledgement does not renew it.

No clock: `now` is an argument.
"""

from dataclasses import dataclass
from math import inf


@dataclass(slots=True)
class HoldTime:
    """Seconds in which publishers were held back for one consumer, or in which one publisher was held back."""

    spent: float = 0.0  # since it was last forgotten, without the hold in progress
    since: float | None = None  # when the hold in progress began
    until: float = -inf  # when the last hold ended
    before: float = 0.0  # seconds in all, without `spent`

    def begin(self, now: float, window: float) -> None:
        """A hold begins; without effect if one is in progress."""
        if self.since is not None:
            return
        if now - self.until >= window:
            self.before += self.spent
            self.spent = 0.0
        self.since = now

    def end(self, now: float) -> float:
        """The hold ends. Returns how long it lasted."""
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
        """Has a whole window passed without a hold?"""
        return self.since is None and now - self.until >= window
