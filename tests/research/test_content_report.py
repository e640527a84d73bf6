"""`python -m fanlight_content`: a quick run says all that the page shows, and the committed page is of its results."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fanlight_bench import reporting
from fanlight_content import __main__ as command
from fanlight_content import bars, collect, document, workloads
from fanlight_content.measure import Wrong, compare
from fanlight_content.registry import BASELINE, CONTENDERS
from fanlight_content.selections import Asked, Selections

TEXT = document.DOCUMENT.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick --publish: results, document, plots."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "selectors-speed.md").write_text(TEXT, encoding="utf-8")
    where = ["--results", str(folder / "results.json"), "--docs", str(folder)]
    assert command.main(["--publish", "--quick", *where]) == command.OK
    return folder


@pytest.fixture
def report(published: Path) -> collect.ContentReport:
    loaded: collect.ContentReport = json.loads((published / "results.json").read_text(encoding="utf-8"))
    return loaded


def test_publishing_writes_results_and_the_whole_page(published: Path, report: collect.ContentReport) -> None:
    text = (published / "selectors-speed.md").read_text(encoding="utf-8")
    assert report["quick"]
    assert text != TEXT
    assert document.rewritten(text, report) == text
    for match in reporting.BLOCK.finditer(text):
        assert match[0].count("\n") > 1, f"{match[2]} is empty"


def test_every_contender_of_the_plan_is_measured_and_stands_beside_the_baseline(report: collect.ContentReport) -> None:
    rows = {(row["workload"], row["contender"]): row for row in report["rows"]}
    assert set(rows) == {(asked.workload, name) for asked in collect.PLAN for name in asked.contenders}
    for row in rows.values():
        assert row["ns"] > 0
        assert row["ratio"] > 0
        assert row["bytes"] > 0
        assert row["insert_ns"] > 0


def test_every_bar_is_measured_by_publishing(report: collect.ContentReport) -> None:
    assert [bar.what for bar in bars.bars(report) if bar.reached is None] == []


def test_the_plots_are_the_same_each_time_and_have_no_date(published: Path, report: collect.ContentReport) -> None:
    pytest.importorskip("matplotlib", reason="the plots need it")
    from fanlight_content import plots

    for name, svg in plots.plots(report).items():
        assert svg == (published / name).read_bytes()
        assert b"dc:date" not in svg
        assert b"fanlight" in svg


def test_the_page_has_every_table_once_and_is_of_the_committed_results() -> None:
    assert sorted(match[2] for match in reporting.BLOCK.finditer(TEXT)) == sorted(document.TABLES)
    report = json.loads(collect.RESULTS.read_text(encoding="utf-8"))
    assert not report["quick"]
    assert document.rewritten(TEXT, report) == TEXT


def test_a_busy_machine_is_said_to_have_been_busy(report: collect.ContentReport) -> None:
    quiet = document.TABLES["machine"]({**report, "load": {"before": 0.1, "after": 1.0}})
    busy = document.TABLES["machine"]({**report, "load": {"before": 3.0, "after": 1.0}})
    assert "other programs" not in " ".join(quiet)
    assert "other programs" in " ".join(busy)


class Lying:
    """Finds nothing."""

    nbytes = 1

    def __init__(self, selections: Selections) -> None:
        pass

    def match(self, asked: Asked) -> tuple[int, ...]:
        return ()

    def ask(self, asked: object, times: int = 1) -> int:
        return 0


def test_a_contender_that_finds_something_else_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    liar = replace(CONTENDERS[BASELINE], name="liar", in_python=Lying)
    with pytest.raises(Wrong, match="liar does not find"):
        compare(workloads.make("all <>", 0.02), [CONTENDERS[BASELINE], liar], 2)
    monkeypatch.setitem(CONTENDERS, "liar", liar)
    assert command.main(["all <>", "--contenders", "liar", "--quick"]) == command.FOUND_WRONG
    assert "liar does not find" in capsys.readouterr().err


def test_names_that_nothing_has_are_errors_that_say_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (["shred 1k"], "no workload 'shred 1k'; there are shared 1k"),
        (["shared x"], "'x' is no number of selectors"),
        (["shared 0"], "'0' is no number of selectors"),
        (["pass 101%"], "'101%' is no share"),
        (["all <>", "--contenders", "siena"], "no contender 'siena'; there are fanlight"),
        (["--document", "--results", "no-such-file.json"], "no-such-file.json"),
    ):
        assert command.main(arguments) == command.WRONG, arguments
        assert said in capsys.readouterr().err


def test_one_workload_is_measured_with_the_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["shared 20k", "--contenders", "fanlight", "--quick"]) == command.OK
    shown = capsys.readouterr()
    assert {row["contender"] for row in json.loads(shown.out)["rows"]} == {"fanlight", BASELINE}
    assert "x baseline" in shown.err


def test_workloads_are_the_same_each_time_and_as_large_as_they_are_called() -> None:
    for name in ("shared 2k", "rare 2k", "half 2k", "narrow 2k", "pass 1%", *workloads.ADVERSARIAL):
        work = workloads.make(name)
        assert work == workloads.make(name)
        assert len(work.held) == {"pass 1%": 20_000, "64 tests by OR": 200}.get(name, 2_000)
        assert all(len(message) == workloads.ATTRIBUTES for _, message in work.messages)
        held = {slot for slot, _ in work.held}
        assert any(held & set(slots) for slots, _ in work.messages)
