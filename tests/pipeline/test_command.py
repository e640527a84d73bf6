"""What the command lines of all jobs have in common: which messages, from where, and what it says of a fault."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests import require
from tests.pipeline.conftest import fill


def asked(*words: str) -> argparse.Namespace:
    from fanlight_spark.jobs import command

    return command.parser("some", "About.", "python -m fanlight_spark.jobs.some archive --out x").parse_args([*words])


def offsets(frame: Any) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


TIMES = ("--from", "1970-01-01T00:10:00", "--until", "1970-01-01T02:10:05+02:00")


@pytest.mark.parametrize("kind", ["archive", "parquet"])
def test_the_same_messages_come_from_an_archive_and_from_parquet(
    spark: Any, folder: Path, tmp_path: Path, kind: str
) -> None:
    from fanlight_spark.jobs import command

    at = str(folder)
    if kind == "parquet":
        command.messages(spark, asked(at, "--out", "x")).write.parquet(str(tmp_path / "all"))
        at = str(tmp_path / "all")
    frame = command.messages(spark, asked(at, "--out", "x", *TIMES), "offset", "topic")
    assert frame.columns == ["offset", "topic"]
    assert offsets(frame) == list(range(600, 605))
    only = asked(at, "--out", "x", "--filter", "+/AAPL/2", "--syntax", "mqtt", "--from", "1970-01-01T00:16:30Z")
    assert offsets(command.messages(spark, only, "offset")) == [992, 995, 998]


def test_parquet_that_is_no_messages_is_refused(spark: Any, tmp_path: Path) -> None:
    from fanlight_spark.jobs import command

    spark.range(3).write.parquet(str(tmp_path / "other"))
    with pytest.raises(ValueError, match=r"neither an archive nor messages of one; as Parquet it lacks syntax, topic$"):
        command.messages(spark, asked(str(tmp_path / "other"), "--out", "x", "--filter", "a"), "topic")
    with pytest.raises(ValueError, match="not from Parquet"):
        command.stream(spark, asked(str(tmp_path / "other"), "--out", "x"))


@pytest.mark.parametrize(("most", "found", "code"), [("3", 3, 0), ("3", 4, 1), ("0", 0, 0), (None, 9, 0)])
def test_the_exit_code_is_1_for_more_than_may_be_found(most: str | None, found: int, code: int) -> None:
    require.spark()
    from fanlight_spark.jobs import command

    parser = command.parser("some", "", "")
    command.add_threshold(parser, "that are wrong")
    options = parser.parse_args(["archive", "--out", "x", *(("--fail-above", most) if most else ())])
    assert command.code(options, found) == code


def test_a_fault_is_a_line_and_an_exit_code(spark: Any, folder: Path, capsys: Any, tmp_path: Path) -> None:
    from fanlight_spark.jobs import command

    def work(spark: Any, options: argparse.Namespace) -> None:
        command.messages(spark, options).count()

    parser = command.parser("some", "About.", "example")
    for words, said in [
        ([str(tmp_path / "none")], "PATH_NOT_FOUND"),
        ([str(folder), "--filter", "a/#/b", "--syntax", "mqtt"], "InvalidFilter: "),
        ([str(folder / "manifest.jsonl")], "Could not read footer"),  # an error of Java that PySpark has no name for
    ]:
        assert command.run(parser, work, [*words, "--out", str(tmp_path / "out")], spark) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("python -m fanlight_spark.jobs.some: ")
        assert said in line
    assert command.run(parser, work, [str(folder), "--out", str(tmp_path / "out")], spark) == 0
    among = f"{tmp_path}/"
    for words in ([str(folder), "--out", str(folder)], [among, "--out", among], ["x", "--out", str(folder)]):
        assert command.run(parser, work, words, spark) == 2
        assert "take another folder for results" in capsys.readouterr().err


def test_an_interrupt_ends_a_job_without_a_traceback(spark: Any, tmp_path: Path) -> None:
    from fanlight_spark.jobs import command

    def work(spark: Any, options: argparse.Namespace) -> None:
        raise KeyboardInterrupt

    parser = command.parser("some", "About.", "example")
    assert command.run(parser, work, ["x", "--out", str(tmp_path)], spark) == command.INTERRUPTED


def test_numbers_that_make_no_sense_are_refused(capsys: Any) -> None:
    for words in (["--cores", "0"], ["--cores", "-2"], ["--cores", "two"]):
        with pytest.raises(SystemExit):
            asked("a", "--out", "x", *words)
        assert "--cores" in capsys.readouterr().err


def test_results_replace_those_of_an_earlier_run_and_are_computed_once(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    from fanlight_spark.jobs import command

    for rows in (5, 3):
        frame = spark.range(rows).withColumn("drawn", F.rand())
        kept = command.write(frame, tmp_path / "result")
        assert kept.collect() == kept.collect()
        assert kept.count() == rows


def test_times_without_a_zone_are_utc() -> None:
    options = asked("a", "--out", "x", "--from", "2026-11-21", "--until", "2026-11-21T20:00:00+02:00")
    assert options.since == datetime(2026, 11, 21, tzinfo=UTC)
    assert options.until == datetime(2026, 11, 21, 18, tzinfo=UTC)
    with pytest.raises(SystemExit):
        asked("a", "--out", "x", "--from", "yesterday")


def test_a_report_says_what_it_is_about() -> None:
    from fanlight_spark.jobs import command

    options = asked("archive", "--out", "x", "--from", "2026-11-21", "--filter", "stock.#")
    assert command.described(options) == "archive, topics stock.# (amqp), from 2026-11-21 00:00:00 UTC"


def test_a_report_does_not_show_the_password_of_a_broker() -> None:
    from fanlight_spark.jobs import command

    shown = command.described(asked("fanlight://ann:secret@broker:7420", "--out", "x"))
    assert "secret" not in shown
    assert "broker:7420" in shown


def test_a_stream_of_an_archive_begins_where_it_is_told_to(spark: Any, folder: Path, tmp_path: Path) -> None:
    from fanlight_spark.jobs import command

    fill(folder, 1000, 10)
    with pytest.raises(ValueError, match="--until is not for a stream"):
        command.stream(spark, asked(str(folder), "--out", "x", *TIMES))
    late = asked(str(folder), "--out", "x", "--filter", "#.1", *TIMES[:2])
    frame = command.stream(spark, late, "offset", "topic")
    query = (
        frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start(str(tmp_path / "out"))
    )  # fmt: skip
    query.awaitTermination()
    assert offsets(spark.read.parquet(str(tmp_path / "out"))) == list(range(601, 1010, 3))
