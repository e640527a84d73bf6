"""What a run came to: metrics that go into JSON as they are, and their names."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from fanlight_bench.load.histogram import Histogram

# What is counted as a fault, by the names of the shared counters; `lost` is what is missing.
FAULTS = (
    "lost", "repeated", "reordered", "misrouted", "damaged", "unacknowledged", "wrong_acknowledgements", "refused",
    "closed",
)  # fmt: skip
GENERATOR_BUSY = 0.9  # of its processor; above that the generator, and not the broker, may be the limit
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}


@dataclass(frozen=True)
class Result:
    """One run of one scenario. Names that end in _us are microseconds; None: not to be known.

    Rates are per second of wall-clock time, busy shares of one processor. Figures are of the measured time;
    `checked` and `faults` are of the whole run, warm-up and drain included.
    """

    scenario: str
    url: str
    protocol: str
    parameters: dict[str, Any]             # the scenario as it was run
    processes: int                         # of the generator
    seconds: float
    published: int
    delivered: int
    acknowledged: int
    published_per_second: float
    delivered_per_second: float
    acknowledged_per_second: float
    delivered_megabytes_per_second: float  # payload only
    checked: int                           # deliveries that came first and rightly
    broker_us_per_delivery: float | None   # processor time; without deliveries None
    broker_us_per_publish: float | None
    broker_busy: float | None
    generator_busy: float                  # of the busiest process of the generator
    generator_bound: bool
    others_busy: float | None              # what else ran on the machine meanwhile
    latency_us: dict[str, float]           # of all deliveries: since sent, or since due if there is a rate
    connections: int
    subscriptions: int
    connect_seconds: float
    subscribe_seconds: float
    subscribe_broker_seconds: float | None # processor time
    memory: dict[str, int | None]          # of the broker, resident: before, connected, subscribed, after
    bytes_per_connection: float | None
    bytes_per_subscription: float | None
    slow: dict[str, int]                   # what those who are slow on purpose got: received, closed
    faults: dict[str, int]
    complaint: str                         # the broker's first error, in words
    metrics: dict[str, float] = field(default_factory=dict)  # what a kind of scenario has besides: see metrics.py

    @property
    def ok(self) -> bool:
        """Nothing went wrong."""
        return not any(self.faults.values())

    def as_json(self) -> dict[str, Any]:
        """The metrics as values for JSON."""
        return {**dataclasses.asdict(self), "ok": self.ok}


def faults(totals: dict[str, int]) -> dict[str, int]:
    """The faults according to the counters at the end of a run."""
    return {
        "lost": totals["expected"] - totals["unique"],
        "unacknowledged": totals["requested"] - totals["acknowledged"],
        **{name: totals[name] for name in FAULTS if name in totals},
    }


def percentiles(histogram: Histogram, lag_ns: int = 0) -> dict[str, float]:
    """The latencies of a histogram, in microseconds."""
    found = {name: histogram.quantile(share) / 1e3 for name, share in QUANTILES.items()}
    # How late the generator itself was with its schedule: what a latency above is not the broker's fault.
    return {**found, "max": histogram.highest / 1e3, "schedule_lag_max": lag_ns / 1e3}
