"""Two runs of one's own beside each other, the line that tells how a run goes, and what the command does with them."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.__main__ import main
from fanlight_bench.load import compare, metrics
from fanlight_bench.load.command import BAD_COMMAND, FAULTY, OK
from fanlight_bench.load.progress import ProgressLine, text
from fanlight_bench.load.run import Progress
from tests.bench.load.broker import faulty

COMMAND = ["load", "pairs", "--publishers", "2", "--subscribers", "2", "--topics", "2", "--window", "8", "--batch", "1"]
SHORT = ["--duration", "0.05", "--warmup", "0.02", "--drain", "5"]


def a_run(*rates: float, name: str = "pairs", **changes: Any) -> dict[str, Any]:
    results = [
        {
            "scenario": name, "protocol": "mqtt", "parameters": {"window": 8}, "delivered_per_second": rate,
            "broker_us_per_delivery": 1e6 / rate, "latency_us": {"p50": 100.0}, "metrics": {}, **changes,
        }
        for rate in rates
    ]  # fmt: skip
    return {"results": results}


def verdicts(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    return {change.metric.name: change.verdict for change in compare.changes(before, now)}


def test_more_is_better_of_a_rate_and_worse_of_a_time() -> None:
    assert verdicts(a_run(1_000.0), a_run(2_000.0)) == {
        "delivered_per_second": "better", "broker_us_per_delivery": "better", "p50": "within noise",
    }  # fmt: skip
    assert verdicts(a_run(1_000.0), a_run(500.0))["broker_us_per_delivery"] == "WORSE"
    assert verdicts(a_run(1_000.0), a_run(1_000.0, latency_us={"p50": 200.0}))["p50"] == "WORSE"


def test_several_runs_say_themselves_what_they_vary_by() -> None:
    quiet, busy = (1_000.0, 1_010.0, 1_020.0), (700.0, 1_000.0, 1_300.0)
    better = tuple(1.12 * rate for rate in quiet)
    assert verdicts(a_run(*quiet), a_run(*better))["delivered_per_second"] == "better"
    assert verdicts(a_run(*busy), a_run(*better))["delivered_per_second"] == "within noise"
    assert verdicts(a_run(1_000.0), a_run(1_120.0))["delivered_per_second"] == "within noise"


def test_runs_with_other_parameters_are_not_judged() -> None:
    now = a_run(9_000.0, parameters={"window": 9})
    assert set(verdicts(a_run(1_000.0), now).values()) == {"other parameters"}
    assert compare.worst(compare.changes(a_run(9_000.0), a_run(1_000.0, parameters={}))) == 0


def test_a_rate_that_was_set_is_no_figure() -> None:
    paced = a_run(1_000.0, parameters={"rate": 1_000.0})
    assert "delivered_per_second" not in verdicts(paced, paced)


def test_what_one_of_a_few_connections_takes_is_no_figure() -> None:
    few = a_run(1.0, connections=10, bytes_per_connection=40_000.0)
    many = a_run(1.0, connections=10_000, bytes_per_connection=4_000.0)
    assert "bytes_per_connection" not in verdicts(few, few)
    assert "bytes_per_connection" in verdicts(many, many)


def test_the_table_tells_by_how_much_and_worst_the_largest_loss() -> None:
    changes = compare.changes(a_run(1_000.0), a_run(600.0))
    assert any("-40.0%" in line and "WORSE" in line for line in compare.table(changes))
    assert compare.worst(changes) == pytest.approx(0.4)
    assert compare.worst(compare.changes(a_run(1_000.0), a_run(1_000.0))) == 0


@pytest.mark.parametrize("before", [{}, {"results": 3}, [], a_run(1.0, name="other")])
def test_what_cannot_be_compared_is_an_error(before: Any) -> None:
    with pytest.raises(ValueError, match=r"no scenario|no results"):
        compare.changes(before, a_run(1.0))


def test_figures_of_a_kind_are_lines_below_the_table_and_compared() -> None:
    storm = {"connects_per_second": 5_000.0}
    before, now = a_run(1.0, metrics=storm), a_run(1.0, metrics={"connects_per_second": 9_000.0})
    assert verdicts(before, now)["connects_per_second"] == "better"
    (head, line) = metrics.lines(now["results"])
    assert (head, line.split()) == ("pairs, mqtt:", ["connects/s", "9,000"])


def test_a_run_is_saved_and_compared_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "before.json"
    with faulty(None) as url:
        assert main([*COMMAND, "--url", url, *SHORT, "--save", str(saved)]) == OK
        assert json.loads(saved.read_text()) == json.loads(capsys.readouterr().out)
    document = json.loads(saved.read_text())
    for result in document["results"]:
        result["delivered_per_second"] *= 1_000
    saved.write_text(json.dumps(document))
    for above, code in (([], OK), (["--fail-above", "50"], FAULTY)):
        with faulty(None) as url:  # it knows its subscribers until it ends
            assert main([*COMMAND, "--url", url, *SHORT, "--against", str(saved), *above]) == code
        assert "WORSE" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "no JSON", '{"results": []}'])
def test_a_file_that_is_no_run_is_told(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "before.json"
    if content is not None:
        path.write_text(content)
    with faulty(None) as url:
        assert main([*COMMAND, "--url", url, *SHORT, "--against", str(path)]) == BAD_COMMAND
    assert "bench: " in capsys.readouterr().err


def test_options_of_a_kind_are_set_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", "idle-connections", *SHORT, "--set", "connections=7", "--protocol", "mqtt"]) == OK
    captured = capsys.readouterr()
    assert json.loads(captured.out)["results"][0]["connections"] == 7
    assert "connects/s" in captured.err
    assert main(["load", "idle-connections", "--set", "clients=7"]) == BAD_COMMAND
    assert main(["load", "idle-connections", "--publishers", "7"]) == BAD_COMMAND
    assert "does not look at --publishers; there is --set with connections, at_once" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_is_written_over_and_is_gone_at_the_end() -> None:
    out = Terminal()
    with ProgressLine(out, "pairs") as line:
        line(Progress("connecting", 0.0, {}))
        line(Progress("measuring", 0.1, {"published": 3, "received": 3}))
    first, second, *_, last = out.getvalue().split("\r")[1:]
    assert first.startswith("pairs: connecting")
    assert second.startswith("pairs: measuring 0.1 s, 3 published, 3 delivered")
    assert last == ""


def test_no_line_is_written_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    with ProgressLine(out, "pairs") as line:
        line(Progress("measuring", 0.1, {}))
    assert out.getvalue() == ""


def test_the_line_has_rates_and_faults() -> None:
    now = Progress("measuring", 2.0, {"published": 3_000, "received": 6_000, "damaged": 1, "closed": 1})
    line = text("pairs", now, {"published": 1_000, "received": 2_000}, 0.5)
    assert line == "pairs: measuring 2.0 s, 3,000 published (4,000/s), 6,000 delivered (8,000/s), 2 FAULTS"
