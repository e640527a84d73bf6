"""A filter or a name put into an index: ns an insert, all of them into an empty one.

    FilterIndex    filters of bench/fanlight_bench/workloads.py
    NameIndex      names of devices, bench/fanlight_bench/micro/names.py
    dict           the same texts into a dict, a list of ids each: the floor of what remembers them
    oracle         matchcore/matchcore/reference.py

Beside dict: all. `bytes_per_filter` is what the index holds, texts and ids and all.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from fanlight_bench.micro import names
from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.workloads import workload
from matchcore import FilterIndex, NameIndex
from matchcore.reference import ReferenceFilterIndex, ReferenceNameIndex

WORKLOADS = ("W1", "W2:10000", "W3:10000", "W3:100000")
NAMES = 100_000
ORACLE_MAX = 10_000

Index = FilterIndex | NameIndex | ReferenceFilterIndex | ReferenceNameIndex


def fill(index: Index, texts: Sequence[str], syntax: str) -> None:
    """Each with its place as its id."""
    insert = index.insert
    for id, text in enumerate(texts):
        insert(text, id, syntax=syntax)


def fill_dict(held: dict[str, list[int]], texts: Sequence[str]) -> None:
    for id, text in enumerate(texts):
        held.setdefault(text, []).append(id)


def measure(
    title: str, kind: type[FilterIndex | NameIndex], oracle: type[Index], texts: list[str], syntax: str
) -> Group:
    count = len(texts)

    def into(make: Callable[[], Index]) -> int:
        return timed(fill, make(), texts, syntax)

    index = kind()
    empty = index.nbytes
    fill(index, texts, syntax)
    cases = [
        Case("dict", count, lambda: timed(fill_dict, {}, texts)),
        Case(kind.__name__, count, partial(into, kind), ("dict",)),
    ]
    if count <= ORACLE_MAX:
        cases.append(Case("oracle", count, partial(into, oracle), ("dict",)))
    return Group(title, cases, {"held": count, "bytes_per_filter": round((index.nbytes - empty) / count)})


def groups(effort: Effort) -> Iterator[Group]:
    for name in effort.chosen(WORKLOADS, "W2"):
        work = workload(name)
        yield measure(name, FilterIndex, ReferenceFilterIndex, work.filters, work.syntax)
    count = effort.sized(NAMES, 1_000)
    yield measure(f"{count:,} names", NameIndex, ReferenceNameIndex, names.made("scattered", count), "mqtt")
