"""One run of everything that is published, or of what the bars need: a report, as JSON has it.

    machine     where
    commit      of what source
    workloads   [Figures ...]       measure.py: W1 to W4, each with the contenders of its plan
    treat       [Treated ...]       literature.py: cold and hot
    stream      [Figures ...]       Treat's stream of messages
    threads     [Shared ...]        threads.py: mixes by several threads, matchbox's experiment
    apart       [Shared ...]        readers and writers as threads of their own, Treat's
    beside      [Beside ...]        readers beside a writer
    names       a NameIndex asked; boundary, frozen, pauses, process: aside.py

`quick` says that the filters were few and asked once: every table is there, and says nothing.

A plan names, for each workload, who takes part: all where all can, those that come into question where there are
many filters. Figures are rounded to a tenth of a nanosecond, so that the committed file stays small.
"""

import contextlib
import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fanlight_bench.machine import machine
from fanlight_bench.workloads import make, name_of
from fanlight_matchers import aside, literature, threads
from fanlight_matchers.measure import QUICK, Effort, compare
from fanlight_matchers.registry import ALL, CONTENDERS, ContenderEntry

Report = dict[str, Any]

RESULTS = Path(__file__).parent / "results" / "published.json"
MEASURED = (":/matchcore", ":/research/matchers", ":/bench/fanlight_bench")  # what a figure depends on

COMPILED = (
    "fanlight", "naive", "trie-I", "trie-S", "matchbox", "static", "bitmap", "bitmap-or", "nats",
    "rabbit", "dfa",
)  # fmt: skip
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
    Asked("W6", 1_000, COMPILED),
    Asked("W6L", 1_000, COMPILED),
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

READERS = (1, 2, 4, 8)
THREADS = (1, 2, 4, 8, 16)
READS = (500, 750)  # of 1,000 operations the matches: 1:1 and 1:3
FOR_THREADS = ("fanlight", "matchbox", "nats", "trie-S")
THREADS_APART = (2, 4, 8, 12, 16)
READS_APART = (500, 900)
FOR_APART = ("naive", "static", "bitmap", "bitmap-or", "trie-S", "matchbox", "fanlight")


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


def commit(folder: Path = Path(__file__).parent, sources: Sequence[str] = MEASURED) -> str:
    """Of the source that is measured, with a + if it was changed since; empty outside a git repository."""
    try:
        name = _git(folder, "describe", "--always", "--exclude=*")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", *sources)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{name}+" if changed else name


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def collect_needed(effort: Effort) -> Report:
    """What the bars need."""
    return {
        "machine": machine(),
        "commit": commit(),
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
        "commit": commit(),
        "quick": effort is QUICK,
        "workloads": collect_workloads(PUBLISHED, effort),
        **collect_literature(effort),
        **collect_aside(effort),
    }


def collect_literature(effort: Effort) -> Report:
    """The published experiments, and several threads."""
    quick = effort is QUICK
    _say("Treat's subscribe, unsubscribe and look-up, and his stream of messages")
    work = literature.stream()
    known = literature.knowing(CONTENDERS["static"], work.topics)
    asked = [*_installed(EVERYBODY), known]
    treated = [literature.treat(contender, hot, effort) for hot in (False, True) for contender in asked]
    stream = compare(work, asked, effort)
    return {
        "treat": [_row(one) for one in treated],
        "stream": [_row(one) for one in stream],
        **collect_threads(quick),
    }


@contextlib.contextmanager
def all_processors() -> Iterator[None]:
    """All processors, though the process may have been started on one: where the system lets it choose."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def collect_threads(quick: bool) -> Report:
    """Several threads, by the wall clock, on all processors."""
    with all_processors():
        return _collect_threads(quick)


def _collect_threads(quick: bool) -> Report:
    _say("several threads")
    work = make("W3", 500 if quick else 10_000)
    counts = THREADS[:2] if quick else THREADS
    mixed = [
        threads.shared(CONTENDERS[name], work, count, reads, 500 if quick else 200_000 // count)
        for name in FOR_THREADS
        for reads in READS
        for count in counts
    ]
    _say("readers and writers as threads of their own")
    apart = [
        threads.apart(CONTENDERS[name], literature.concurrent(), count, reads, 500 if quick else 50_000)
        for name in FOR_APART
        for reads in READS_APART
        for count in (THREADS_APART[:1] if quick else THREADS_APART)
    ]
    return {
        "threads": [_shared(one) for one in mixed],
        "apart": [_shared(one) for one in apart],
        "beside": [
            _row(threads.beside(work, readers, 5 if quick else 400, frozen))
            for frozen in (False, True)
            for readers in (READERS[:2] if quick else READERS)
        ],
    }


def _shared(one: threads.Shared) -> dict[str, Any]:
    return {
        "contender": one.contender, "threads": one.threads, "reads": one.reads, "per_second": round(one.per_second),
    }  # fmt: skip


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
