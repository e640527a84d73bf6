"""Two runs of one's own beside each other: what became faster or slower, and by more than they vary.

A run is the JSON that `fanlight bench load` writes. Runs of one scenario over one protocol are taken together: the
median counts, and the noise is what they differ by, or, with one run each, what the metric moves by from experience.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fanlight_bench.load import metrics
from fanlight_bench.load.metrics import Metric

BETTER, WORSE, SAME = "better", "WORSE", "within noise"


@dataclass(frozen=True)
class MetricChange:
    """One metric in two runs. noise: relative; same: both ran with the same parameters."""

    case: str
    metric: Metric
    before: float
    now: float
    noise: float
    same: bool = True

    @property
    def change(self) -> float:
        """Relative; above 0 is better."""
        return (self.now / self.before if self.metric.more_is_better else self.before / self.now) - 1

    @property
    def verdict(self) -> str:
        if not self.same:
            return "other parameters"
        if abs(self.change) <= self.noise:
            return SAME
        return BETTER if self.change > 0 else WORSE


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[MetricChange]:
    """A change for each metric that both have. Raises ValueError if they share none, or if a document is no run."""
    earlier, later = _cases(before), _cases(now)
    found = []
    for case, runs in later.items():
        if case not in earlier:
            continue
        same = runs[0].get("parameters") == earlier[case][0].get("parameters")
        values = _values(runs)
        for name, old in _values(earlier[case]).items():
            new = values.get(name)
            if new is None:
                continue
            metric = metrics.TITLES[name]
            noise = _noise(metric, old, new)
            found.append(MetricChange(case, metric, statistics.median(old), statistics.median(new), noise, same))
    if not found:
        raise ValueError("no scenario is in both runs")
    return found


def _cases(document: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The runs of each scenario and protocol."""
    results = document.get("results") if isinstance(document, Mapping) else None
    if not isinstance(results, list):
        raise ValueError("not what `bench load` writes: it has no results")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        case = f"{result['scenario']}, {result.get('server', 'broker')}, {result['protocol']}"
        found.setdefault(case, []).append(result)
    return found


def _values(runs: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for run in runs:
        for metric, value in metrics.of(run):
            values.setdefault(metric.name, []).append(value)
    return values


def _noise(metric: Metric, before: Sequence[float], now: Sequence[float]) -> float:
    """What the runs of both sides differ by among themselves; a single one says nothing of that."""
    if min(len(before), len(now)) < 3:
        return metric.noise
    spread = sum((max(values) - min(values)) / statistics.median(values) for values in (before, now))
    return max(spread, metric.noise / 4)


def table(changes: Sequence[MetricChange]) -> list[str]:
    """A line for each change, in the order of the scenarios."""
    width = max(max(len(change.metric.title), len(change.case) - 2) for change in changes)
    lines = []
    case = ""
    for change in changes:
        if change.case != case:
            case = change.case
            lines.append(f"{case:<{width + 2}} {'before':>13} {'now':>13} {'change':>8} {'noise':>7}")
        moved = change.now / change.before - 1
        digits = change.metric.digits
        lines.append(
            f"  {change.metric.title:<{width}} {change.before:>13,.{digits}f} {change.now:>13,.{digits}f} "
            f"{moved:>+8.1%} {change.noise:>7.1%}  {change.verdict}"
        )
    return lines


def worst(changes: Sequence[MetricChange]) -> float:
    """By how much the metric that lost most is worse, relative; 0 if none is, beyond noise."""
    return max((-change.change for change in changes if change.verdict == WORSE), default=0.0)
