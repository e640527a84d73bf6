"""`python -m bench.micro.names`: what asking a NameIndex costs, as called from Python, as JSON on standard output.

Names are of W3's kind, site/S/floor/F/dev/D/METRIC, made anew from a fixed seed, in three ways:

    scattered   each word drawn by itself: 1,000 sites, 20 floors, 5,000 devices, 12 metrics
    crowded     the same with 1,000 devices, so that each is in a thousand names of a million
    fleet       each device at one place, with ten metrics: names / 10 devices

Figures are of thread CPU time, the least of several passes over the same filters, the call, the loop and the tuple
included; "us" is per filter asked, "ids" how many it found on average. "insert_ns" and "remove_ns" are per name in
random order, at the full size and at 1,000 names. "bytes_per_name" is nbytes, names and ids and all; beside it the
growth of the process. "small" compares with a plain scan (matchcore/reference.py) on a few thousand names: the
answers must be equal. The bars of the design, at a million names: a device filter that matches 10 under 20 us
("device at a floor", scattered), one that matches 1,000 under 200 us ("device", crowded), nothing to match under 1 us.
"""

import gc
import os
import random
import sys
from collections.abc import Callable
from time import thread_time_ns
from typing import Any

from bench.micro import reporting
from bench.procfs import resident_bytes
from matchcore import NameIndex
from matchcore.reference import ReferenceNameIndex

SEED = 20_171
NAMES = 1_000_000
FILTERS = 300
PASSES = 5
SMALL = 1_000
CHECKED = 3_000

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


def _timed(call: Callable[[], object]) -> int:
    start = thread_time_ns()
    call()
    return thread_time_ns() - start


def _insert(index: NameIndex | ReferenceNameIndex, names: list[str]) -> None:
    for id, name in enumerate(names):
        index.insert(name, id, syntax="mqtt")


def _remove(index: NameIndex, names: list[str]) -> None:
    for id, name in enumerate(names):
        index.remove(name, id, syntax="mqtt")


def _match(index: NameIndex | ReferenceNameIndex, filters: list[str]) -> int:
    return sum(len(index.match(filter, syntax="mqtt")) for filter in filters)


def measure(kind: str, count: int, passes: int = PASSES) -> dict[str, Any]:
    """The figures of `count` names of one kind."""
    dice = random.Random(SEED)
    names = MAKERS[kind](dice, count)
    index = NameIndex()
    empty = index.nbytes
    gc.collect()
    before = resident_bytes(os.getpid())
    inserted = _timed(lambda: _insert(index, names))
    after = resident_bytes(os.getpid())
    figures: dict[str, Any] = {
        "names": count,
        "insert_ns": round(inserted / count),
        "bytes_per_name": round((index.nbytes - empty) / count, 1),
        "process_bytes_per_name": None if before is None or after is None else round((after - before) / count, 1),
        "asked": {},
    }
    for label, shape in SHAPES.items():
        filters = asked(dice, shape, kind, FILTERS if label != "metric of a floor number" else FILTERS // 20, count)
        found = _match(index, filters)
        best = min(_timed(lambda: _match(index, filters)) for _ in range(passes))  # noqa: B023
        figures["asked"][label] = {
            "filter": shape,
            "ids": round(found / len(filters), 1),
            "us": round(best / len(filters) / 1000, 2),
        }
    figures["remove_ns"] = round(_timed(lambda: _remove(index, names)) / count)
    figures["bytes_left"] = index.nbytes - empty
    few = names[:SMALL]
    pairs = [(_timed(lambda: _insert(index, few)), _timed(lambda: _remove(index, few))) for _ in range(20)]
    figures["small"] = {
        "names": len(few),
        "insert_ns": round(min(insert for insert, _ in pairs) / len(few)),
        "remove_ns": round(min(remove for _, remove in pairs) / len(few)),
        "per_reference": _compare(kind, names[:CHECKED]),
    }
    return figures


def _compare(kind: str, names: list[str]) -> int:
    """How many times longer a scan takes, over one filter of each shape; that both agree is checked."""
    index, oracle = NameIndex(), ReferenceNameIndex()
    _insert(index, names)
    _insert(oracle, names)
    dice = random.Random(SEED)
    filters = [asked(dice, shape, kind, 1, len(names))[0] for shape in SHAPES.values()]
    for filter in filters:
        if index.match(filter, syntax="mqtt") != oracle.match(filter, syntax="mqtt"):
            raise AssertionError(f"the index and the oracle disagree about {filter}")
    plain = _timed(lambda: _match(oracle, filters))
    return round(plain / min(_timed(lambda: _match(index, filters)) for _ in range(9)))


def main(arguments: list[str] | None = None) -> int:
    parser = reporting.parser("names", __doc__)
    parser.add_argument("--names", type=int, help=f"of each kind (default {NAMES:,})", default=NAMES)
    parser.add_argument("--passes", type=int, help=f"of which the least counts (default {PASSES})", default=PASSES)
    options = parser.parse_args(arguments)
    results = {kind: measure(kind, options.names, options.passes) for kind in MAKERS}
    return reporting.report("names", results)


if __name__ == "__main__":
    sys.exit(main())
