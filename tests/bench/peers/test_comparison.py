"""The whole of it, with a real Mosquitto beside a real Fanlight: runs, file of results, bars, documents."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.peers import document, results
from fanlight_bench.peers.__main__ import OK, WRONG, main
from fanlight_bench.peers.drive import drive
from fanlight_bench.peers.peer import PATH
from fanlight_bench.peers.plan import PlannedScenario
from tests.require import command

pytestmark = pytest.mark.release

SHORT = ["--rounds", "2", "--duration", "0.1", "--warmup", "0.05"]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Copies of the documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("docs/benchmarks.md", "README.md"):
        (tmp_path / name).write_bytes((document.ROOT / name).read_bytes())
    return folder


def test_mosquitto_and_fanlight_are_compared_in_turns_and_the_documents_made(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", PATH)
    command("mosquitto", package="mosquitto")
    where = ["--results", str(tmp_path / "results"), "--docs", str(docs)]
    chosen = ["--scenarios", "B,D", "--only", "mosquitto,fanlight-mqtt"]
    assert main([*chosen, *SHORT, *where, "--publish"]) == OK
    told = capsys.readouterr()
    assert "8 runs of 2 scenarios and 2 contenders: about" in told.err

    report = results.load(results.newest(tmp_path / "results"))
    both = ["fanlight-mqtt", "mosquitto"]
    assert [run["contender"] for run in report["runs"]] == both * 4
    assert [run["scenario"] for run in report["runs"]] == ["B"] * 4 + ["D"] * 4
    for run in report["runs"]:
        assert not run.get("error"), run
        assert not run["faults"]
        assert run["checked"] > 0
        assert run["us_per_delivery"] > 0
    assert report["contenders"]["mosquitto"]["version"][0].isdigit()

    page = (docs / "benchmarks.md").read_text(encoding="utf-8")
    assert f"| mosquitto | Mosquitto | {report['contenders']['mosquitto']['version']} | one, pinned |" in page
    assert "docs/benchmarks-chart.svg" in (tmp_path / "README.md").read_text(encoding="utf-8")

    assert main(["--bars", *where]) == OK
    printed = capsys.readouterr().out
    (line,) = [line for line in printed.splitlines() if line.startswith("D") and " fanlight-mqtt " in line]
    assert "less than Mosquitto" in line
    assert line.endswith(("met", "met**"))
    assert main(["--report", *where]) == OK
    assert "is as it was" in capsys.readouterr().err


def test_who_ends_it_keeps_what_was_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []

    def ended(asked: PlannedScenario, url: str, duration: float, warmup: float, pid: int) -> dict[str, Any]:
        if runs:
            os.kill(os.getpid(), signal.SIGTERM)
        runs.append(url)
        return drive(asked, url, duration, warmup, pid)

    monkeypatch.setattr("fanlight_bench.peers.__main__.drive", ended)
    where = ["--results", str(tmp_path / "results"), "--docs", str(tmp_path)]
    assert main(["--scenarios", "B", "--only", "fanlight-mqtt", *SHORT, *where]) == OK
    report = results.load(results.newest(tmp_path / "results"))
    assert (len(report["runs"]), report["complete"]) == (1, False)


def test_a_scenario_or_a_broker_that_nobody_knows_is_a_wrong_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--scenarios", "A,Z9"]) == WRONG
    assert "no scenario is called Z9; there are A, B," in capsys.readouterr().err
    assert main(["--only", "activemq"]) == WRONG
    assert "no broker is called 'activemq'; there are fanlight-native" in capsys.readouterr().err
    assert main(["--bars", "--results", str(tmp_path)]) == WRONG
    assert "make bench-peers" in capsys.readouterr().err


def test_the_list_has_every_scenario_and_says_who_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fanlight_bench.peers.mosquitto.Mosquitto.program", lambda self: None)
    assert main(["--list"]) == OK
    listed = capsys.readouterr().out
    assert "A      fan-out" in listed
    assert "mosquitto        Mosquitto  (not installed)" in listed


def test_the_bars_of_a_file_are_all_there_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"medians": [], "runs": []}), encoding="utf-8")
    assert main(["--bars", str(path)]) == OK
    printed = capsys.readouterr().out
    assert "0 met, 0 not met, " in printed
    assert printed.count("not measured") > 50
