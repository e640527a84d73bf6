"""`python -m fanlight_bench pipeline` as far as it needs no Spark; tests/pipeline has the rest."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fanlight_bench.pipeline import messages, plots, tables
from fanlight_bench.pipeline.__main__ import BENCHES, MISSING, OK, WRONG, main, renewed
from fanlight_bench.pipeline.case import Bench, PipelineCase, PipelineGroup, measured, rates

ROOT = Path(__file__).resolve().parent.parent.parent


def test_every_bench_of_the_folder_is_found_under_the_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    files = (ROOT / "bench" / "fanlight_bench" / "pipeline").glob("*.py")
    assert {path.stem for path in files if "\ndef groups(" in path.read_text(encoding="utf-8")} == set(BENCHES)
    assert main(["--list"]) == OK
    assert len(capsys.readouterr().out.splitlines()) == len(BENCHES)


def test_what_archiving_costs_is_measured_without_spark(tmp_path: Path) -> None:
    pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
    command = [sys.executable, "-m", "fanlight_bench", "pipeline"]
    command += ["--quick", "--only", "archived", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, cwd=ROOT)
    assert done.returncode == OK, done.stderr
    (group,) = json.loads(done.stdout)["benches"]["archived"].values()
    sizes = {kind: values["bytes a quote"] for kind, values in group["facts"].items() if "bytes a quote" in values}
    assert sizes["zstd"] < sizes["lz4"] < sizes["none"]
    assert all(group["facts"][kind]["archived/s"] > 0 for kind in sizes)


def test_filters_are_different_and_the_same_each_time() -> None:
    names = messages.topics()
    assert len(names) == len(set(names)) > 10_000
    filters = messages.filters(names, 20_000)
    assert len(set(filters)) == 20_000
    assert filters[:500] == messages.filters(names, 500)
    assert {"+", "#"} <= {word for filter in filters for word in filter.split("/")}


def test_the_cases_of_a_group_take_turns_and_a_ratio_is_of_neighbours(tmp_path: Path) -> None:
    done: list[str] = []
    one = PipelineCase("one", 10, lambda: done.append("one"), ("other",))
    cases = [one, PipelineCase("other", 10, lambda: done.append("other"))]
    found = measured(PipelineGroup("two", cases), Bench(tmp_path, turns=3, warm=1))
    assert done == ["one", "other"] * 4
    assert set(found["cases"]["one"]["beside"]) == {"other"}
    with pytest.raises(ValueError, match="which is not measured"):
        measured(PipelineGroup("one", cases[:1]), Bench(tmp_path))
    assert rates([100.0, 200.0, 300.0])["rows_per_second"] == 200


def test_what_is_missing_or_wrong_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fanlight_bench.pipeline.__main__.find_spec", lambda name: None)
    assert main(["--only", "source"]) == MISSING
    assert "make spark" in capsys.readouterr().err
    assert main(["--only", "teleport"]) == WRONG


def published() -> Mapping[str, Any]:
    """The committed results."""
    report: dict[str, Any] = json.loads(tables.RESULTS.read_text(encoding="utf-8"))
    return report


def test_the_page_says_what_the_committed_results_say() -> None:
    text = tables.DOCUMENT.read_text(encoding="utf-8")
    assert tables.rewritten(text, published()) == text
    assert set(published()["benches"]) == set(BENCHES)
    assert "Not measured" not in text


def test_what_the_page_says_until_a_bench_is_measured_goes_with_it() -> None:
    live, memory = (f"<!-- until: {name} -->\nbusy\n<!-- measured -->\n" for name in ("live", "memory"))
    text = f"a\n\n{live}\nb\n{memory}c\n"
    assert tables.without_interim(text, ()) == text
    assert tables.without_interim(text, ("live",)) == f"a\n\nb\n{memory}c\n"
    assert tables.without_interim(text, BENCHES) == "a\n\nb\nc\n"
    page = tables.without_interim(tables.DOCUMENT.read_text(encoding="utf-8"), BENCHES)
    assert "busy" not in page
    assert "that run" not in page


def test_the_chart_of_the_page_shows_every_way_that_was_measured() -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install --group bench")
    ((name, chart),) = plots.plots(published()).items()
    assert f"]({name})" in tables.DOCUMENT.read_text(encoding="utf-8")
    ways = {way for group in published()["benches"]["matching"].values() for way in group["cases"]}
    assert all(f">{way}<".encode() in chart for way in ways - {"few_topics=False"})


def test_some_benches_of_a_later_run_take_the_place_of_those_that_were_published() -> None:
    later = {"rows": 5, "turns": 1, "load": 9.0, "benches": {"live": {}}}
    both = renewed(dict(published()), later)
    assert both["benches"] == {**published()["benches"], "live": {}}
    assert both["renewed"]["live"] == {"rows": 5, "turns": 1, "load": 9.0}
    assert "live (5 messages, 1 turns, on a machine with other work)" in " ".join(tables._machine(both))
    assert renewed(both, {**later, "load": 0.1})["renewed"]["live"]["load"] == 0.1
