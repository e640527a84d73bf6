"""What the bench is made of: cases that take turns, in rows a second of the clock.

The clock, not processor time: Spark works in several processes and threads, and how well it fills the processors is
part of the answer. Beside it is the processor time of all of them, which other programs of the machine change little.
Before it counts each case is done a few times, for the JVM compiles what it has done often. Then
the cases of a group take turns, so that a slower minute of the machine is everybody's, and ratios are taken turn by
turn, between neighbours: they hold on another machine and a busy one, rates do not.
"""

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from fanlight_bench.procfs import tree_seconds

WARM, TURNS, ROWS = 2, 3, 2_000_000
QUICK_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class PipelineCase:
    """One thing that is measured.

    rows    that go in, in a turn
    turn    does it
    beside  the names of the cases whose rate it is compared with
    slow    one that has been done before, and takes so long that it needs no warming up
    """

    name: str
    rows: int
    turn: Callable[[], object]
    beside: tuple[str, ...] = ()
    slow: bool = False


@dataclass(frozen=True, slots=True)
class PipelineGroup:
    """Cases that take turns; `facts` are figures that are no rates: bytes, counts."""

    name: str
    cases: Sequence[PipelineCase] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Bench:
    """How much is measured, where, and the Spark that it is measured with, which starts when it is first asked for.

    folder    that may be filled, and is removed at the end
    settings  of Spark, over those of `fanlight_spark.session`
    quick     that it runs, not how fast
    """

    folder: Path
    rows: int = ROWS
    turns: int = TURNS
    warm: int = WARM
    cores: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False
    _session: Any = None

    @property
    def session(self) -> Any:
        if self._session is None:
            from fanlight_spark.session import local_session

            place = {"spark.local.dir": str(self.folder), "spark.sql.warehouse.dir": str(self.folder / "warehouse")}
            settings = {**place, **self.settings}
            self._session = local_session("bench", cores=self.cores, quick=self.quick, settings=settings)
            self._session.sparkContext.setLogLevel("ERROR")
        return self._session

    def some(self, rows: int) -> int:
        """So many rows, where all of them would take too long."""
        return min(rows, self.rows)

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None


def noop(frame: Any) -> None:
    """All of a DataFrame, to nowhere."""
    frame.write.format("noop").mode("overwrite").save()


def measured(group: PipelineGroup, bench: Bench) -> dict[str, Any]:
    """Its figures. ValueError: a case is compared with one that is not there."""
    turns: dict[str, list[float]] = {case.name: [] for case in group.cases}
    for case in group.cases:
        if missing := set(case.beside) - turns.keys():
            raise ValueError(f"{group.name}: {case.name} is compared with {missing}, which is not measured")
    spent: dict[str, list[float]] = {case.name: [] for case in group.cases}
    for case in group.cases:
        for _ in range(0 if case.slow else bench.warm):
            case.turn()
    for _ in range(bench.turns):
        for case in group.cases:
            begun, before = monotonic(), tree_seconds(os.getpid())
            case.turn()
            turns[case.name].append(case.rows / (monotonic() - begun))
            after = tree_seconds(os.getpid())
            # Less than before: a process has ended that nobody waited for, and took its time with it.
            if before is not None and after is not None and after > before:
                spent[case.name].append((after - before) / case.rows * 1e6)
    return {
        "facts": dict(group.facts),
        "cases": {
            case.name: {
                "rows": case.rows,
                **rates(turns[case.name]),
                **({"cpu_us": _figures(statistics.median(spent[case.name]))} if spent[case.name] else {}),
                "beside": {name: _ratio(turns[case.name], turns[name]) for name in case.beside},
            }
            for case in group.cases
        },
    }


def rates(turns: Sequence[float]) -> dict[str, float]:
    """Median and highest in rows a second; spread: the middle half of the turns is within that share of the median."""
    middle = statistics.median(turns)
    low, _, high = statistics.quantiles(turns, n=4, method="inclusive") if len(turns) > 1 else (middle,) * 3
    return {
        "rows_per_second": _figures(middle),
        "most": _figures(max(turns)),
        "spread": round((high - low) / 2 / middle, 4),
    }


def _ratio(turns: Sequence[float], beside: Sequence[float]) -> float:
    return _figures(statistics.median(one / other for one, other in zip(turns, beside, strict=True)))


def _figures(value: float) -> float:
    """Three digits: the rest is noise."""
    return float(f"{value:.3g}")


#: What a bench's module has: `groups(bench)`.
Groups = Callable[[Bench], Iterator[PipelineGroup]]
