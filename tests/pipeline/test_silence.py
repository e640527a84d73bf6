"""`silence` beside plain Python, over a real afternoon of buses in which faults were planted."""

import csv
import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, Writer
from tests import require
from tests.archive.messages import batch
from tests.pipeline.history_oracle import SECOND, Asked, expected

ROWS = 6_000
MINUTE = 60 * SECOND


def micros(at: datetime) -> int:
    return round(at.timestamp()) * SECOND


def positions() -> list[tuple[int, str, bytes]]:
    """(microseconds, topic, payload), and from 17:35 on some of them as they should not be."""
    path = require.data("transit") / "austin_vehicles_2017-04-18.csv.gz"
    with gzip.open(path, "rt", newline="") as lines:
        rows = [row for row, _ in zip(csv.DictReader(lines), range(ROWS), strict=False)]
    faulty = micros(datetime(2017, 4, 18, 22, 35, tzinfo=UTC))  # 17:35 in Austin
    made = []
    for row in rows:
        at = micros(datetime.fromisoformat(row["timestamp"]))
        route, payload = row["route_id"], json.dumps(row).encode()
        if route == "300" and faulty <= at < faulty + 6 * MINUTE:
            continue  # it falls silent, and comes back
        if at >= faulty and route == "7":
            made += [(at, f"transit/austin/7/{row['vehicle_id']}", payload)] * 8
        if at >= faulty and route == "1":
            payload *= 2
        name = "new" if at >= faulty and row["vehicle_id"] == "2378" else row["vehicle_id"]
        made.append((at, f"transit/austin/{route}/{name}", payload))
    return sorted(made)


def written(folder: Path, rows: list[tuple[int, str, bytes]]) -> Path:
    told = batch(0, len(rows)).to_pydict()
    told["timestamp"], told["topic"], told["value"] = (list(column) for column in zip(*rows, strict=True))
    told["syntax"] = ["mqtt"] * len(rows)
    told["client"] = [topic.rsplit("/", 1)[1] for _, topic, _ in rows]
    writer = Writer(folder)
    for part in pa.Table.from_pydict(told, schema=MESSAGE).to_batches(max_chunksize=2_000):
        writer.append(part)
    writer.close()
    return folder


def test_what_is_found_is_what_plain_python_finds(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fanlight_spark.jobs import silence

    monkeypatch.chdir(tmp_path)  # the page says where messages came from, and is a picture of the documents

    rows = positions()
    end = rows[-1][0]
    out = tmp_path / "out"
    written(tmp_path / "archive", rows)
    line = ["archive", "--recent", "10 minutes", "--every", "1 minute", "--levels", "3", "--least", "8"]
    assert silence.main([*line, "--out", str(out), "--fail-above", "3"], spark) == 1
    said = capsys.readouterr().out
    asked = Asked(MINUTE, end - 10 * MINUTE, end, least=8)
    wanted = expected([(f"{topic.rsplit('/', 1)[0]}/#", at, len(value)) for at, topic, value in rows], asked)
    publishers = expected([(topic.rsplit("/", 1)[1], at, len(value)) for at, topic, value in rows], asked)
    whole = expected([("", at, len(value)) for at, _, value in rows], asked)
    found: dict[str, dict[str, set[Any]]] = {"topic": {}, "publisher": {}, "everything": {}}
    for row in spark.read.parquet(str(out / "findings")).collect():
        begin, until = (None if at is None else micros(at.replace(tzinfo=UTC)) for at in (row.begin, row.end))
        found[row.kind].setdefault(row.name, set()).add((row.what, begin, until))
    everything = {"": rates} if (rates := {one for one in whole.get("", ()) if one[0] == "rate"}) else {}
    assert found == {"topic": wanted, "publisher": publishers, "everything": everything}
    # What was planted is among it.
    assert "rate" in {what for what, _, _ in wanted["transit/austin/7/#"]}
    assert "size" in {what for what, _, _ in wanted["transit/austin/1/#"]}
    assert {what for what, _, _ in publishers["new"]} == {"new"}
    assert any(what == "silent" and until for what, _, until in wanted["transit/austin/300/#"])
    page = (out / "report.html").read_text()
    assert said.splitlines()[0] in page
    assert "outside their history" in said
    assert page.count('<figure class="data">') >= 3
    histories = spark.read.parquet(str(out / "histories"))
    assert histories.where("kind = 'topic'").agg({"messages": "sum"}).first()[0] == len(rows)
