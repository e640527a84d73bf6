"""What a task of Spark reads of an archive, by the indexes beside its segments and without them.

    rare        a topic of two messages of 393,900
    seldom      a topic of one message in 50,000
    peak        a selector on an indexed field, true of two messages
    dear        one that is true of a message in 126, so in every batch: the cliff
    dear topic  the same of one topic
    all         everything: the bar is 1.05

Planning and reading are those of the data source, in this process and without a Spark: `rows_read`, `bytes_read` of
batches, beside them how many rows are found. ns of processor time a message that the archive has. It needs PySpark, of
which the source is a part; no Java.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time_ns
from typing import Any

from fanlight_archive.segment import Place, Segment
from fanlight_bench.micro.archive_index import FIELDS, QUICK_ROUNDS, ROUNDS, batches_of, write
from fanlight_bench.micro.case import Case, Effort, Group
from fanlight_broker.storage.archive_index import SegmentIndexer, fields_named

READS: dict[str, dict[str, str]] = {
    "rare": {"filter": "alarm.flood"}, "seldom": {"filter": "alarm.fire"},
    "peak": {"where": "close > 9000"}, "dear": {"where": "close > 1000"},
    "dear topic": {"filter": "stock.nasdaq.GOOGL", "where": "close > 1000"},
    "all": {"filter": "#"},
}  # fmt: skip


def groups(effort: Effort) -> Iterator[Group]:
    if find_spec("pyspark") is None:
        yield Group("source_index", facts={"missing": "PySpark: `make spark` in a checkout"})
        return
    batches = list(batches_of(effort.sized(ROUNDS, QUICK_ROUNDS)))
    messages = sum(batch.num_rows for batch in batches)
    with tempfile.TemporaryDirectory() as folder:
        indexed, plain = Path(folder) / "indexed", Path(folder) / "plain"
        write(indexed, batches, lambda: SegmentIndexer(fields_named(FIELDS)))
        write(plain, batches, None)
        facts: dict[str, object] = {"messages": messages}
        cases = []
        for name, options in READS.items():
            found = {place.name: looked_at(place, options) for place in (plain, indexed)}
            if found["plain"]["found"] != found["indexed"]["found"]:
                raise AssertionError(f"{name}: {found}")
            facts[name] = found
            without = f"read {name}, no index"
            cases.append(Case(without, messages, partial(taken, plain, options)))
            cases.append(Case(f"read {name}", messages, partial(taken, indexed, options), (without,)))
        yield Group("source_index", cases, facts)


def read(folder: Path, options: dict[str, str]) -> int:
    """How many rows the source finds."""
    from fanlight_spark.source import COLUMNS, BatchReader, SourceSettings

    reader = BatchReader(SourceSettings.of({"path": str(folder), **options}, COLUMNS))
    return sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))


def taken(folder: Path, options: dict[str, str]) -> int:
    start = process_time_ns()
    read(folder, options)
    return process_time_ns() - start


def looked_at(folder: Path, options: dict[str, str]) -> dict[str, int]:
    with counted() as places:
        found = read(folder, options)
    return {
        "found": found, "batches_read": len(places), "rows_read": sum(place.rows for place in places),
        "bytes_read": sum(place.size for place in places),
    }  # fmt: skip


@contextmanager
def counted() -> Iterator[list[Place]]:
    """The batches that are read meanwhile."""
    places: list[Place] = []
    whole = Segment.batch

    def batch(self: Segment, place: Place) -> Any:
        places.append(place)
        return whole(self, place)

    Segment.batch = batch  # type: ignore[method-assign]
    try:
        yield places
    finally:
        Segment.batch = whole  # type: ignore[method-assign]
