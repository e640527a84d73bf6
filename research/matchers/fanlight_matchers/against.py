"""A regression report: the core workloads now, beside the committed results. It is no test, and nothing fails.

What is compared is never a time but how many times as fast as the flat trie ours is in the same run, which moves
little with the machine and with what else runs on it. A few turns are made; a change is called one when it is beyond
what the turns differ by among themselves, and beyond LEAST. Bytes a filter do not vary, and are compared as they are.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fanlight_matchers.bars import Figured, ratio
from fanlight_matchers.collect import Asked, Report, collect_workloads
from fanlight_matchers.measure import QUICK, Effort
from fanlight_matchers.tables import Table

CORE = (
    Asked("W1", 1_000, ("fanlight", "trie-I")),
    Asked("W1v", 1_000, ("fanlight", "trie-I")),
    Asked("W2", 10_000, ("fanlight", "trie-I")),
    Asked("W3", 10_000, ("fanlight", "trie-I")),
    Asked("W3", 100_000, ("fanlight", "trie-I")),
)
RATIOS = {
    "cold": "a match", "hot": "a match, hot", "call": "a match from Python", "insert": "an insert",
    "remove": "a removal", "c_mix_90_10": "90/10 mix", "c_mix_50_50": "50/50 mix",
}  # fmt: skip
TURNS = 3
LEAST = 0.08  # of a ratio: on a quiet machine runs differ by half of it


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One figure: the committed one, this run's, and what it may vary by; ratios to the flat trie, or bytes."""

    workload: str
    what: str
    committed: float
    now: float
    noise: float  # relative
    more_is_better: bool = True

    @property
    def change(self) -> float:
        """How much better, relative; negative is worse."""
        return self.now / self.committed - 1 if self.more_is_better else self.committed / self.now - 1

    @property
    def verdict(self) -> str:
        if abs(self.change) <= self.noise:
            return "within noise"
        return "better" if self.change > 0 else "WORSE"


def load(path: Path) -> Report:
    """A report of an earlier run. OSError, ValueError: not readable, or not a report."""
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def against(committed: Report, effort: Effort) -> list[Change]:
    """Measure, and compare with it. ValueError: it has not one of these workloads."""
    turns = [Figured({"workloads": collect_workloads(CORE, effort)}) for _ in range(1 if effort is QUICK else TURNS)]
    changes = compared(Figured(committed), turns)
    if not changes:
        raise ValueError("no workload is in both runs")
    return changes


def compared(committed: Figured, turns: Sequence[Figured]) -> list[Change]:
    """A change for each figure that both have."""
    changes = []
    for workload in dict.fromkeys(workload for workload, _ in turns[0].rows):
        for name, what in RATIOS.items():
            known = committed.times(workload, "trie-I", name)
            now = [value for turn in turns if (value := turn.times(workload, "trie-I", name)) is not None]
            if known is None or not now:
                continue
            middle = sorted(now)[len(now) // 2]
            noise = max(LEAST, (max(now) - min(now)) / middle)
            changes.append(Change(workload, f"{what}, as fast as trie-I", known, middle, noise))
        before, after = committed(workload, "fanlight", "bytes"), turns[0](workload, "fanlight", "bytes")
        if ratio(before, after) is not None and before is not None and after is not None:
            changes.append(Change(workload, "bytes a filter", before, after, 0.005, more_is_better=False))
    return changes


def table(changes: Sequence[Change]) -> Table:
    cells: Table = [("workload", "what", "committed", "now", "better by", "noise", "")]
    for one in changes:
        sizes = (f"{one.committed:.3g}", f"{one.now:.3g}", f"{one.change:+.1%}", f"±{one.noise:.1%}")
        cells.append((one.workload, one.what, *sizes, one.verdict))
    return cells


def worst(changes: Sequence[Change]) -> float:
    """How much worse, relative, the worst of those beyond noise is; 0 none."""
    return max([-one.change for one in changes if one.verdict == "WORSE"], default=0.0)
