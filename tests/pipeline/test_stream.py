"""The source `fanlight` as a stream: every message once, over triggers, restarts, epochs and kills."""

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Archive, Writer
from fanlight_spark.lag import lags
from tests.archive.messages import batch
from tests.pipeline.conftest import fill


class Query:
    """A stream from an archive into Parquet, run as far as there is something to read."""

    def __init__(self, spark: Any, archive: Path, work: Path, **options: object) -> None:
        self.spark, self.archive, self.work = spark, archive, work
        self.options = {"startingOffsets": "earliest", **options}

    def run(self) -> list[tuple[int, int]]:
        """Read all there is. Returns the offsets from which to which each batch went."""
        where = {} if "url" in self.options else {"path": str(self.archive)}
        frame = self.spark.readStream.format("fanlight").options(**self.options, **where).load()
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(self.work / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self.work / "out"))
        )
        query.awaitTermination()
        self.lags = [(lag.offsets, lag.bytes) for one in query.recentProgress if one.numInputRows for lag in lags(one)]
        sources = [one.sources[0] for one in query.recentProgress if one.numInputRows]
        steps = [(json.loads(source.startOffset or "null"), json.loads(source.endOffset)) for source in sources]
        # The first batch of a query has no beginning there: it is that of the options.
        return [(start["offset"] if start else 0, end["offset"]) for start, end in steps]

    def offsets(self) -> list[int]:
        return sorted(row.offset for row in self.spark.read.parquet(str(self.work / "out")).collect())


def test_available_now_reads_what_is_there_in_steps_of_the_limit(spark: Any, folder: Path, tmp_path: Path) -> None:
    query = Query(spark, folder, tmp_path, maxOffsetsPerTrigger=300)
    assert query.run() == [(0, 300), (300, 600), (600, 900), (900, 1000)]
    assert query.offsets() == list(range(1000))


def test_batches_are_bounded_in_bytes_and_the_progress_says_what_is_behind(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """A segment of 400 fits; then two batches of the next one, and so on to the open one."""
    with Archive(folder) as archive:
        first, batches = archive.spans[0].size, archive._segment(archive.spans[1]).places
        limit = max(first, *(one.size + other.size for one, other in pairwise(batches)))
        ends = [0]
        while ends[-1] < 1_000:
            ends.append(archive.offset_after(ends[-1], 1_000, limit))
        behind = [(1_000 - end, archive.size_between(end, 1_000)) for end in ends[1:]]
    query = Query(spark, folder, tmp_path, maxBytesPerTrigger=limit)
    assert query.run() == list(pairwise(ends))
    assert (query.lags, ends[1], len(ends)) == (behind, 400, 4)
    assert query.offsets() == list(range(1_000))


def test_a_query_goes_on_where_it_was(spark: Any, folder: Path, tmp_path: Path) -> None:
    query = Query(spark, folder, tmp_path)
    assert query.run() == [(0, 1000)]
    assert query.run() == []
    fill(folder, 1000, 250)
    assert query.run() == [(1000, 1250)]
    assert query.offsets() == list(range(1250))


def test_a_stream_begins_with_what_comes_unless_it_is_told_otherwise(spark: Any, folder: Path, tmp_path: Path) -> None:
    query = Query(spark, folder, tmp_path)
    del query.options["startingOffsets"]
    assert query.run() == []
    fill(folder, 1000, 10)
    assert query.run() == [(1000, 1010)]


def test_a_filter_leaves_out_rows_and_no_offsets(spark: Any, folder: Path, tmp_path: Path) -> None:
    query = Query(spark, folder, tmp_path, filter="#.2")
    query.run()
    assert query.offsets() == list(range(2, 1000, 3))


def lose_the_tail(folder: Path, keep: int) -> None:
    """As a machine that goes down does: of the open segment `keep` batches are left; then another boot."""
    with Archive(folder) as archive:
        assert archive._tail is not None
        place, path = archive._tail.places[keep], archive._tail.path
    os.truncate(path, place.at)
    writer = Writer(folder, boot="another")
    writer.append(batch(5000, 100))
    writer.abandon()


def test_offsets_that_a_crash_gives_anew_are_not_taken_for_those_that_were_read(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """The open segment has 800 to 999; after the crash 900 to 999 are other messages, in another epoch."""
    query = Query(spark, folder, tmp_path)
    query.run()
    lose_the_tail(folder, keep=1)
    with pytest.raises(Exception, match="messages 900 to 999 are gone"):
        query.run()
    query.options["failOnDataLoss"] = "false"
    assert query.run() == [(1000, 1000)]
    found = spark.read.parquet(str(tmp_path / "out")).selectExpr("int(string(value)) AS number").collect()
    assert sorted(row.number for row in found) == [*range(1000), *range(5000, 5100)]


def test_a_checkpoint_is_of_one_archive(spark: Any, folder: Path, tmp_path: Path) -> None:
    Query(spark, folder, tmp_path).run()
    fill(tmp_path / "other", 0, 2000)
    with pytest.raises(Exception, match="start a query for another archive"):
        Query(spark, tmp_path / "other", tmp_path).run()
