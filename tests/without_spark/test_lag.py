"""How much a batch of a stream reads, how far a stream is behind, and the warning before retention overtakes it."""

import json
import logging
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fanlight_archive import Archive, Writer
from fanlight_spark.admission import Admission, Limits
from fanlight_spark.lag import Lag, Watch, is_near, lags, report
from tests.archive.messages import batch
from tests.pipeline.conftest import fill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """1,000 messages in ten batches and three segments (400, 400, 200), the last of them open."""
    fill(tmp_path / "archive", 0, 1_000, roll=400)
    return tmp_path / "archive"


def batch_sizes(archive: Archive) -> list[tuple[int, int, int]]:
    """(first offset, end, bytes) of each batch: what a reader of the files counts."""
    found = [place for span in archive.spans for place in archive._segment(span).places]
    assert archive._tail is not None
    return [(place.first, place.end, place.size) for place in [*found, *archive._tail.places]]


def test_a_range_of_whole_batches_ends_where_its_bytes_do(folder: Path) -> None:
    """Against a walk over all batches, from and to anywhere, for many limits."""
    some = random.Random(20)
    with Archive(folder) as archive:
        sizes = batch_sizes(archive)
        whole = {span.first: span for span in archive.spans}
        for _ in range(100):
            first, limit = some.randrange(1_000), some.choice([1, 5_000, 20_000, 60_000, 10**9])
            end = some.randrange(first + 1, 1_001)
            left, reached, at = limit, first, 0
            while at < len(sizes) and sizes[at][0] < end:
                begin, stop, size = sizes[at]
                span = whole.get(begin)
                if span is not None and begin >= first and span.size <= left:  # a whole segment, by the manifest
                    stop, size = span.end, span.size
                if stop > first:
                    if size > left and reached > first:
                        break
                    left, reached = left - size, min(stop, end)
                at += sum(1 for each in sizes[at:] if each[0] < stop)
            assert archive.offset_after(first, end, limit) == reached
        assert archive.offset_after(0, 1_000, 1) == 100  # at least a batch
        assert archive.offset_after(0, 1_000, 10**9) == 1_000
        assert archive.size_between(0, 1_000) == sum(span.size for span in archive.spans) + sum(
            size for first, _, size in sizes if first >= 800
        )
        assert archive.size_between(0, 200) == round(archive.spans[0].size / 2)


def test_a_damaged_segment_is_one_piece(folder: Path) -> None:
    (folder / "00000000000000000400.arrows").unlink()
    with Archive(folder) as archive:
        assert archive.offset_after(350, 1_000, 1) == 400
        assert archive.offset_after(400, 1_000, 1) == 800


def test_limits_hold_together(folder: Path) -> None:
    limits = Limits.of({"maxOffsetsPerTrigger": "250", "maxBytesPerTrigger": "1k"})
    with Archive(folder) as archive:
        assert Admission(limits).end(archive, 0, 1_000, waits=True) == 100
        assert Admission(Limits.of({"maxOffsetsPerTrigger": "50"})).end(archive, 0, 1_000, waits=True) == 50
        assert Admission(Limits()).end(archive, 0, 1_000, waits=True) == 1_000


def test_too_few_messages_wait_for_more_and_no_longer_than_the_delay(folder: Path) -> None:
    now = [100.0]
    admission = Admission(Limits.of({"minOffsetsPerTrigger": "300", "maxTriggerDelay": "30s"}), lambda: now[0])
    with Archive(folder) as archive:
        assert admission.end(archive, 0, 299, waits=True) == 0
        assert admission.end(archive, 0, 300, waits=True) == 300
        now[0] = 129.0
        assert admission.end(archive, 300, 310, waits=True) == 300
        assert admission.end(archive, 300, 310, waits=False) == 310  # no more will come
        now[0] = 158.9
        assert admission.end(archive, 310, 320, waits=True) == 310
        now[0] = 159.0
        assert admission.end(archive, 310, 320, waits=True) == 320


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"maxBytesPerTrigger": "0"}, "a number of bytes, 1 or more"),
        ({"maxBytesPerTrigger": "1.5g"}, "a number of bytes"),
        ({"maxTriggerDelay": "30s"}, "give both"),
        ({"minOffsetsPerTrigger": "2", "maxTriggerDelay": "30"}, "a time with its unit"),
        ({"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"}, "is above"),
    ],
)
def test_limits_that_are_none_are_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Limits.of(options)


def progress(*latest: Any) -> Any:
    return SimpleNamespace(sources=[SimpleNamespace(latestOffset=one) for one in latest])


def test_a_report_says_what_is_behind_the_batch(folder: Path) -> None:
    with Archive(folder) as archive:
        found = report(archive, 800, False)
        open_bytes = sum(size for first, _, size in batch_sizes(archive) if first >= 800)
        assert (found["offset"], found["offsetsBehind"], found["bytesBehind"]) == (1_000, 200, open_bytes)
        assert list(lags(progress(json.dumps(found), "null", None, '{"files": 3}'))) == [Lag(200, open_bytes, False)]


def test_a_reader_in_what_retention_removes_next_is_warned_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Segments of 100: retention has begun, so what is read from the oldest two is warned of."""
    fill(folder, 1_000, 1_000, roll=100)
    writer = Writer(folder)
    writer.remove_old(since=1_000 * 1_000_000)
    writer.abandon()
    with Archive(folder) as archive, caplog.at_level(logging.WARNING):
        assert (archive.start, archive.oldest_end) == (1_000, 1_100)
        assert [is_near(archive, first) for first in (900, 1_000, 1_199, 1_200, 2_000)] == [True] * 3 + [False] * 2
        watch = Watch()
        assert [watch.look(archive, first) for first in (1_050, 1_150, 1_250, 1_060)] == [True, True, False, True]
    assert caplog.text.count("retention will soon overtake this query") == 2
    assert "it reads from offset 1050 on, 950 behind the newest; the archive begins at 1000" in caplog.text


def test_a_reader_of_an_archive_that_retention_has_not_touched_is_not_warned(folder: Path, tmp_path: Path) -> None:
    with Archive(folder) as archive:
        assert not is_near(archive, 0)
    writer = Writer(tmp_path / "open")
    writer.append(batch(0, 10))
    with Archive(tmp_path / "open") as archive:
        assert archive.oldest_end is None
    writer.close()
