"""`headways`: over real buses beside plain Python, by stops by hand, and the ten lines of the documents."""

import contextlib
import csv
import gzip
import io
import json
import math
import re
import statistics
from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, Writer
from tests import require
from tests.archive.messages import batch
from tests.pipeline.notebooks import run_cells
from tests.pipeline.test_jobs import DOCS, block

ROUTES = ("801", "803", "7")
NUMBERS = ("speed", "latitude", "longitude")


def archived(folder: Path) -> Path:
    """What three routes published in the first hour of an afternoon, as docs/pipeline-jobs.md has it."""
    with gzip.open(require.data("transit") / "austin_vehicles_2017-04-18.csv.gz", "rt", newline="") as lines:
        rows = [row for row, _ in zip(csv.DictReader(lines), range(6_000), strict=False) if row["route_id"] in ROUTES]
    told = batch(0, len(rows)).to_pydict()
    told["topic"] = [f"transit/austin/{row['route_id']}/{row['vehicle_id']}" for row in rows]
    told["syntax"] = ["mqtt"] * len(rows)
    told["value"] = [
        json.dumps({**{name: row[name] for name in ("timestamp", "trip_id", "trip_headsign")},
                    **{name: float(row[name]) for name in NUMBERS}}).encode() for row in rows
    ]  # fmt: skip
    writer = Writer(folder)
    for part in pa.Table.from_pydict(told, schema=MESSAGE).to_batches():
        writer.append(part)
    writer.close()
    return folder


def page() -> str:
    return (DOCS / "pipeline-jobs.md").read_text(encoding="utf-8")


@pytest.fixture
def buses(tmp_path: Path) -> tuple[Path, Path]:
    """An archive, and the decoders of the documents."""
    decoders = tmp_path / "buses.toml"
    decoders.write_text(block(page(), "cat > buses.toml").partition("<<'END'\n")[2].partition("END\n")[0])
    return archived(tmp_path / "archive"), decoders


def test_headways_of_real_buses_are_those_of_plain_python_and_the_ten_lines_draw_them(
    spark: Any, tmp_path: Path, buses: tuple[Path, Path], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from fanlight_spark.jobs import headways

    archive, decoders = buses
    out = tmp_path / "out"
    monkeypatch.chdir(tmp_path)  # the page says where messages came from, and is a picture of the documents
    line = ["archive", "--decoders", str(decoders), "--route", "route", "--trip", "trip_id", "--direction",
            "trip_headsign", "--latitude", "latitude", "--longitude", "longitude",
            "--zone", "America/Chicago", "--step", "250"]  # fmt: skip
    assert headways.main([*line, "--out", str(out), "--fail-above", "5"], spark) == 1
    said = capsys.readouterr().out.splitlines()[0]
    rows = spark.read.parquet(str(out / "headways")).collect()
    assert {row.route for row in rows} == set(ROUTES)
    by_place: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.at, row.trip)):
        by_place[(row.route, row.direction, row.place)].append(row)
    of_hour: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    of_line: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (route, direction, _), own in by_place.items():
        assert own[0].headway is None
        for one, other in pairwise(own):
            headway = (other.at - one.at) / timedelta(seconds=1)
            assert math.isclose(other.headway, headway, abs_tol=1e-6)
            of_line[(route, direction)].append(headway)
            of_hour[(route, direction, (other.at - timedelta(hours=5)).hour)].append(headway)  # in April
    counts = {"bunched": 0, "gap": 0}
    for row in rows:
        same = of_hour[(row.route, row.direction, (row.at - timedelta(hours=5)).hour)]
        same = same if len(same) >= 5 else of_line[(row.route, row.direction)]
        usual = statistics.median(same) if same else None
        assert row.usual == usual or math.isclose(row.usual, usual or 0, rel_tol=1e-9)
        what = None
        if row.headway is not None and usual is not None:
            what = "bunched" if row.headway < usual / 4 else "gap" if row.headway > 2 * usual else None
        assert row.what == what
        if what is not None:
            counts[what] += 1
    total = sum(map(len, of_line.values()))
    assert total > 100
    assert min(counts.values()) > 3
    assert said.startswith(f"{100 * counts['bunched'] / total:.0f} % of {total:,} headways on 3 routes are bunched")
    for row in spark.read.parquet(str(out / "routes")).collect():
        own = of_line[(row.route, row.direction)]
        assert row.headways == len(own)
        assert math.isclose(row.wait, sum(one**2 for one in own) / sum(own) / 2, rel_tol=1e-9)
    assert (html := (out / "report.html").read_text()).count('<figure class="data">') >= 4
    assert said in html

    (lines,) = re.findall(r"```python\n(from pathlib import Path\n.*?headways\.html.*?)```", page(), re.DOTALL)
    assert len(lines.strip().splitlines()) <= 12
    lines = lines.replace("/var/lib/fanlight/archive", str(archive)).replace("buses.toml", str(decoders))
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(lines.replace("headways.html", str(tmp_path / "ten.html")), "ten lines", "exec"), {})
    assert '<figure class="data">' in (tmp_path / "ten.html").read_text()

    waits = run_cells("transit.ipynb", archive.parent)["waits"]
    assert {(row.route, row.direction) for row in waits} == set(of_line)
    assert '<figure class="data">' in (archive.parent / "waits.html").read_text()


def test_by_stops_the_first_position_of_a_trip_at_each_counts(spark: Any) -> None:
    from fanlight_spark.headways import VehicleColumns, headways, passes, positions, routes

    begin = datetime(2026, 11, 16, 8)
    told = [("a", "x", 0), ("a", "x", 1), ("a", "y", 5), ("b", "x", 10), ("b", "y", 16), ("c", "x", 11)]
    frame = spark.createDataFrame(
        [("1", trip, stop, begin + timedelta(minutes=minute)) for trip, stop, minute in [*told, (None, "x", 12)]],
        "line STRING, trip STRING, stop STRING, at TIMESTAMP",
    )
    found = headways(passes(positions(frame, VehicleColumns("line", "trip", time="at", stop="stop"))))
    rows = {(row.place, row.trip): (row.headway, row.usual, row.what) for row in found.collect()}
    usual = 600.0  # the median of 600, 60 and 660
    assert rows == {
        ("x", "a"): (None, usual, None), ("x", "b"): (600.0, usual, None), ("x", "c"): (60.0, usual, "bunched"),
        ("y", "a"): (None, usual, None), ("y", "b"): (660.0, usual, None),
    }  # fmt: skip
    (line,) = routes(found).collect()
    assert (line.trips, line.headways, line.bunched, line.gaps) == (3, 3, 1, 0)
    assert math.isclose(line.wait, (600**2 + 60**2 + 660**2) / (600 + 60 + 660) / 2)
    with pytest.raises(ValueError, match="no column stops"):
        positions(frame, VehicleColumns("line", "trip", time="at", stop="stops"))
    with pytest.raises(ValueError, match="latitude and longitude"):
        positions(frame, VehicleColumns("line", "trip", time="at"))
