"""`python -m fanlight_bench load`: its metrics, its words and its exit codes."""

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.__main__ import main
from fanlight_bench.load.command import BAD_COMMAND, FAULTY, INTERRUPTED, NO_SERVER, OK
from fanlight_bench.load.result import FAULTS, Result
from fanlight_bench.load.run import run as measure
from fanlight_bench.load.table import NULL, Run, medians, table
from tests.bench.load import broker as mistakes
from tests.bench.load.broker import faulty

SHORT = ["--duration", "0.05", "--warmup", "0.02", "--drain", "0.2"]
ONE = ["--publishers", "2", "--subscribers", "2", "--topics", "2", "--window", "8", "--batch", "1"]
MINE = 'title = "mine"\ntopic = "dev/{i}"\npublishers = 2\ntopics = 2\nwindow = 8\nbatch = 1\n'
GONE = 'title = "gone"\nkind = "replay"\ntopic = "gone"\n[options]\nfile = "/nowhere/recorded.json"\n'


def test_the_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", "--list"]) == OK
    assert "fan-out            1 publisher, 100 subscribers" in capsys.readouterr().out


def test_the_broker_is_measured_beside_the_null_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", "pairs", "acknowledged", "--null", "--protocol", "mqtt", "--repeats", "2", *ONE, *SHORT]) == OK
    captured = capsys.readouterr()
    printed = json.loads(captured.out)
    ran = [(run["scenario"], run["server"]) for run in printed["results"]]
    assert ran == [("pairs", "null"), ("pairs", "broker")] * 2 + [("acknowledged", "broker")] * 2
    assert all(run["checked"] > 0 and run["ok"] and run["protocol"] == "mqtt" for run in printed["results"])
    assert [(line["scenario"], line["server"], line["runs"]) for line in printed["medians"]] == [
        ("pairs", "null", 2), ("pairs", "broker", 2), ("acknowledged", "broker", 2),
    ]  # fmt: skip
    assert printed["medians"][1]["ratio_to_null"]["broker_us_per_delivery"] > 0
    assert printed["results"][0]["parameters"]["window"] == 8
    assert "delivered/s" in captured.err


def test_a_running_broker_is_measured_and_its_mistake_is_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with faulty(mistakes.lose) as url:
        assert main(["load", "pairs", "--url", url, *ONE, *SHORT]) == FAULTY
    captured = capsys.readouterr()
    assert "lost 1" in captured.err
    (result,) = json.loads(captured.out)["results"]
    assert (result["ok"], result["faults"]["lost"], result["url"]) == (False, 1, url)


def test_no_server_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert main(["load", "pairs", "--url", f"mqtt://127.0.0.1:{port}", *SHORT]) == NO_SERVER
    assert "refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["fan-outs"], "no scenario fan-outs"),
        (["pairs", "--batch", "0"], "batch is 0"),
        (["pairs", "--fail-above", "10"], "--against FILE"),
        (["pairs", "--repeats", "0"], "at least 1"),
        (["pairs", "--url", "http://host"], "begin with one of"),
        (["pairs", "--protocol", "nats"], "must be there already"),
        (["pairs", "--null", "--url", "nats://127.0.0.1:1"], "does not speak NATS"),
    ],
)
def test_a_wrong_command_is_told(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", *arguments, *SHORT]) == BAD_COMMAND
    assert why in capsys.readouterr().err


def test_a_scenario_of_ones_own_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    with faulty(None) as url:
        assert main(["load", str(path), "--url", url, *SHORT]) == OK
    assert json.loads(capsys.readouterr().out)["results"][0]["scenario"] == "mine"


def test_figures_are_medians_and_ratios_to_the_null_broker() -> None:
    def run(server: str, rate: float, each: float) -> Run:
        metrics: dict[str, Any] = dict.fromkeys(Result.__dataclass_fields__, 0)
        metrics |= {
            "scenario": "fan-out", "protocol": "mqtt", "delivered_per_second": rate, "broker_us_per_delivery": each,
            "generator_busy": 0.95, "generator_bound": True, "latency_us": {}, "memory": {"after": 50_000_000},
            "faults": dict.fromkeys(FAULTS, 0), "broker_busy": None, "others_busy": None,
        }  # fmt: skip
        return Run(server, Result(**metrics))

    lines = medians([run(NULL, 4e6, 0.1), run("broker", 1e6, 0.3), run("broker", 2e6, 0.2), run("broker", 9e6, 0.9)])
    assert [line["server"] for line in lines] == [NULL, "broker"]
    assert lines[1]["delivered_per_second"] == 2e6
    assert lines[1]["ratio_to_null"]["delivered_per_second"] == pytest.approx(0.5)
    assert lines[1]["ratio_to_null"]["broker_us_per_delivery"] == pytest.approx(3.0)
    assert "95%*" in "\n".join(table(lines))


def test_what_the_protocol_cannot_do_is_refused_before_anything_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with faulty(None) as url:
        assert main(["load", "pairs", "mqtt5-aliases", "--url", url, *ONE, *SHORT]) == NO_SERVER
    captured = capsys.readouterr()
    assert "mqtt5-aliases needs topic aliases" in captured.err
    assert captured.out == ""


def test_what_was_measured_is_printed_although_a_later_scenario_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    (tmp_path / "gone.toml").write_text(GONE)
    with faulty(None) as url:
        files = [str(tmp_path / "mine.toml"), str(tmp_path / "gone.toml")]
        assert main(["load", *files, "--url", url, *SHORT]) == NO_SERVER
    captured = capsys.readouterr()
    assert "/nowhere/recorded.json" in captured.err
    assert [run["scenario"] for run in json.loads(captured.out)["results"]] == ["mine"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_measured_is_printed_when_it_is_interrupted(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs: list[Result] = []

    def once(*arguments: Any, **options: Any) -> Result:
        if runs:
            os.kill(os.getpid(), number)
        runs.append(measure(*arguments, **options))
        return runs[0]

    monkeypatch.setattr("fanlight_bench.load.command.run", once)
    with faulty(None) as url:
        assert main(["load", "pairs", "--repeats", "3", "--url", url, *ONE, *SHORT]) == INTERRUPTED
    assert len(json.loads(capsys.readouterr().out)["results"]) == 1
