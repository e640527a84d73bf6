"""A filter or a name taken out of an index: ns a removal, all of them in random order until none is left.

    FilterIndex, NameIndex, dict, oracle    as in `insert`

Beside dict: all.
"""

import random
from collections.abc import Callable, Iterator
from functools import partial

from fanlight_bench.micro import names
from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.insert import NAMES, ORACLE_MAX, WORKLOADS, Index, fill, fill_dict
from fanlight_bench.workloads import SEED, workload
from matchcore import FilterIndex, NameIndex
from matchcore.reference import ReferenceFilterIndex, ReferenceNameIndex


def measure(
    title: str, kind: type[FilterIndex | NameIndex], oracle: type[Index], texts: list[str], syntax: str
) -> Group:
    count = len(texts)
    pairs = list(enumerate(texts))
    random.Random(SEED).shuffle(pairs)

    def out_of(make: Callable[[], Index]) -> int:
        index = make()
        fill(index, texts, syntax)
        return timed(empty, index)

    def empty(index: Index) -> None:
        remove = index.remove
        for id, text in pairs:
            remove(text, id, syntax=syntax)

    def out_of_dict() -> int:
        held: dict[str, list[int]] = {}
        fill_dict(held, texts)
        return timed(empty_dict, held)

    def empty_dict(held: dict[str, list[int]]) -> None:
        for id, text in pairs:
            ids = held[text]
            ids.remove(id)
            if not ids:
                del held[text]

    cases = [Case("dict", count, out_of_dict), Case(kind.__name__, count, partial(out_of, kind), ("dict",))]
    if count <= ORACLE_MAX:
        cases.append(Case("oracle", count, partial(out_of, oracle), ("dict",)))
    return Group(title, cases, {"held": count})


def groups(effort: Effort) -> Iterator[Group]:
    for name in effort.chosen(WORKLOADS, "W2"):
        work = workload(name)
        yield measure(name, FilterIndex, ReferenceFilterIndex, work.filters, work.syntax)
    count = effort.sized(NAMES, 1_000)
    yield measure(f"{count:,} names", NameIndex, ReferenceNameIndex, names.made("scattered", count), "mqtt")
