"""A bar: what Fanlight is to reach in one scenario, and what a report says of it."""

from dataclasses import dataclass

from fanlight_bench.peers.results import Figured, ratio

EITHER = ("fanlight-native", "fanlight-mqtt")  # most bars hold for both alike


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise. `reached` None: not measured."""

    scenario: str
    whose: str  # the contender it is asked of
    what: str
    limit: float
    at_most: bool
    unit: str   # "x", "%", "B", "/s", "s", "ms"
    reached: float | None

    @property
    def met(self) -> bool | None:
        if self.reached is None:
            return None
        return self.reached <= self.limit if self.at_most else self.reached >= self.limit

    @property
    def key(self) -> str:
        """What its explanation is kept under: the same in every report."""
        return f"{self.scenario}, {self.whose}: {self.what}"


def lost(kept: float | None) -> float | None:
    """The percentage that is lost, from the share that is kept."""
    return None if kept is None else (1 - kept) * 100


def less(figured: Figured, letter: str, ours: str, peer: str) -> float | None:
    """How many times less processor time a delivery takes ours."""
    return ratio(figured(letter, peer, "us_per_delivery"), figured(letter, ours, "us_per_delivery"))
