"""What a query is told of messages that are gone or damaged: failOnDataLoss and onCorrupt."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Archive, Corrupt, Gone, Missing, Writer
from tests.archive.messages import batch
from tests.pipeline.conftest import fill
from tests.pipeline.test_stream import Query


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def damage_open_segment(folder: Path, number: int) -> None:
    """Of the open segment, the batch of this number."""
    with Archive(folder) as archive:
        assert archive._tail is not None
        flip(archive._tail.path, archive._tail.places[number].at + 400)


def damage_closed_segment(folder: Path, number: int) -> None:
    """Of the first segment, the batch of this number."""
    with Archive(folder) as archive:
        span = archive.spans[0]
        place = archive._segment(span).places[number]
        flip(folder / span.name, place.at + place.size - 20)


def values(query: Query) -> list[int]:
    return sorted(int(bytes(row.value)) for row in query.spark.read.parquet(str(query.work / "out")).collect())


def test_a_query_that_has_read_what_damage_takes_misses_nothing_of_what_comes(spark: Any, tmp_path: Path) -> None:
    """3,000 messages were read; one bit of the second batch flips, and the process is killed and started again."""
    folder = tmp_path / "archive"
    fill(folder, 0, 3_000, size=500)
    ahead = Query(spark, folder, tmp_path / "ahead")
    behind = Query(spark, folder, tmp_path / "behind", maxOffsetsPerTrigger=200)
    allowed = Query(spark, folder, tmp_path / "allowed", startingOffsets=200, failOnDataLoss="false")
    assert ahead.run() == [(0, 3_000)]
    damage_open_segment(folder, 1)
    writer = Writer(folder)
    assert (writer.recovered.cut[0].batches, writer.epoch, writer.end) == (4, 2, 3_000)
    for first in range(10_000, 13_000, 500):
        writer.append(batch(first, 500))
    writer.abandon()
    assert ahead.run() == [(3_000, 6_000)]
    assert values(ahead) == [*range(3_000), *range(10_000, 13_000)]
    with pytest.raises(Exception, match="messages 500 to 599 are gone: no segment has them"):
        behind.run()
    allowed.run()
    assert values(allowed) == [*range(200, 500), *range(10_000, 13_000)]


def test_a_query_that_has_read_the_damaged_last_batch_is_told(spark: Any, tmp_path: Path) -> None:
    """Nobody knows where it ended, so its offsets are given again, in another epoch."""
    folder = tmp_path / "archive"
    fill(folder, 0, 1_000)
    strict = Query(spark, folder, tmp_path / "strict")
    allowed = Query(spark, folder, tmp_path / "allowed", failOnDataLoss="false")
    assert strict.run() == allowed.run() == [(0, 1_000)]
    damage_open_segment(folder, 9)
    fill(folder, 5_000, 300)
    with pytest.raises(Exception, match="messages 900 to 999 are gone"):
        strict.run()
    assert allowed.run() == [(1_000, 1_200)]
    assert values(allowed) == [*range(1_000), *range(5_000, 5_300)]


def part_of(folder: Path, **options: object) -> tuple[Any, Any]:
    """The settings of a source, and one part with all of the archive."""
    from fanlight_spark.positions import position_at
    from fanlight_spark.source import COLUMNS, Part, SourceSettings

    given = {"path": str(folder), **{name: str(value) for name, value in options.items()}}
    settings = SourceSettings.of(given, COLUMNS)
    with Archive(folder) as archive:
        return settings, Part(position_at(archive, archive.start), position_at(archive, archive.end))


def offsets_of(batches: Any) -> list[int]:
    return [offset for one in batches for offset in one.column("offset").to_pylist()]


@pytest.mark.parametrize("fail", [True, False])
def test_retention_in_the_middle_of_a_part_is_an_error_unless_loss_is_allowed(
    folder: Path, fail: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Segments of 400, 400 and 200 messages in batches of 100; two are removed when one batch was read."""
    settings, part = part_of(folder, failOnDataLoss=str(fail).lower())
    rows = settings.rows_of(part)
    assert offsets_of([next(rows)]) == list(range(100))
    writer = Writer(folder)
    writer.remove_old(since=800 * 1_000_000)
    writer.abandon()
    if fail:
        with pytest.raises(Gone, match="messages 400 to 799 are gone"):
            list(rows)
        return
    with caplog.at_level(logging.WARNING):
        assert offsets_of(rows) == [*range(100, 400), *range(800, 1_000)]  # what is open is read to its end
    assert "left out: 400 messages from offset 400 on" in caplog.text


