"""Publishing, the bars and the regression report, run once and small: that they run and say all they should."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fanlight_bench import reporting
from fanlight_matchers import against, bars, collect, document
from fanlight_matchers.bars import Bar, Figured
from fanlight_matchers.registry import CONTENDERS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fanlight_matchers", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick --publish: results, document, plots."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "matching.md").write_text(document.DOCUMENT.read_text(encoding="utf-8"), encoding="utf-8")
    done = run("--publish", "--quick", "--results", str(folder / "results.json"), "--docs", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def report(published: Path) -> collect.Report:
    return against.load(published / "results.json")


def test_a_report_says_whether_the_measured_source_was_changed(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True)

    assert collect.commit(tmp_path / "absent") == ""
    git("init")
    for name in ("matchcore", "docs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text("as committed", encoding="utf-8")
    git("add", "--all")
    git("commit", "--message", "first")
    clean = collect.commit(tmp_path)
    assert clean.isalnum()
    (tmp_path / "docs" / "text").write_text("changed", encoding="utf-8")
    assert collect.commit(tmp_path) == clean
    (tmp_path / "matchcore" / "text").write_text("changed", encoding="utf-8")
    assert collect.commit(tmp_path) == f"{clean}+"


def test_publishing_writes_results_and_the_whole_document(published: Path, report: collect.Report) -> None:
    text = (published / "matching.md").read_text(encoding="utf-8")
    assert document.rewritten(text, report) == text
    assert report["quick"]
    for match in reporting.BLOCK.finditer(text):
        assert match[0].count("\n") > 1, f"{match[2]} is empty"


def test_every_contender_is_in_every_workload_of_its_plan(report: collect.Report) -> None:
    rows = {(row["workload"], row["contender"]): row for row in report["workloads"]}
    for asked in collect.PUBLISHED:
        for name in set(asked.contenders) & set(CONTENDERS):
            row = rows[collect.name_of(asked.workload, asked.filters), name]
            assert row.get("reason") or row["call"] > 0


def test_every_bar_is_measured_by_publishing(report: collect.Report) -> None:
    missing = [bar for bar in bars.bars(report) if bar.reached is None]
    assert {bar.what for bar in missing} <= {
        f"as fast as {name}, from Python" for name in ("paho", "hyperscan") if name not in CONTENDERS
    }


def test_what_the_bars_need_is_what_they_look_at(report: collect.Report) -> None:
    """A report of NEEDED's workloads and contenders alone leaves no bar out that one of everything has."""
    wanted = {collect.name_of(asked.workload, asked.filters): asked.contenders for asked in collect.NEEDED}
    rows = [row for row in report["workloads"] if row["contender"] in wanted.get(row["workload"], ())]
    assert bars.bars({**report, "workloads": rows}) == bars.bars(report)


def test_a_bar_is_met_on_its_own_side_only() -> None:
    assert Bar("W1", "cold", 60, True, "ns", 59.0).met
    assert not Bar("W1", "cold", 60, True, "ns", 61.0).met
    assert Bar("W1", "as fast as trie-I", 2, False, "x", 2.1).met
    assert not Bar("W1", "as fast as trie-I", 2, False, "x", 1.9).met
    assert Bar("W1", "cold", 60, True, "ns", None).met is None


def test_the_plots_are_the_same_each_time_and_have_no_date(published: Path, report: collect.Report) -> None:
    pytest.importorskip("matplotlib", reason="the plots need it")
    from fanlight_matchers import plots

    drawn = plots.plots(report)
    assert set(drawn) == {"matching-growth.svg", "matching-latency.svg", "matching-memory.svg"}
    for name, svg in drawn.items():
        assert svg == (published / name).read_bytes()
        assert b"dc:date" not in svg
        assert b"fanlight" in svg
        assert len(svg) < 60_000


def figured(**ours: float) -> Figured:
    """A flat trie of 100 ns, and ours."""
    rows: list[dict[str, Any]] = [
        {"workload": "W1 1k", "contender": "trie-I", "cold": 100.0, "hot": 100.0},
        {"workload": "W1 1k", "contender": "fanlight", **ours},
    ]
    return Figured({"workloads": rows})


def test_a_change_beyond_the_noise_of_the_turns_is_told_and_one_within_is_not() -> None:
    committed = figured(cold=50.0, hot=50.0, bytes=100.0)
    turns = [figured(cold=25.0, hot=hot, bytes=101.0) for hot in (40.0, 50.0, 60.0)]
    cold, hot, size = against.compared(committed, turns)
    assert (cold.verdict, hot.verdict, size.verdict) == ("better", "within noise", "WORSE")
    assert cold.change == pytest.approx(1.0)
    assert against.worst([cold, hot, size]) == pytest.approx(1 - 100 / 101)
    (worse, *_) = against.compared(committed, [figured(cold=100.0)])
    assert worse.verdict == "WORSE"
    assert worse.change == pytest.approx(-0.5)


def test_the_regression_report_is_a_report_and_fails_only_if_asked_to(published: Path, tmp_path: Path) -> None:
    report = against.load(published / "results.json")
    for row in report["workloads"]:
        if row["contender"] == "fanlight":
            row["cold"] = 0.001  # it was a million times as fast
    fast = tmp_path / "fast.json"
    fast.write_text(json.dumps(report), encoding="utf-8")
    done = run("--against", str(fast), "--quick")
    assert done.returncode == 0, done.stderr
    assert "WORSE" in done.stderr
    assert {one["workload"] for one in json.loads(done.stdout)["changes"]} == {
        collect.name_of(asked.workload, asked.filters) for asked in against.CORE
    }
    assert run("--against", str(fast), "--quick", "--fail-above", "50").returncode == 1


def test_results_that_are_not_there_are_said_to_be() -> None:
    done = run("--against", "no-such-file.json", "--quick")
    assert done.returncode == 2
    assert "no-such-file.json" in done.stderr
