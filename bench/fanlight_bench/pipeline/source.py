"""Messages out of the archive, beside a scan of the same in Parquet, which the JVM does, and beside rows as tuples.

    parquet                   all columns of the same messages, in Parquet
    archive                   all columns, by the source `fanlight`
    parquet, topic and time   two columns
    archive, topic and time   two columns, chosen by .schema(...)
    tuples                    all columns, by a source that gives Spark its rows as tuples, the simplest way there is
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fanlight_archive import Archive
from fanlight_bench.pipeline import messages
from fanlight_bench.pipeline.case import Bench, PipelineCase, PipelineGroup, noop
from fanlight_spark.source import COLUMNS

NARROW = "topic STRING, timestamp TIMESTAMP"
TUPLES = 500_000  # rows: as tuples all of them take too long


class Range(InputPartition):
    def __init__(self, first: int, end: int) -> None:
        super().__init__((first, end))
        self.first, self.end = first, end


class Tuples(DataSource):
    """What one writes after the first page of Spark's documentation."""

    @classmethod
    def name(cls) -> str:
        return "bench-tuples"

    def schema(self) -> StructType:
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return TupleReader(self.options["path"], int(self.options["rows"]), int(self.options["parts"]))


class TupleReader(DataSourceReader):
    def __init__(self, path: str, rows: int, parts: int) -> None:
        self.path, self.rows, self.parts = path, rows, parts

    def partitions(self) -> list[InputPartition]:
        at = [self.rows * number // self.parts for number in range(self.parts + 1)]
        return [Range(first, end) for first, end in pairwise(at)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Range)
        with Archive(self.path) as archive:
            for batch in archive.read(partition.first, partition.end):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def groups(bench: Bench) -> Iterator[PipelineGroup]:
    session, rows = bench.session, bench.rows
    session.dataSource.register(Tuples)
    archive, flat = messages.write(bench.folder, messages.topics(), rows)
    few = bench.some(TUPLES)
    reader = session.read.format("fanlight")
    parquet, all_of_it = session.read.parquet(str(flat)), reader.load(str(archive))
    some = session.read.format("fanlight").schema(NARROW).load(str(archive))
    tuples = (
        session.read.format("bench-tuples")
        .options(rows=few, parts=max(2, session.sparkContext.defaultParallelism)).load(str(archive))
    )  # fmt: skip
    for frame in (parquet, all_of_it, some):
        _holds(frame, rows)
    _holds(tuples, few)
    size = sum(path.stat().st_size for path in archive.iterdir())
    cases = [
        PipelineCase("parquet", rows, lambda: noop(parquet)),
        PipelineCase("archive", rows, lambda: noop(all_of_it), ("parquet", "tuples")),
        PipelineCase("parquet, topic and time", rows, lambda: noop(parquet.select("topic", "timestamp"))),
        PipelineCase("archive, topic and time", rows, lambda: noop(some), ("parquet, topic and time",)),
        PipelineCase("tuples", few, lambda: noop(tuples), ("parquet",)),
    ]
    yield PipelineGroup("source", cases, {"archive_bytes_per_message": round(size / rows, 1)})


def _holds(frame: Any, rows: int) -> None:
    """Raises AssertionError if the number of rows differs."""
    if (found := frame.count()) != rows:
        raise AssertionError(f"{found} rows, and not {rows}")
