"""One run of everything that is published, or of what the bars need: a report, as JSON has it.

    machine     where
    workloads   [Figures ...]       measure.py: W1 to W4, each with the contenders of its plan
    treat       [Treated ...]       literature.py: cold and hot
    stream      [Figures ...]       Treat's stream of messages
    threads     [Shared ...]        threads.py: mixes by several threads
    beside      [Beside ...]        readers beside a writer
    names       a NameIndex asked; boundary, frozen, pauses, process: aside.py

`quick` says that the filters were few and asked once: every table is there, and says nothing.

A plan names, for each workload, who takes part: all where all can, those that come into question where there are
many filters. Figures are rounded to a tenth of a nanosecond, so that the committed file stays small.
"""

import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fanlight_bench.machine import machine
from fanlight_bench.workloads import make, name_of
from fanlight_matchers import aside, literature, threads
from fanlight_matchers.measure import QUICK, Effort, compare
from fanlight_matchers.registry import ALL, CONTENDERS, ContenderEntry

Report = dict[str, Any]

RESULTS = Path(__file__).parent / "results" / "published.json"

COMPILED = ("fanlight", "naive", "trie-I", "trie-S", "mutex", "matchbox", "static", "bitmap", "nats", "rabbit", "dfa")
EVERYBODY = (*COMPILED, "re", "paho", "hyperscan", "pyroaring")
MANY = ("fanlight", "trie-I", "trie-S", "matchbox", "nats", "rabbit", "dfa")
BASELINES = ("fanlight", "trie-I", "trie-S")
HOSTILE = ("fanlight", "trie-I", "trie-S", "bitmap", "dfa")


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A workload and who takes part."""

    workload: str
    filters: int | None
    contenders: tuple[str, ...]


# hyperscan compiles ten thousand expressions in half a minute.
PUBLISHED = (
    Asked("W1", 1_000, EVERYBODY),
    Asked("W1v", 1_000, EVERYBODY),
    Asked("W3", 1_000, (*COMPILED, "paho", "pyroaring")),
    Asked("W2", 10_000, (*COMPILED, "paho", "hyperscan", "pyroaring")),
    Asked("W3", 10_000, (*COMPILED, "paho", "pyroaring")),
    Asked("W2", 100_000, MANY),
    Asked("W3", 100_000, (*MANY, "bitmap", "paho")),
    Asked("W3", 1_000_000, BASELINES),
    *(Asked(f"W4{letter}", None, ("naive", *HOSTILE)) for letter in "acf"),
    *(Asked(f"W4{letter}", None, HOSTILE) for letter in "bde"),  # half a millisecond a match for a scan
)

# What the bars compare with: nobody else.
NEEDED = (
    Asked("W1", 1_000, (*BASELINES, "bitmap", "matchbox", "paho", "hyperscan")),
    Asked("W1v", 1_000, BASELINES),
    Asked("W3", 1_000, BASELINES),
    Asked("W2", 10_000, (*BASELINES, "naive", "paho", "hyperscan")),
    Asked("W3", 10_000, (*BASELINES, "naive")),
    Asked("W2", 100_000, BASELINES),
    Asked("W3", 100_000, (*BASELINES, "paho")),
    Asked("W3", 1_000_000, BASELINES),
    *(Asked(f"W4{letter}", None, BASELINES) for letter in "abcdef"),
)

THREADS = (1, 2, 4, 8)
# Of 1,000 operations the matches: half, nine in ten, and matchbox's 1:3 of inserts to look-ups; its 1:1 is the half.
READS = (500, 750, 900)
FOR_THREADS = ("fanlight", "mutex", "matchbox")


def collect_workloads(plan: Iterable[Asked], effort: Effort) -> list[dict[str, Any]]:
    """The figures of each; contenders whose library is not installed are left out."""
    rows = []
    for asked in plan:
        filters = min(asked.filters or 300, 300) if effort is QUICK else asked.filters
        work = dataclasses.replace(make(asked.workload, filters), name=name_of(asked.workload, asked.filters))
        _say(f"{work.name}, {len(work.filters):,} filters")
        chosen = [
            dataclasses.replace(one, filters_max=ALL) for one in _installed(asked.contenders)
        ]  # the plan is the limit
        rows += [_row(figures) for figures in compare(work, chosen, effort)]
    return rows


def _installed(names: Iterable[str]) -> list[ContenderEntry]:
    return [CONTENDERS[name] for name in names if name in CONTENDERS]


def collect_needed(effort: Effort) -> Report:
    """What the bars need."""
    return {
        "machine": machine(),
        "workloads": collect_workloads(NEEDED, effort),
        **collect_aside(effort),
    }


def collect_aside(effort: Effort) -> Report:
    """What the bars ask besides the tables."""
    quick = effort is QUICK
    _say("the call, single changes, memory, names")
    return {
        "boundary": _rounded(aside.boundary(effort)),
        "frozen": _rounded(aside.frozen(make("W3", 500 if quick else 100_000), effort)),
        "pauses": aside.pauses(make("W3", 500 if quick else 100_000)),
        "process": _rounded(aside.process("W3", 500 if quick else 1_000_000)),
        "names": aside.named(2_000 if quick else 1_000_000, 1 if quick else 3),
    }


def collect(effort: Effort) -> Report:
    """All that is published."""
    return {
        "machine": machine(),
        "quick": effort is QUICK,
        "workloads": collect_workloads(PUBLISHED, effort),
        **collect_literature(effort),
        **collect_aside(effort),
    }


def collect_literature(effort: Effort) -> Report:
    """The published experiments, and several threads."""
    quick = effort is QUICK
    _say("Treat's subscribe, unsubscribe and look-up, and his stream of messages")
    asked = _installed(EVERYBODY)
    treated = [literature.treat(contender, hot, effort) for hot in (False, True) for contender in asked]
    stream = compare(literature.stream(), asked, effort)
    _say("several threads")
    work = make("W3", 500 if quick else 10_000)
    counts = THREADS[:2] if quick else THREADS
    mixed = [
        threads.shared(CONTENDERS[name], work, count, reads, 500 if quick else 100_000)
        for name in FOR_THREADS
        for reads in READS
        for count in counts
    ]
    return {
        "treat": [_row(one) for one in treated],
        "stream": [_row(one) for one in stream],
        "threads": [
            {"contender": one.contender, "threads": one.threads, "reads": one.reads, "per_second": one.per_second}
            for one in mixed
        ],
        "beside": [
            _row(threads.beside(work, readers, 5 if quick else 400, frozen))
            for frozen in (False, True)
            for readers in counts
        ],
    }


def _row(figures: Any) -> dict[str, Any]:
    """Its fields but those that are nothing."""
    kept = {name: value for name, value in dataclasses.asdict(figures).items() if value not in (None, "", 0)}
    return _rounded(kept)


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, 1 if value > 10 else 4) if isinstance(value, float) else value for name, value in row.items()
    }


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr)
