"""One run of all that is published: a report, as JSON has it.

    machine, commit   where, and of what source
    note              what else the page has to say of these figures, if anything
    load              load averages of the machine, at the beginning and at the end
    rows              [ContentFigures ...]: each workload with the contenders of its plan (measure.py)
    growth            the adversarial workloads once more, and with four times the selectors: how the time grows
    silence           ns of a message that matches nothing, beside few and many selectors on other topics
    decoding          ns to read 14 of 20 fields of a body (fanlight_bench.micro.fields)

`quick` says that there were few selectors and two turns: every table is there, and says nothing.
"""

import os
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fanlight_bench.machine import machine
from fanlight_bench.micro import fields, screens
from fanlight_bench.micro.case import QUICK_TURNS, Case, Group, measured, timed
from fanlight_bench.micro.case import Effort as Turns
from fanlight_bench.workloads import SEED
from fanlight_content import workloads
from fanlight_content.measure import compare
from fanlight_content.registry import BASELINE, CONTENDERS, OURS
from fanlight_matchers.collect import commit
from matchcore import FilterIndex

ContentReport = dict[str, Any]

RESULTS = Path(__file__).parent / "results" / "published.json"
MEASURED = (":/matchcore", ":/research/content", ":/bench/fanlight_bench")  # what a figure depends on

EVERYBODY = tuple(CONTENDERS)
COMPILED = tuple(name for name, entry in CONTENDERS.items() if entry.compiled)
MILLION = (
    OURS, BASELINE, "counting", "counting/filter", "le subscribe/filter", "k-index/filter", "be-tree/filter",
    "bitmap ranges/filter",
)  # fmt: skip
TURNS = 5
QUICK = 0.01  # of the selectors
GROWN = 4
SILENT, SILENT_MANY, SILENT_FILTERS = 10_000, 1_000_000, 1_000
SILENT_CALLS = 2_000


@dataclass(frozen=True, slots=True)
class AskedOf:
    """A workload and who takes part."""

    workload: str
    contenders: Sequence[str]
    turns: int = TURNS


PLAN = (
    AskedOf("shared 1k", EVERYBODY),
    AskedOf("shared 10k", EVERYBODY),
    AskedOf("shared 100k", COMPILED),
    AskedOf("shared 1M", MILLION, 3),
    AskedOf("rare 10k", COMPILED),
    AskedOf("rare 100k", COMPILED),
    AskedOf("half 10k", COMPILED),
    AskedOf("half 100k", COMPILED),
    AskedOf("narrow 10k", COMPILED),
    AskedOf("narrow 100k", COMPILED),
    *(AskedOf(workloads.pass_name(share), COMPILED) for share in workloads.SHARES),
    *(AskedOf(name, COMPILED) for name in workloads.ADVERSARIAL),
)


def collect(plan: Iterable[AskedOf] = PLAN, quick: bool = False) -> ContentReport:
    """All that is published. Raises measure.Wrong."""
    report: ContentReport = {
        "machine": machine(), "commit": commit(Path(__file__).parent, MEASURED), "quick": quick,
        "load": {"before": os.getloadavg()[0]},
    }  # fmt: skip
    report["rows"] = [row for asked in plan for row in collect_workload(asked, quick)]
    report["growth"] = collect_growth(quick)
    report["silence"] = collect_silence(quick)
    report["decoding"] = collect_decoding(quick)
    report["load"]["after"] = os.getloadavg()[0]
    return report


def collect_workload(asked: AskedOf, quick: bool) -> list[dict[str, Any]]:
    """The figures of each contender that is installed."""
    _say(asked.workload)
    work = workloads.make(asked.workload, QUICK if quick else 1.0)
    entries = [CONTENDERS[name] for name in asked.contenders]
    return [figures.row() for figures in compare(work, entries, QUICK_TURNS if quick else asked.turns)]


def collect_growth(quick: bool) -> list[dict[str, Any]]:
    """Of each adversarial workload, with as many selectors and with four times as many."""
    _say("the same with four times the selectors")
    rows = []
    for name in workloads.ADVERSARIAL:
        for times in (1, GROWN):
            work = workloads.make(name, times * (0.1 if quick else 1))
            entries = [CONTENDERS[OURS], CONTENDERS[BASELINE]]
            for figures in compare(work, entries, QUICK_TURNS if quick else TURNS):
                row = figures.row()
                rows.append({"times": times, **{key: row[key] for key in ("workload", "contender", "selectors", "ns")}})
    return rows


def collect_silence(quick: bool) -> list[dict[str, Any]]:
    """A FilterIndex asked about topics on which there is no selector, as Python calls it."""
    dice = random.Random(SEED)
    selectors = [str(screens.two_conditions(dice)) for _ in range(500)]
    message = {str(attribute): value for attribute, value in screens.message(dice).items()}
    topics = [f"elsewhere.{dice.randrange(10**9)}" for _ in range(SILENT_CALLS)]
    rows: list[dict[str, Any]] = []
    cases = []
    for count in (SILENT, SILENT_MANY):
        _say(f"a message that matches nothing, {count:,} selectors on other topics")
        index = FilterIndex()
        held = int(count * QUICK) if quick else count
        for id in range(held):
            index.insert(f"orders.{id % SILENT_FILTERS}", id, where=selectors[id % len(selectors)])
        cases.append(Case(f"{count}", SILENT_CALLS, partial(timed, _ask_all, index, topics, message)))
        rows.append({"selectors": count})
    found = measured(Group("silence", cases), Turns(QUICK_TURNS if quick else 9))["cases"]
    return [{**row, "ns": found[f"{row['selectors']}"]["least_ns"]} for row in rows]


def _ask_all(index: FilterIndex, topics: Sequence[str], message: dict[str, object]) -> None:
    for topic in topics:
        if index.match(topic, fields=message):
            raise RuntimeError(f"{topic} matches")


def collect_decoding(quick: bool) -> dict[str, float]:
    """ns of the reader in C, without the call from Python, by format."""
    _say("14 fields of a body")
    turns = Turns(QUICK_TURNS if quick else 9)
    (group,) = fields.groups(turns)
    chosen = [replace(case, beside=()) for case in group.cases if case.name in ("call", "msgpack", "JSON")]
    found = measured(Group(group.name, chosen), turns)["cases"]
    return {name: round(found[name]["ns"] - found["call"]["ns"], 1) for name in ("msgpack", "JSON")}


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr)
