"""A replay in which everything matches, with indexes and without, alone: what an index may cost where it helps nothing.

    all, every message    the filter #, which the index answers by its topics alone: the bar is 1.05
    all, by a selector    a condition on an indexed field, true of all messages: the numbers are asked as well

The two ways of a pair take turns, so `beside` is the median of ratios of neighbours; `--turns 31` for a narrow one. The
time is that of the processor, of all threads.
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from fanlight_bench.micro.archive_index import FIELDS, QUICK_ROUNDS, batches_of, replayed, write
from fanlight_bench.micro.case import Case, Effort, Group
from fanlight_broker.storage.archive_index import SegmentIndexer, fields_named

ROUNDS = 15
PAIRS: dict[str, str | None] = {"every message": None, "by a selector": "close > 0"}


def groups(effort: Effort) -> Iterator[Group]:
    batches = list(batches_of(effort.sized(ROUNDS, QUICK_ROUNDS)))
    messages = sum(batch.num_rows for batch in batches)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), batches, lambda: SegmentIndexer(fields_named(FIELDS)))
        cases = []
        for name, where in PAIRS.items():
            plain, ask = f"all, {name}, no index", partial(replayed, Path(folder), "#", where)
            cases.append(Case(plain, messages, partial(ask, indexed=False)))
            cases.append(Case(f"all, {name}", messages, partial(ask, indexed=True), (plain,)))
        yield Group("replay_all", cases, {"messages": messages})