@pytest.mark.parametrize(
    ("options", "skips"),
    [
        ({}, False), ({"failOnDataLoss": "false"}, True), ({"onCorrupt": "skip"}, True),
        ({"failOnDataLoss": "false", "onCorrupt": "fail"}, False),
    ],
)  # fmt: skip
def test_a_damaged_batch_is_skipped_where_loss_is_allowed_and_the_rest_is_read(
    folder: Path, options: dict[str, str], skips: bool, caplog: pytest.LogCaptureFixture
) -> None:
    damage_closed_segment(folder, 2)
    settings, part = part_of(folder, **options)
    if not skips:
        with pytest.raises(Corrupt, match=r"00000000000000000000\.arrows"):
            list(settings.rows_of(part))
        return
    with caplog.at_level(logging.WARNING):
        assert offsets_of(settings.rows_of(part)) == [*range(200), *range(300, 1_000)]
    assert "left out: 100 messages from offset 200 on" in caplog.text


def test_in_spark_a_damaged_batch_is_an_error_or_left_out(spark: Any, folder: Path) -> None:
    damage_closed_segment(folder, 2)
    reader = spark.read.format("fanlight")
    with pytest.raises(Exception, match="is not what was written there"):
        reader.load(str(folder)).collect()
    assert reader.option("onCorrupt", "skip").load(str(folder)).count() == 900


def test_compact_writes_down_what_it_left_out(spark: Any, folder: Path, tmp_path: Path, capsys: Any) -> None:
    from fanlight_spark.jobs import compact

    damage_closed_segment(folder, 2)
    out = tmp_path / "out"
    line = [str(folder), "--out", str(out), "--messages-max", "400"]
    assert compact.main(line, spark) == 2
    assert "is not what was written there" in capsys.readouterr().err
    assert compact.main([*line, "--allow-loss"], spark) == 0
    assert "offsets 0 to 399: 300 messages" in (told := capsys.readouterr().out)
    assert "; 100 lost" in told
    sets = json.loads((out / "manifest.json").read_text())["sets"]
    assert [(one["first"], one["end"], one["messages"]) for one in sets] == [(0, 400, 300), (400, 800, 400)]
    assert [[(lost["first"], lost["end"]) for lost in one["lost"]] for one in sets] == [[(200, 300)], []]
    assert "What was lost" in (out / "report.html").read_text()


def test_compact_writes_down_what_was_gone_before_a_set(spark: Any, folder: Path, tmp_path: Path) -> None:
    from fanlight_spark.jobs import compact

    compact.compact(spark, folder, tmp_path, up_to=100)
    writer = Writer(folder)
    writer.append(batch(1000, 10))
    writer.remove_old(since=1000 * 1_000_000)
    writer.close()
    (made,) = compact.compact(spark, folder, tmp_path, allow_loss=True)
    assert [(lost["first"], lost["end"]) for lost in made.lost] == [(100, 1_000)]


def test_what_a_segment_should_have_and_does_not_is_an_error_of_a_batch(spark: Any, folder: Path) -> None:
    (folder / "00000000000000000400.arrows").unlink()
    reader = spark.read.format("fanlight")
    with pytest.raises(Exception, match="messages 400 to 799 are gone"):
        reader.load(str(folder)).collect()
    Writer(folder).close()
    with Archive(folder) as archive, pytest.raises(Missing):
        list(archive.read())
    with pytest.raises(Exception, match="messages 400 to 799 are gone: no segment has them"):
        reader.load(str(folder)).collect()
    assert reader.option("failOnDataLoss", "false").load(str(folder)).count() == 600
