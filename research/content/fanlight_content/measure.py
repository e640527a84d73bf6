"""What is measured of the contenders in a workload: ns of processor time a message, in turns (fanlight_bench.micro).

All contenders of a workload hold the same compiled selectors and are asked about the same messages, which are decoded
and whose topics are matched before: neither is in the time. Ratios are to the per-subscriber baseline, turn by turn.
"""

import gc
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from time import thread_time_ns
from typing import Any

from fanlight_bench.micro.case import Case, Group, measured, timed
from fanlight_bench.micro.case import Effort as Turns
from fanlight_content.registry import BASELINE, Asking, ContentEntry
from fanlight_content.selections import Asked
from fanlight_content.workloads import ContentWorkload
from matchcore.kleene import holds

PASS_NS = 40e6  # of one turn of a contender: the slow ones are asked about fewer messages, quick ones more often
QUICK_NS = 1e6
LEAST_MESSAGES = 8
CHECKED = 2  # messages for which the baseline is checked against the interpreter
INTERPRETED = 4_000  # selectors that it evaluates at most


class Wrong(Exception):
    """A contender found other ids than the oracle."""


@dataclass(slots=True)
class ContentFigures:
    """One contender and one workload."""

    workload: str
    contender: str
    selectors: int
    ns: float = 0  # a message: the median of the turns
    least_ns: float = 0
    spread: float = 0  # of the middle half of the turns, to the median
    ratio: float | None = None  # how many times as fast as the per-subscriber baseline
    found: float = 0  # selectors that are true of a message
    bytes: float = 0  # a selector, its program included
    insert_ns: float = 0  # a selector, compiling it included

    def row(self) -> dict[str, Any]:
        """For JSON: four digits are more than there is to know."""
        return {
            name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in asdict(self).items()
        }


def compare(work: ContentWorkload, contenders: Sequence[ContentEntry], turns: int) -> list[ContentFigures]:
    """The figures of each contender; the baseline is needed. Raises Wrong."""
    start = thread_time_ns()
    selections = work.compiled()
    compile_ns = (thread_time_ns() - start) / len(work.held)
    programs = selections.nbytes / len(work.held)
    gc.collect()
    gc.freeze()  # what the workload has made is not to be walked through while contenders are filled
    figures, contests = {}, {}
    try:
        for entry in contenders:
            start = thread_time_ns()
            contests[entry.name] = entry.make(selections)
            spent = (thread_time_ns() - start) / len(work.held)
            own = contests[entry.name].nbytes / len(work.held)
            figures[entry.name] = ContentFigures(
                work.name, entry.name, len(work.held),
                bytes=own if entry.own_programs else own + programs,
                insert_ns=spent if entry.own_programs else spent + compile_ns,
            )  # fmt: skip
        asked = work.asked(selections)
        _check(work, contests, asked)
        _measure(work.name, contests, figures, asked, turns)
    finally:
        gc.unfreeze()
    return list(figures.values())


def _check(work: ContentWorkload, contests: dict[str, Asking], asked: list[Asked]) -> None:
    """The baseline against the interpreter for some messages, the others against the baseline for these and more."""
    interpreted = 0
    for at in range(CHECKED):
        slots, message = work.messages[at]
        on_filter = [(id, one) for id, (slot, one) in enumerate(work.held) if slot in slots]
        interpreted += len(on_filter)
        if interpreted > INTERPRETED and at:
            break
        expected = tuple(id for id, selector in on_filter if holds(selector, message) is True)
        if contests[BASELINE].match(asked[at]) != expected:
            raise Wrong(f"{work.name}: {BASELINE} does not find what the interpreter finds")
    for name, contest in contests.items():
        for one in asked[:LEAST_MESSAGES]:
            if contest.match(one) != contests[BASELINE].match(one):
                raise Wrong(f"{work.name}: {name} does not find what {BASELINE} finds")


def _measure(
    workload: str, contests: dict[str, Asking], figures: dict[str, ContentFigures], asked: list[Asked], turns: int
) -> None:
    cases = []
    for name, contest in contests.items():
        each = timed(contest.ask, asked[:LEAST_MESSAGES]) / LEAST_MESSAGES
        budget = QUICK_NS if turns <= 2 else PASS_NS
        part = asked[: max(LEAST_MESSAGES, min(len(asked), int(budget / max(each, 1))))]
        times = max(1, min(20, int(budget / 4 / max(each * len(part), 1))))
        cases.append(Case(name, len(part) * times, partial(timed, contest.ask, part, times), (BASELINE,)))
        figures[name].found = contest.ask(part) / len(part)
    for name, case in measured(Group(workload, cases), Turns(turns))["cases"].items():
        one = figures[name]
        one.ns, one.least_ns, one.spread = case["ns"], case["least_ns"], case["spread"]
        beside = case["beside"][BASELINE]
        one.ratio = 1 / beside if beside else None
