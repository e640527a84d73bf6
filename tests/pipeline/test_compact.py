"""`compact`: every message once into Parquet, laid out by time and root, over repetitions, kills and crashes."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, SCHEMA, Writer
from tests.archive.messages import batch
from tests.pipeline.conftest import fill


def compact(spark: Any, *arguments: Any, **options: Any) -> list[tuple[int, int]]:
    from fanlight_spark.jobs import compact as job

    return [(one.first, one.end) for one in job.compact(spark, *arguments, **options)]


def offsets(spark: Any, folder: Path) -> list[int]:
    from fanlight_spark.jobs import compacted

    return sorted(row.offset for row in compacted.read(spark, folder).select("offset").collect())


def test_closed_segments_become_parquet_and_a_repetition_adds_only_what_is_new(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """The archive has segments of 400, 400 and, open, 200 messages."""
    from fanlight_spark.jobs import compacted

    out = tmp_path / "out"
    assert compact(spark, folder, out) == [(0, 800)]
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    assert compact(spark, folder, out) == []
    writer = Writer(folder)  # which closes what was open
    writer.append(batch(1000, 50))
    writer.close()
    assert compact(spark, folder, out, messages_max=150) == [(800, 1000), (1000, 1050)]  # cut between batches
    assert {path: path.stat().st_mtime_ns for path in before} == before
    found = compacted.read(spark, out)
    rows = sorted(found.collect())
    assert found.columns == [*SCHEMA.names, "date", "hour", "root"]
    assert [row.offset for row in rows] == list(range(1050))
    assert [bytes(row.value) for row in rows] == [b"%020d" % n for n in range(1050)]
    source = spark.read.format("fanlight").load(str(folder)).orderBy("offset")
    assert [row[: len(SCHEMA.names)] for row in rows] == [tuple(row) for row in source.collect()]


def two_hours(folder: Path) -> None:
    """Messages before and after midnight, with roots of all kinds; the last is of another epoch."""
    rows = batch(0, 9).to_pydict()
    midnight = 20_000 * 86_400_000_000
    rows["timestamp"] = [midnight + n * 1_800_000_000 for n in range(-2, 7)]
    rows["topic"] = ["stock.A", "stock.B", "home/x", "/x", "_other.x", "a b.c", "stock", "ж/ж", "stock/a.b"]
    rows["syntax"] = ["amqp", "amqp", "mqtt", "mqtt", "amqp", "amqp", "amqp", "mqtt", "mqtt"]
    writer = Writer(folder)
    writer.append(pa.RecordBatch.from_pydict(rows, schema=MESSAGE))
    writer.abandon()
    writer = Writer(folder, boot="another")
    writer.append(batch(9, 1, topic="late"))
    writer.close()


def test_places_are_utc_hours_and_sanitised_roots_bounded_in_number(spark: Any, tmp_path: Path) -> None:
    from fanlight_spark.jobs import compacted, filesets

    two_hours(tmp_path / "archive")
    out = tmp_path / "out"
    compact(spark, tmp_path / "archive", out, roots_max=3)
    found = {row.offset: (row.date, row.hour, row.root) for row in compacted.read(spark, out).collect()}
    evening, morning = date(2024, 10, 3), date(2024, 10, 4)
    assert found == {
        0: (evening, 23, "stock"), 1: (evening, 23, "stock"), 2: (morning, 0, "_other"), 3: (morning, 0, "-"),
        4: (morning, 1, "-other"), 5: (morning, 1, "_other"), 6: (morning, 2, "stock"), 7: (morning, 2, "-"),
        8: (morning, 3, "stock"), 9: (date(1970, 1, 1), 0, "_other"),
    }  # fmt: skip
    manifest = filesets.load(out)
    assert manifest is not None
    assert manifest.roots == ["stock", "-", "-other"]  # by their number, then by their name
    assert [one.epochs for one in manifest.sets] == [[{"epoch": 1, "first": 0}, {"epoch": 2, "first": 9}]]
    assert manifest.position["epoch"] == 2
    # A root that is asked for is looked for in its folders only.
    asked = compacted.read(spark, out).where("root = 'stock' AND hour = 23")
    pruned = re.search(r"PartitionFilters: \[(.*?)\]", str(asked._jdf.queryExecution().executedPlan().toString()))
    assert pruned is not None
    assert {"root", "hour"} <= set(re.findall(r"(\w+)#", pruned[1]))
    assert asked.count() == 2


def test_a_root_without_a_folder_gets_none_later(spark: Any) -> None:
    """Else some of its messages would be in `_other` and some not, and who asks for a root would miss the first."""
    from fanlight_spark.jobs.compact import roots_of

    def topics(*words: str) -> Any:
        return spark.createDataFrame([(f"{word}.x", "amqp") for word in words], "topic STRING, syntax STRING")

    assert roots_of(topics("a", "b", "b", "c"), [], 2) == ["b", "a"]
    assert roots_of(topics("c", "c", "c", "a"), ["b", "a"], 2) == ["b", "a"]
    assert roots_of(topics("c", "c", "a"), ["b", "a"], 3) == ["b", "a", "c"]


def test_a_filter_and_an_offset_say_what_is_compacted(
    spark: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import command
    from fanlight_spark.jobs import compact as job

    out = tmp_path / "out"
    line = [str(folder), "--out", str(out), "--filter", "stock.*.1", "--up-to", "905"]
    assert job.main(line, spark) == 0
    assert offsets(spark, out) == list(range(1, 905, 3))
    # Other jobs read what it wrote as they read the archive: of some time only that day's folders.
    times = ["--from", "1970-01-01T00:10:00", "--until", "1970-01-01T00:10:10"]
    asked = command.parser("some", "", "").parse_args([str(out), "--out", "x", *times])
    found = command.messages(spark, asked, "offset")
    assert sorted(row.offset for row in found.collect()) == [601, 604, 607]
    page = (out / "report.html").read_text()
    assert "<dd>302</dd>" in page
    assert "topics stock.*.1 (amqp)" in page
    assert "302 messages added" in capsys.readouterr().out
    assert job.main(line[:3], spark) == 2
    assert "was made with filter stock.*.1, not None: take another folder" in capsys.readouterr().err
    fill(tmp_path / "other", 0, 10)
    assert job.main([str(tmp_path / "other"), *line[1:]], spark) == 2
    assert "was made with archive" in capsys.readouterr().err


def test_what_retention_has_taken_is_said_and_can_be_left(spark: Any, folder: Path, tmp_path: Path) -> None:
    from fanlight_archive import ArchiveError

    out = tmp_path / "out"
    compact(spark, folder, out, up_to=100)
    writer = Writer(folder)
    writer.append(batch(1000, 10))
    writer.remove_old(since=1000 * 1_000_000)
    writer.close()
    with pytest.raises(ArchiveError, match="messages 100 to 999 are gone"):
        compact(spark, folder, out)
    assert compact(spark, folder, out, allow_loss=True) == [(1000, 1010)]
    assert offsets(spark, out) == [*range(100), *range(1000, 1010)]


def test_of_an_archive_without_a_closed_segment_other_jobs_read_no_messages(spark: Any, tmp_path: Path) -> None:
    from fanlight_spark.jobs import command, compacted

    fill(tmp_path / "archive", 0, 10)
    assert compact(spark, tmp_path / "archive", tmp_path / "out") == []
    asked = command.parser("some", "", "").parse_args([str(tmp_path / "out"), "--out", "x", "--filter", "stock.#"])
    assert command.messages(spark, asked, "offset").collect() == []
    assert compacted.read(spark, tmp_path / "out").columns == [*SCHEMA.names, "date", "hour", "root"]
    assert compact(spark, tmp_path / "archive", tmp_path / "out", up_to=10) == [(0, 10)]


def test_what_is_no_archive_is_refused(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fanlight_spark.jobs import compact as job
    from fanlight_spark.jobs import compacted

    assert job.main([str(tmp_path), "--out", str(tmp_path / "out")], spark) == 2
    assert "no archive" in capsys.readouterr().err
    with pytest.raises(ValueError, match="nothing was compacted there"):
        compacted.read(spark, tmp_path)


def test_other_jobs_read_a_delta_table(spark: Any, folder: Path, tmp_path: Path) -> None:
    from fanlight_spark.jobs import command, compacted
    from fanlight_spark.jobs import compact as job

    out = tmp_path / "out"
    assert job.main([str(folder), "--out", str(out), "--format", "delta"], spark) == 0
    times = ["--from", "1970-01-01T00:10:00", "--until", "1970-01-01T00:10:10", "--filter", "stock.*.1"]
    asked = command.parser("some", "", "").parse_args([str(out), "--out", "x", *times])
    found = command.messages(spark, asked, "offset", "topic")
    assert sorted(row.offset for row in found.collect()) == [601, 604, 607]
    asked.input = out.as_uri()  # by delta-rs in the workers, as from an object store
    assert sorted(row.offset for row in command.messages(spark, asked, "offset", "topic").collect()) == [601, 604, 607]
    asked.input = "s4://lake/messages"
    with pytest.raises(ValueError, match="no file system for such addresses"):
        command.messages(spark, asked, "offset")
    found, source = compacted.read(spark, out), spark.read.format("fanlight").load(str(folder))
    assert found.columns == [*SCHEMA.names, "root", "date"]
    assert sorted(tuple(row)[:13] for row in found.collect()) == sorted(
        tuple(row) for row in source.collect() if row.offset < 800
    )
    empty = tmp_path / "empty"
    assert job.main([str(folder), "--out", str(empty), "--format", "delta", "--up-to", "0"], spark) == 0
    assert compacted.read(spark, empty).collect() == []
    assert job.main([str(folder), "--out", "s3://lake/messages"], spark) == 2  # sets are not for object stores
