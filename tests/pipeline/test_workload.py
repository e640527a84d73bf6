"""`workload`: what is learned from a made load is what it was made by.

What makes loads needs no Spark, and is tested in tests/without_spark/test_load_making.py.
"""

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fanlight_archive.arrow import pa
from fanlight_bench.load.kinds import recording
from fanlight_spark.jobs.load_making import make
from fanlight_spark.jobs.load_model import load
from tests.without_spark.models import MODEL, SIZES


def test_the_model_learned_from_a_made_load_gives_its_parameters_back(spark: Any, tmp_path: Path) -> None:
    """Within what 30,000 messages let one know; the tree and the publishers exactly."""
    from fanlight_spark.jobs.workload import learn, report

    begin = datetime(2026, 11, 21, 20, tzinfo=UTC)
    rows = list(make(MODEL, seed=3))
    columns = {
        "topic": [each.topic for each in rows],
        "syntax": ["mqtt"] * len(rows),
        "client": [each.publisher for each in rows],
        "timestamp": pa.array([begin + timedelta(seconds=each.at) for each in rows], pa.timestamp("us", tz="UTC")),
        "value": [b"x" * each.bytes for each in rows],
    }
    found = learn(spark.createDataFrame(pa.table(columns)).coalesce(2), names_max=4)
    assert found.messages == len(rows)
    assert found.rate == pytest.approx(500, rel=0.03)
    assert np.mean(found.rates[:30]) == pytest.approx(200, rel=0.05)
    assert np.mean(found.rates[30:60]) == pytest.approx(800, rel=0.05)
    assert found.gap_variation == pytest.approx(1.5, rel=0.1)
    assert found.left_out == 0
    plant, prices = found.kinds
    assert [(level.nodes, level.words) for level in plant.levels] == [(1, 1), (4, 4), (40, 10), (240, 6)]
    assert set(plant.levels[1].names) == {"north", "south", "east", "west"}
    assert [(level.nodes, level.words) for level in prices.levels] == [(1, 1), (50, 50)]
    assert plant.share == pytest.approx(0.75, abs=0.01)
    assert plant.exponent == pytest.approx(0.9, abs=0.05)
    assert prices.exponent == pytest.approx(0, abs=0.1)  # ranks of the sample itself: a little too large
    assert plant.sizes == pytest.approx(SIZES, rel=0.05)
    assert (prices.mean_bytes, set(prices.sizes)) == (64, {64})
    assert (plant.publishers, plant.publishers_per_topic) == (40, 1)
    assert (prices.publishers, prices.publishers_per_topic) == (2, 2)
    assert "plant" in report(found, "made").html()
    again = list(make(found, seed=4))
    assert len(again) == pytest.approx(len(rows), rel=0.03)
    assert len({each.topic for each in again}) == 290


def test_from_the_command_line_a_model_and_a_recording_and_from_the_model_another(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """1,000 messages on three topics, one a second."""
    from fanlight_spark.jobs import workload

    assert workload.main([str(folder), "--out", str(tmp_path / "out")], spark) == 0
    model = load(tmp_path / "out" / "model.json")
    assert (model.messages, model.seconds, len(model.kinds)) == (1_000, 999.0, 1)
    assert model.gap_variation == pytest.approx(0, abs=0.01)
    assert (tmp_path / "out" / "report.html").exists()
    made = recording.load(str(tmp_path / "out" / "recording.jsonl.gz"), 10_000)
    assert {each.topic for each in made} == {f"stock/AAPL/{number}" for number in range(3)}
    assert len(made) in (999, 1_000)
    assert workload.main([str(tmp_path / "out" / "model.json"), "--out", str(tmp_path / "ten"), "--scale", "3"]) == 0
    assert math.isclose(len(recording.load(str(tmp_path / "ten" / "recording.jsonl.gz"), 10_000)), 3_000, rel_tol=0.01)
    (tmp_path / "broken.json").write_text(json.dumps({"workload": 9}))
    assert workload.main([str(tmp_path / "broken.json"), "--out", str(tmp_path / "no")]) == 2
    assert not (tmp_path / "no").exists()
    with pytest.raises(SystemExit):
        workload.main([str(tmp_path / "out" / "model.json"), "--out", str(tmp_path / "no"), "--messages", "-1"])


def test_messages_that_do_not_tell_who_published_are_one_publishers(spark: Any) -> None:
    from fanlight_spark.jobs.workload import _seen

    rows = [("a.b", "amqp", datetime(2026, 11, 21, 20, tzinfo=UTC), b"x")] * 2
    frame = spark.createDataFrame(rows, "topic STRING, syntax STRING, timestamp TIMESTAMP, value BINARY")
    assert [row.client for row in _seen(frame).collect()] == ["", ""]
