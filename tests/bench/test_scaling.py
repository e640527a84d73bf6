"""`python -m fanlight_bench scaling`: the curves are measured, bounded, and their page says what the results say."""

import importlib.util
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.load import spelling
from fanlight_bench.load.run import run
from fanlight_bench.load.scenario import Background, Scenario
from fanlight_bench.scaling import curves, document
from fanlight_bench.scaling.__main__ import FAULTY, NO_SERVER, OK, WRONG, main
from fanlight_bench.scaling.curves import PROTOCOLS, QUICK, SIZES, points
from fanlight_bench.scaling.measure import Misrouted, ScalingPlan, TooFewFiles, allow_files, held, measure
from tests.conftest import TestBroker

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_quick_mode_measures_a_point_of_every_curve_in_every_protocol() -> None:
    command = [sys.executable, "-m", "fanlight_bench", "scaling", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert done.returncode == OK, done.stderr
    report = json.loads(done.stdout)
    assert report["left_out"] == []
    found = {(point["curve"], point["protocol"], point["series"]) for point in report["points"]}
    assert found == {
        (point.curve, point.protocol, series) for point in points(QUICK, list(PROTOCOLS)) for series in point.loads
    }
    for point in report["points"]:
        assert point["faults"] == {}
        assert point["messages_per_second"] > 0
        assert point["us_per_message"] > 0
        if point["curve"] == "filters":
            assert point["us_per_filter"] > 0


@pytest.mark.parametrize("size", [1_000, 300_000])
def test_the_filters_of_others_are_as_many_as_are_said_and_match_nothing(size: int) -> None:
    (point,) = points({"filters": [size]}, ["MQTT"])
    assert point.background is not None
    background = point.background.background
    assert background.subscriptions == size
    filters = set(spelling.filters(background.filters, size))
    assert len(filters) == size
    for load in point.loads.values():
        topics = [spelling.expand(load.topic, index) for index in range(load.topics)]
        audience = spelling.Audience(topics, [*background.filters, *load.filters])
        assert not any(audience.topics(filter) for filter in filters)
        assert all(audience.topics(filter) for filter in spelling.filters(load.filters, load.subscribers))


@pytest.mark.parametrize("size", SIZES["connections"])
def test_connections_are_as_many_as_are_said_whether_they_work_or_not(size: int) -> None:
    (point,) = points({"connections": [size]}, ["native"])
    for load in point.loads.values():
        assert load.publishers + load.subscribers + load.idle == size
        assert load.window == curves.UNDER_WAY * load.publishers
    assert point.connections == size


def test_something_that_comes_to_the_filters_of_others_is_seen() -> None:
    topic = "a/topic/of/theirs"
    theirs = Background(2, 1, ("a/topic/{i}/#", "a/+/of/theirs"))
    others = Scenario("others", "others", "nobody/publishes", publishers=0, subscribers=0, background=theirs)
    with TestBroker() as broker:
        for url in (broker.url, f"mqtt://127.0.0.1:{broker.mqtt_port}"):
            with pytest.raises(Misrouted, match="got something"), held(others, url, [broker.pid]):
                assert run(Scenario("load", "load", topic), url, duration=0.05, warmup=0.0).delivered


def test_what_would_not_be_over_in_time_is_left_out_and_said_to_be() -> None:
    told: list[str] = []
    report = measure(list(points(SIZES, ["native"])), ScalingPlan(limit=0.0), told.append)
    assert report["points"] == []
    assert len(report["left_out"]) == len(told) == sum(map(len, SIZES.values()))
    assert "left out" in told[0]
    page = document.rewritten("<!-- made: machine -->\n<!-- end -->", {**published(), **report})
    assert "1,000,000 filters, native" in page


def test_all_of_it_is_over_within_four_minutes_by_its_own_estimate() -> None:
    plan = ScalingPlan()
    assert plan.limit <= 240
    assert sum(map(plan.seconds, points(SIZES, list(PROTOCOLS)))) <= plan.limit


def test_too_few_file_descriptors_are_raised_or_the_error_says_how(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1_024, 4_096))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: raised.append(limits))
    allow_files(700)
    assert raised == []
    allow_files(3_000)
    assert raised == [(3_256, 4_096)]
    with pytest.raises(TooFewFiles, match="ulimit -Hn 15256"):
        allow_files(15_000)
    assert main(["--only", "connections", "--protocols", "MQTT"]) == NO_SERVER
    assert "15,256 file descriptors" in capsys.readouterr().err


def test_a_curve_a_size_or_a_protocol_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "queues"]) == WRONG
    assert "there are filters, subscribers, connections" in capsys.readouterr().err
    assert main(["--connections", "10"]) == WRONG
    assert "at least 110" in capsys.readouterr().err
    with pytest.raises(SystemExit) as wrong:
        main(["--protocols", "amqp"])
    assert wrong.value.code == WRONG


def test_a_load_with_a_fault_is_told_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = published()
    found: dict[str, Any] = {"points": report["points"], "left_out": []}
    monkeypatch.setattr("fanlight_bench.scaling.__main__.measure", lambda points, plan, tell: found)
    assert main(["--generator-cpu", "99999"]) == OK
    found["points"][0]["faults"] = {"lost": 3}
    assert main(["--generator-cpu", "99999"]) == FAULTY
    told = json.loads(capsys.readouterr().out.split("\n}\n")[1] + "}")
    assert told["points"][0]["faults"] == {"lost": 3}


def published() -> dict[str, Any]:
    """The committed results."""
    report: dict[str, Any] = json.loads(document.RESULTS.read_text(encoding="utf-8"))
    return report


def test_the_page_says_what_the_committed_results_say() -> None:
    text = document.DOCUMENT.read_text(encoding="utf-8")
    assert document.rewritten(text, published()) == text
    for curve in SIZES:
        rows = document.table(published(), curve)
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}
        assert all(any(row[1:]) for row in rows)


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib (group bench)")
def test_the_plots_are_made_for_light_and_dark_and_are_the_same_each_time() -> None:
    from fanlight_bench.scaling import plots

    drawn = plots.plots(published())
    assert set(drawn) == {f"scaling-{curve}.svg" for curve in SIZES}
    assert drawn == plots.plots(published())
    for name, picture in drawn.items():
        assert (ROOT / "docs" / name).exists()
        assert b"native" in picture
        assert b"#ffffff" not in picture
        assert b"#000000" not in picture


def test_results_are_published_into_the_files_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = published()
    found = {"points": report["points"], "left_out": []}
    monkeypatch.setattr("fanlight_bench.scaling.__main__.measure", lambda points, plan, tell: found)
    (tmp_path / "scaling.md").write_text("<!-- made: filters -->\nold\n<!-- end -->\nby hand\n")
    results = tmp_path / "of" / "today.json"
    places = ["--docs", str(tmp_path), "--results", str(results), "--generator-cpu", "99999"]
    assert main(["--publish", *places]) == OK
    assert json.loads(results.read_text())["points"] == report["points"]
    page = (tmp_path / "scaling.md").read_text()
    assert "| filters |" in page
    assert page.endswith("by hand\n")
    assert main(["--document", *places]) == OK
    assert "is as it was" in capsys.readouterr().err
