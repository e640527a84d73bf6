"""A NameIndex asked for a filter, as routes and retained messages are: ns a question, as called from Python.

Names are of W3's kind, site/S/floor/F/dev/D/METRIC, made anew from a fixed seed, in three ways:

    scattered   each word drawn independently: 1,000 sites, 20 floors, 5,000 devices, 12 metrics
    crowded     the same with 1,000 devices, so that each is in a thousand names of a million
    fleet       each device at one place, with ten metrics: names / 10 devices

A case is a shape of filter; `ids` is how many a question found on average. The last group is beside the plain scan
(matchcore.reference), a filter of each shape, and the answers must be equal. `bytes_per_name` is what the index
holds, names and ids and all; beside it the growth of the process. Insert and removal are in `insert` and `remove`.

The bars of the design, at a million names: a device filter that matches 10 under 20 µs ("device at a floor",
scattered), one that matches 1,000 under 200 µs ("device", crowded), nothing to match under 1 µs.
"""

import gc
import os
import random
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fanlight_bench.micro.case import Case, Effort, Group, measured, timed
from fanlight_bench.procfs import resident_bytes
from matchcore import NameIndex
from matchcore.reference import ReferenceNameIndex

SEED = 20_171
NAMES = 1_000_000
QUICK_NAMES = 2_000
FILTERS = 300
CHECKED = 3_000  # names that are given to the plain scan

SITES, FLOORS = 1_000, 20
METRICS = {"scattered": 12, "crowded": 12, "fleet": 10}
DEVICES = {"scattered": 5_000, "crowded": 1_000}


def scattered(dice: random.Random, count: int, devices: int = DEVICES["scattered"]) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < count:
        place = f"site/{dice.randrange(SITES)}/floor/{dice.randrange(FLOORS)}"
        names[f"{place}/dev/{dice.randrange(devices)}/metric{dice.randrange(12)}"] = None
    return list(names)


def crowded(dice: random.Random, count: int) -> list[str]:
    return scattered(dice, count, DEVICES["crowded"])


def fleet(dice: random.Random, count: int) -> list[str]:
    names = []
    for device in range(-(-count // 10)):
        place = f"site/{dice.randrange(SITES)}/floor/{dice.randrange(FLOORS)}/dev/{device}"
        names += [f"{place}/metric{metric}" for metric in range(10)]
    dice.shuffle(names)
    return names[:count]


MAKERS: dict[str, Callable[[random.Random, int], list[str]]] = {
    "scattered": scattered, "crowded": crowded, "fleet": fleet,
}  # fmt: skip

# S, F, D and M are filled in.
SHAPES = {
    "device at a floor": "+/+/+/F/dev/D/#",
    "device and metric": "site/+/+/+/dev/D/metricM",
    "device": "+/+/+/+/+/D/#",
    "device below a site": "site/S/+/+/dev/D/#",
    "floor of a site": "site/S/floor/F/#",
    "site": "site/S/#",
    "site, no prefix": "+/S/#",
    "metric of a site": "site/S/+/+/dev/+/metricM",
    "metric of a floor number": "+/+/+/F/+/+/metricM",
    "unknown word": "+/+/+/+/dev/none-D/#",
    "word at another place": "+/dev/#",
}


def asked(dice: random.Random, shape: str, kind: str, count: int, names: int) -> list[str]:
    devices = DEVICES.get(kind, names // 10)

    def fill(word: str) -> str:
        values = {"S": SITES, "F": FLOORS, "none-D": devices, "D": devices, "metricM": METRICS[kind]}
        return word if word not in values else word.rstrip("DMSF") + str(dice.randrange(values[word]))

    return ["/".join(fill(word) for word in shape.split("/")) for _ in range(count)]


def made(kind: str, count: int) -> list[str]:
    """So many names of a kind, the same each time."""
    return MAKERS[kind](random.Random(SEED), count)


def ask(index: NameIndex | ReferenceNameIndex, filters: list[str]) -> None:
    """The loop being in C."""
    deque(map(partial(index.match, syntax="mqtt"), filters), maxlen=0)


def of_kind(kind: str, count: int) -> Group:
    """So many names of a kind, and a case for each shape."""
    names = made(kind, count)
    dice = random.Random(SEED)
    index = NameIndex()
    empty = index.nbytes
    gc.collect()
    before = resident_bytes(os.getpid())
    for id, name in enumerate(names):
        index.insert(name, id, syntax="mqtt")
    after = resident_bytes(os.getpid())
    facts = {
        "names": count,
        "bytes_per_name": round((index.nbytes - empty) / count, 1),
        "process_bytes_per_name": None if before is None or after is None else round((after - before) / count, 1),
    }
    cases = []
    for label, shape in SHAPES.items():
        filters = asked(dice, shape, kind, FILTERS if label != "metric of a floor number" else FILTERS // 20, count)
        found = round(sum(len(index.match(filter, syntax="mqtt")) for filter in filters) / len(filters), 1)
        found_by = partial(dict[str, object], filter=shape, ids=found)
        cases.append(Case(label, len(filters), partial(timed, ask, index, filters), (), found_by))
    return Group(kind, cases, facts)


def beside_scan(kind: str, count: int) -> Group:
    """A filter of each shape. AssertionError: the index and the scan disagree."""
    index, oracle = NameIndex(), ReferenceNameIndex()
    for id, name in enumerate(made(kind, count)):
        index.insert(name, id, syntax="mqtt")
        oracle.insert(name, id, syntax="mqtt")
    dice = random.Random(SEED)
    filters = [asked(dice, shape, kind, 1, count)[0] for shape in SHAPES.values()]
    for filter in filters:
        if index.match(filter, syntax="mqtt") != oracle.match(filter, syntax="mqtt"):
            raise AssertionError(f"the index and the oracle disagree about {filter}")
    scan = Case("oracle", len(filters), partial(timed, ask, oracle, filters))
    ours = Case("index", 20 * len(filters), partial(timed, ask, index, filters * 20), ("oracle",))
    return Group(f"{kind}, {count:,} names", [scan, ours], {"names": count})


def measure(kind: str, count: int, turns: int) -> dict[str, dict[str, Any]]:
    """What research/matchers/fanlight_matchers has of it: the figures of each shape."""
    cases: dict[str, dict[str, Any]] = measured(of_kind(kind, count), Effort(turns))["cases"]
    return cases


def groups(effort: Effort) -> Iterator[Group]:
    for kind in MAKERS:
        yield of_kind(kind, effort.sized(NAMES, QUICK_NAMES))
    yield beside_scan("scattered", CHECKED)
