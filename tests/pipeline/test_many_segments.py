"""An archive of 1,000 small segments, some of them damaged or gone: read at once and as a stream."""

from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Archive
from tests.pipeline.conftest import fill
from tests.pipeline.test_loss import flip
from tests.pipeline.test_stream import Query

SEGMENTS = 1_000


def test_a_thousand_segments_are_read_but_for_those_that_are_damaged_or_gone(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    fill(folder, 0, 2 * SEGMENTS, size=2, roll=2)
    with Archive(folder) as archive:
        assert len(archive.spans) == SEGMENTS - 1  # and the open one
        gone, damaged, cut = (folder / archive.spans[number].name for number in (10, 500, 900))
    whole = spark.read.format("fanlight").load(str(folder))
    query = Query(spark, folder, tmp_path, maxOffsetsPerTrigger=1_500, failOnDataLoss="false")
    assert whole.selectExpr("count(*)", "sum(offset)").collect()[0] == (2_000, 1_999_000)

    gone.unlink()
    flip(damaged, damaged.stat().st_size - 30)
    cut.write_bytes(cut.read_bytes()[:-100])
    with pytest.raises(Exception, match="messages 20 to 21 are gone"):
        whole.count()
    left = [offset for offset in range(2_000) if offset // 2 not in (10, 500, 900)]
    assert query.run() == [(0, 1_500), (1_500, 2_000)]
    assert query.offsets() == left
