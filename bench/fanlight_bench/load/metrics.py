"""What there is to compare in two runs: each metric's name, its unit, and which way is better.

A stream of messages has the metrics of STREAM. The other kinds of scenario add some of EXTRA: those are in
`Result.metrics`, and are shown below the table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Metric:
    """One number of a result. noise: relative, what it moves by on a busy machine although nothing has changed."""

    name: str
    title: str
    more_is_better: bool
    noise: float
    digits: int = 0


STREAM = (
    Metric("delivered_per_second", "deliveries/s", True, 0.15),
    Metric("acknowledged_per_second", "acknowledged/s", True, 0.15),
    Metric("broker_us_per_delivery", "broker CPU µs/delivery", False, 0.08, 4),
    Metric("p50", "latency p50, µs", False, 0.15),
    Metric("p99", "latency p99, µs", False, 0.25),
    Metric("bytes_per_connection", "bytes/connection", False, 0.05),
    Metric("bytes_per_subscription", "bytes/subscription", False, 0.05),
)
EXTRA = (
    Metric("connects_per_second", "connects/s", True, 0.15),
    Metric("broker_us_per_connect", "broker CPU µs/connect", False, 0.1, 1),
    Metric("idle_broker_busy", "broker busy while idle", False, 0.5, 4),
    Metric("without_delivered_per_second", "deliveries/s without changes", True, 0.15),
    Metric("with_delivered_per_second", "deliveries/s with changes", True, 0.15),
    Metric("throughput_kept", "share of throughput kept", True, 0.05, 3),
    Metric("changes_per_second", "changes/s", True, 0.05),
    Metric("broker_us_per_change", "broker CPU µs/change", False, 0.15, 1),
    Metric("stored_per_second", "retained messages stored/s", True, 0.15),
    Metric("broker_us_per_stored", "broker CPU µs/stored message", False, 0.1, 2),
    Metric("bytes_per_stored", "bytes/stored message", False, 0.05),
    Metric("first_ms_p50", "first retained message p50, ms", False, 0.2, 3),
    Metric("first_ms_p99", "first retained message p99, ms", False, 0.3, 3),
    Metric("last_ms_p50", "last retained message p50, ms", False, 0.2, 3),
    Metric("last_ms_p99", "last retained message p99, ms", False, 0.3, 3),
    Metric("round_trips_per_second", "round trips/s", True, 0.15),
    Metric("broker_us_per_round_trip", "broker CPU µs/round trip", False, 0.08, 2),
    Metric("behind_seconds", "s behind the recording at its end", False, 0.5, 3),
)
# Of how many one must be the share, or the growth of the process for other reasons is most of it.
LEAST = {"bytes_per_connection": ("connections", 1_000), "bytes_per_subscription": ("subscriptions", 10_000)}
TITLES = {metric.name: metric for metric in (*STREAM, *EXTRA)}


def of(result: Mapping[str, Any]) -> Iterator[tuple[Metric, float]]:
    """The metrics of a result, as JSON has it; without those that are not known, or 0 for nothing was asked for."""
    found = {**result, **result.get("latency_us", {}), **result.get("metrics", {})}
    # What a rate was set for follows that rate, whatever the broker does.
    paced = bool(result.get("parameters", {}).get("rate"))
    for metric in TITLES.values():
        value = found.get(metric.name)
        kind, least = LEAST.get(metric.name, ("", 0))
        if result.get(kind, 0) < least:
            continue
        if value and value > 0 and not (paced and metric.name == "delivered_per_second"):
            yield metric, float(value)


def lines(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a table of streams has no column for: a line for each metric, the median of the runs of a scenario."""
    found: dict[str, dict[str, list[float]]] = {}
    for result in results:
        memory = {name: result.get(name) for name, (kind, least) in LEAST.items() if result.get(kind, 0) >= least}
        for name, value in {**memory, **result.get("metrics", {})}.items():
            if value is None:
                continue
            case = f"{result['scenario']}, {result['protocol']}"
            found.setdefault(case, {}).setdefault(name, []).append(value)
    shown = []
    for case, values in found.items():
        shown.append(f"{case}:")
        for name, several in values.items():
            metric = TITLES.get(name)
            title, digits = (metric.title, metric.digits) if metric else (name.replace("_", " "), 0)
            shown.append(f"  {title:<32} {median(several):>14,.{digits}f}")
    return shown
