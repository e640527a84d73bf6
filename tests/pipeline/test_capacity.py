"""The job that says how far brokers reach, over a small archive, beside numbers by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.test_recipients import written
from tests.without_spark.test_capacity import row


def test_it_says_what_is_reached_first_and_how_many_nodes_are_enough(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import capacity

    # A message a second for two minutes and a half; two copies of each.
    folder = written(tmp_path / "archive", *((f"a/{n % 3}", f"p{n % 2}", {}) for n in range(150)))
    snapshot, costs, sizes, out = (tmp_path / name for name in ("now.jsonl", "costs.json", "sizes.json", "out"))
    snapshot.write_text("\n".join(json.dumps({"client": name, "filter": "a.#"}) for name in ("x", "y")))
    # 10 ms a message, 5 ms a copy.
    rows = [row(1, 0, 15_000), row(9, 0, 55_000), row(1, 1000, 17_000)]
    costs.write_text(json.dumps({"results": rows}))
    sizes.write_text(json.dumps({"bytes": {
        "idle connection": {"each": 1000}, "session that is away, with a subscription": {"each": 2000}}}))  # fmt: skip
    arguments = [
        str(folder), "--subscriptions", str(snapshot), "--costs", str(costs), "--sizes", str(sizes), "--out", str(out),
        "--memory", str((50 << 20) + 4000 * 150 + 2000 * 2 * 150), "--scale", "1", "--scale", "200",
        "--fail-above", "5", "--zone", "America/New_York",
    ]  # fmt: skip
    assert capacity.main(arguments, spark) == 1  # 6 nodes
    said = capsys.readouterr().out
    assert "1x: one node is enough, 2.0% of a processor at most" in said
    # At 200x: 4 clients and 2 subscriptions are 1.6 MB, of 1.2; 4 processors are busy, of 0.8 that may be: 6 nodes.
    assert "200x: 6 nodes are enough; of one the memory is reached first, at once" in said
    points = spark.read.parquet(str(out / "over_time")).where("scale = 1").orderBy("start").collect()
    assert [(each.start.minute, each.start.second) for each in points] == [(0, 0), (1, 0), (2, 0)]
    assert [each.stored for each in points] == [120, 240, 300]  # {} is two bytes
    (one, many) = spark.read.parquet(str(out / "scales")).orderBy("scale").collect()
    assert (one.nodes, one.bound, many.nodes, many.bound, many.first) == (1, None, 6, "memory", None)
    hours = {(row.scale, row.hour): row for row in spark.read.parquet(str(out / "hours")).collect()}
    assert len(hours) == 48
    evening = hours[1, 19]  # 1970 began at 19:00 there: three minutes of two, of which two and a half have messages
    assert (evening.hours, evening.busiest) == (0.05, one.busiest)
    assert evening.busy == pytest.approx(0.02 * 150 / 180, rel=1e-3)  # and what two bytes cost
    assert hours[200, 0].hours == hours[200, 0].busy == 0
    page = (out / "report.html").read_text()
    assert "6 nodes are enough" in page
    assert "By hour of day in America/New_York" in page
    capsys.readouterr()
    assert capacity.main([each for each in arguments if each not in ("--sizes", str(sizes))], spark) == 2
    assert "--memory needs --sizes" in capsys.readouterr().err
