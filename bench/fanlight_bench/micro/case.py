"""What a micro-bench is made of: cases that take turns, each beside a baseline of the same run.

A bench is a module with `groups`, which yields one Group after another; the cases of a group are of one set-up and are
measured in turns, so that a slower minute of the machine is everybody's. A case does the same `operations` in each turn
and says how many ns of processor time they took: what it needs beside them (sockets to be emptied, sets to be filled)
it does outside the time. What it is compared with are other cases of its group, its floor or its oracle; the ratio is
taken turn by turn, between neighbours.
"""

import gc
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import thread_time_ns
from typing import Any

TURNS = 9
QUICK_TURNS = 2


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    turns      of each case
    quick      that it runs, not how fast: small sets
    workloads  of filters (bench/fanlight_bench/workloads.py), in place of a bench's own choice
    size       of what a bench counts in numbers (names, routes), in place of its own
    """

    turns: int = TURNS
    quick: bool = False
    workloads: tuple[str, ...] = ()
    size: int | None = None

    def chosen(self, workloads: Sequence[str], quick: str) -> Sequence[str]:
        """The workloads of a bench: those asked for, or its own, or its small one."""
        return self.workloads or ([quick] if self.quick else workloads)

    def sized(self, size: int, quick: int) -> int:
        return self.size or (quick if self.quick else size)


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is measured.

    turn    does it and returns ns
    beside  the names of the cases it is compared with
    facts   what else there is to know, once the turns are over
    """

    name: str
    operations: int
    turn: Callable[[], float]
    beside: tuple[str, ...] = ()
    facts: Callable[[], Mapping[str, object]] = dict


@dataclass(frozen=True, slots=True)
class Group:
    """Cases of one set-up; `facts` are figures that are not times: bytes, counts."""

    name: str
    cases: Sequence[Case] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


def timed(call: Callable[..., object], *arguments: object) -> int:
    """ns of this thread's processor time."""
    start = thread_time_ns()
    call(*arguments)
    return thread_time_ns() - start


def measured(group: Group, effort: Effort) -> dict[str, Any]:
    """Its figures. ValueError: a case is compared with one that is not there."""
    turns: dict[str, list[float]] = {case.name: [] for case in group.cases}
    for case in group.cases:
        if missing := set(case.beside) - turns.keys():
            raise ValueError(f"{group.name}: {case.name} is compared with {missing}, which is not measured")
    # What the set-up has made is not to be walked through by every collection from now on.
    gc.collect()
    gc.freeze()
    try:
        for case in group.cases:
            case.turn()  # the first time caches are cold, and lists grow
        for _ in range(effort.turns):
            for case in group.cases:
                turns[case.name].append(case.turn() / case.operations)
    finally:
        gc.unfreeze()
    return {
        "facts": dict(group.facts),
        "cases": {
            case.name: {
                **times(turns[case.name]),
                "beside": {name: _ratio(turns[case.name], turns[name]) for name in case.beside},
                **case.facts(),
            }
            for case in group.cases
        },
    }


def times(turns: Sequence[float]) -> dict[str, float]:
    """Median and least in ns; spread: the middle half of the turns is within that share of the median."""
    middle = statistics.median(turns)
    low, _, high = statistics.quantiles(turns, n=4, method="inclusive") if len(turns) > 1 else (middle,) * 3
    return {
        "ns": _figures(middle),
        "least_ns": _figures(min(turns)),
        "spread": round((high - low) / 2 / middle, 4) if middle else 0.0,
    }


def _ratio(turns: Iterable[float], beside: Iterable[float]) -> float | None:
    known = [one / other for one, other in zip(turns, beside, strict=True) if other]
    return _figures(statistics.median(known)) if known else None


def _figures(value: float) -> float:
    """Four digits: the rest is noise."""
    return float(f"{value:.4g}")
