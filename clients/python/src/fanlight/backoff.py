"""How long to wait before the next attempt to connect: exponential, with full jitter.

The wait before attempt *n* is uniform between 0 and min(maximum, initial * factor**n). Full jitter, and not a
little around the exponential: when a broker restarts, all its clients lost it at the same instant, and only
the full range spreads them out.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds. `attempts` None: no limit."""

    initial: float = 0.1  # the first retry within 100 ms: most losses are a restart
    factor: float = 2.0
    maximum: float = 10.0  # a broker that comes back is found within so long
    attempts: int | None = None
    stable_seconds: float = 5.0  # a connection must live so long for the delays to begin anew

    def __post_init__(self) -> None:
        if self.initial <= 0 or self.factor < 1 or self.maximum < self.initial:
            raise ValueError(f"backoff needs initial > 0, factor >= 1, maximum >= initial; got {self!r}")
        if self.attempts is not None and self.attempts < 1:
            raise ValueError(f"backoff needs at least one attempt; got {self.attempts}")

    def ceiling(self, attempt: int) -> float:
        """The longest wait before attempt number `attempt`, from 0."""
        # Exponents beyond any maximum overflow a float; 64 doublings are enough for every one.
        return float(min(self.maximum, self.initial * self.factor ** min(attempt, 64)))

    def delays(self, uniform: Callable[[float, float], float] = random.uniform) -> Iterator[float]:
        """The waits, one per attempt; ends when the attempts are used up."""
        attempt = 0
        while self.attempts is None or attempt < self.attempts:
            yield uniform(0.0, self.ceiling(attempt))
            attempt += 1
