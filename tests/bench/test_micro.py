"""`python -m fanlight_bench micro`: every bench runs, and says what it promises."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fanlight_bench.micro import tables
from fanlight_bench.micro.__main__ import BENCHES, OK, WORSE, WRONG, main
from fanlight_bench.micro.case import Case, Effort, Group, measured, times

pytestmark = pytest.mark.release

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*arguments: str) -> dict[str, Any]:
    """What it prints on standard output, in a process of its own."""
    command = [sys.executable, "-m", "fanlight_bench", "micro", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_200, check=True, cwd=ROOT)
    benches: dict[str, Any] = json.loads(done.stdout)["benches"]
    return benches


@pytest.fixture(scope="module")
def quick() -> dict[str, Any]:
    """All of them, once and small."""
    return run("--quick")


def test_every_bench_of_the_folder_is_found_under_the_one_command() -> None:
    files = (ROOT / "bench" / "fanlight_bench" / "micro").glob("*.py")
    assert {path.stem for path in files if "\ndef groups(" in path.read_text(encoding="utf-8")} == set(BENCHES)


def test_each_bench_has_figures_and_each_figure_its_spread(quick: dict[str, Any]) -> None:
    assert list(quick) == list(BENCHES)
    for bench, groups in quick.items():
        assert groups, bench
        for group in groups.values():
            assert group["cases"] or group["facts"], bench
            for figures in group["cases"].values():
                assert figures["ns"] > 0
                assert figures["least_ns"] <= figures["ns"]
                assert 0 <= figures["spread"] < 10


@pytest.mark.parametrize(
    ("bench", "case", "baseline"),
    [
        ("parse", "native", "msgpack"),
        ("parse", "3.1.1", "struct"),
        ("fields", "msgpack", "msgpack library"),
        ("fields", "JSON", "JSON library"),
        ("route", "lookup", "dict"),
        ("fan_out", "native", "memcpy"),
        ("fan_out", "3.1.1, in a row", "memcpy"),
        ("flush", "both", "sendmsg"),
        ("lanes", "5.0 aliases", "3.1.1"),
        ("publish", "cold", "known"),
        ("subscribe", "MQTT", "index"),
        ("match", "oracle", "match"),
        ("insert", "FilterIndex", "dict"),
        ("remove", "NameIndex", "dict"),
        ("mix", "50 %", "matches"),
        ("names", "index", "oracle"),
        ("frozen", "match copy", "match live"),
        ("screens", "screen", "in a row"),
        ("rules", "first", "list"),
        ("rules", "first in C", "matches"),
        ("selecting", "selectors", "in a row"),
        ("rows", "many", "match"),
    ],
)
def test_a_figure_stands_beside_a_baseline_of_the_same_run(
    quick: dict[str, Any], bench: str, case: str, baseline: str
) -> None:
    ratios = [group["cases"][case]["beside"][baseline] for group in quick[bench].values() if case in group["cases"]]
    assert ratios
    assert all(ratio > 0 for ratio in ratios)


def test_the_lanes_have_every_protocol_and_qos_and_deliver_what_was_published(quick: dict[str, Any]) -> None:
    assert set(quick["lanes"]) == {"1 subscribers", "10 subscribers"}
    for group in quick["lanes"].values():
        ways = group["cases"]
        assert set(ways) >= {"native", "3.1.1", "3.1.1 QoS 1", "5.0", "5.0 QoS 1", "5.0 alias", "5.0 aliases"}
        # What arrives is as long as it was sent: a head of two octets, the topic, the payload.
        assert ways["3.1.1"]["bytes_per_delivery"] == 2 + 2 + 24 + 64
        assert ways["5.0 alias"]["bytes_per_delivery"] == ways["5.0"]["bytes_per_delivery"] == 93
    for group in quick["fan_out"].values():
        assert group["cases"]["3.1.1"]["bytes_per_delivery"] == 2 + 2 + 24 + 64
        assert group["cases"]["3.1.1, in a row"]["bytes_per_delivery"] == 2 + 2 + 24 + 64
        assert group["cases"]["5.0"]["bytes_per_delivery"] == 93
        native = {name: figures["bytes_per_delivery"] for name, figures in group["cases"].items() if "native" in name}
        assert native["native"] == native["native, in a row"]


def test_the_process_grows_by_what_an_index_says_it_holds_and_all_of_it_comes_back() -> None:
    """In a process of its own, by /proc. Two rounds, so that what the first one left would be seen."""
    rounds = run("memory", "--workload", "W3:100000")["memory"]["W3:100000"]["facts"]["rounds"]
    assert len(rounds) == 2
    for line in rounds:
        assert line["nbytes_left"] == 0
        assert 100 < line["nbytes_per_filter"] < 160
        if line["resident_per_filter"] is not None:
            assert 0.8 < line["resident_per_filter"] / line["nbytes_per_filter"] < 1.25
            assert line["resident_left"] < 2_000_000  # of the 13 million that were held


def test_a_median_its_spread_and_a_ratio_are_taken_turn_by_turn() -> None:
    def told(*values: float) -> Any:
        return iter([0.0, *values]).__next__  # the first turn is not counted

    group = Group("g", [Case("floor", 10, told(100, 200, 400)), Case("ours", 10, told(300, 400, 1200), ("floor",))])
    figures = measured(group, Effort(turns=3))["cases"]
    assert figures["floor"]["ns"] == 20
    assert figures["floor"]["least_ns"] == 10
    assert figures["ours"]["ns"] == 40
    assert figures["ours"]["beside"] == {"floor": 3.0}  # of 3, 2 and 3; the ratio of the medians would be 2
    assert times([10.0, 10.0, 10.0])["spread"] == 0
    assert times([8.0, 10.0, 12.0])["spread"] == 0.1


def test_a_baseline_that_is_not_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="which is not measured"):
        measured(Group("g", [Case("ours", 1, lambda: 1.0, ("floor",))]), Effort(turns=1))


def report(ns: float, ratio: float | None) -> dict[str, Any]:
    beside = {} if ratio is None else {"floor": ratio}
    figures = {"ns": ns, "least_ns": ns, "spread": 0.01, "beside": beside}
    return {"benches": {"parse": {"g": {"facts": {}, "cases": {"ours": figures}}}}}


def test_two_runs_are_compared_by_the_ratio_to_the_baseline_where_there_is_one() -> None:
    # The other machine is half as fast, in everything.
    (change,) = tables.changes(report(100, 2.0), report(200, 2.01))
    assert (change.unit, change.verdict) == ("x floor", tables.SAME)
    (change,) = tables.changes(report(100, 2.0), report(100, 3.0))
    assert change.verdict == tables.WORSE
    (change,) = tables.changes(report(200, None), report(100, None))
    assert (change.unit, change.change, change.verdict) == ("ns", 1.0, tables.BETTER)
    with pytest.raises(ValueError, match="no case is in both runs"):
        tables.changes({"benches": {}}, report(1, None))


def test_a_run_is_compared_with_an_earlier_one_and_may_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = tmp_path / "before.json"
    earlier.write_text(json.dumps(report(100, 2.0)))
    monkeypatch.setattr("fanlight_bench.micro.__main__.measure", lambda names, effort: report(150, 3.0))
    assert main(["parse", "--against", str(earlier)]) == OK
    assert "SLOWER" in capsys.readouterr().err
    assert main(["parse", "--against", str(earlier), "--fail-above", "20"]) == WORSE
    assert main(["parse", "--against", str(tmp_path / "none.json")]) == WRONG


def test_a_bench_or_a_workload_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such"]) == WRONG
    assert "there are parse" in capsys.readouterr().err
    assert main(["parse", "--fail-above", "20"]) == WRONG
    assert "--against FILE" in capsys.readouterr().err
    assert main(["match", "--quick", "--workload", "W99"]) == WRONG
    assert "W99" in capsys.readouterr().err


def test_the_list_says_what_each_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(BENCHES)
    assert all(len(line) > 40 for line in lines)
