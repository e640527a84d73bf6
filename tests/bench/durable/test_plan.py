"""The order of the runs; a run that breaks off; the command line."""

import json
from pathlib import Path

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.durable import plan
from fanlight_bench.durable.__main__ import main
from fanlight_bench.durable.brokers import KEEPERS, FanlightInMemory, Keeper
from fanlight_bench.durable.couriers import MqttCourier
from fanlight_bench.durable.disk import Device
from fanlight_bench.durable.plan import PLANNED, Visit
from fanlight_bench.durable.rows import Bounds
from fanlight_bench.launch import LaunchError
from fanlight_bench.peers.__main__ import main as peers

QUICK = ["--duration", "0.05", "--warmup", "0.01", "--rounds", "1"]
FEW = ["--fan-out-sessions", "5", "--fan-out-messages", "9"]


def order(*names: str, rounds: int) -> list[tuple[str, str, int]]:
    keepers = [KEEPERS["fanlight"], KEEPERS["mosquitto"]]
    visits = plan.visits([PLANNED[name] for name in names], keepers, rounds, 2)
    return [("+".join(row.name for row in visit.rows), visit.keeper.name, visit.round) for visit in visits]


def test_rates_share_a_start_and_rounds_are_interleaved() -> None:
    assert order("1x1", "100x10", rounds=2) == [
        ("1x1+100x10", "fanlight", 0), ("1x1+100x10", "mosquitto", 0),
        ("1x1+100x10", "fanlight", 1), ("1x1+100x10", "mosquitto", 1),
    ]  # fmt: skip


def test_a_row_of_minutes_is_measured_once_and_of_its_brokers_only() -> None:
    assert order("backlog", rounds=3) == [("backlog", "fanlight", 0)]


def test_a_small_difference_has_rounds_of_its_own() -> None:
    assert order("A", rounds=7) == [("A", "fanlight", 0), ("A", "fanlight", 1)]


class Broken(FanlightInMemory):
    """Comes up for nobody."""

    def started(self, folder: Path, **more: object) -> None:  # type: ignore[override]
        raise LaunchError("it did not come up\nsaid its last line")


def test_a_broker_that_does_not_start_is_a_row_that_says_so(tmp_path: Path) -> None:
    keeper = Keeper("broken", "Broken", Broken(), "mqtt", MqttCourier(), "nothing")
    device = Device(Path("/nowhere"), "none", "none")
    rows = [*plan.run(Visit(keeper, (PLANNED["1x1"], PLANNED["1x100"]), 0), tmp_path, device, Bounds())]
    assert [row["scenario"] for row in rows] == ["1x1", "1x100"]
    assert plan.words(rows[0]) == "1x1, round 1, broken: LaunchError: it did not come up"
    assert not list(tmp_path.iterdir())


def test_a_row_of_fanlight_is_refused_to_others(tmp_path: Path) -> None:
    visit = Visit(KEEPERS["mosquitto"], (PLANNED["backlog"],), 0)
    (row,) = plan.run(visit, tmp_path, Device(Path("/nowhere"), "none", "none"), Bounds())
    assert "mosquitto is not started again here" in row["error"]


def test_the_command_measures_and_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "1x1,1x100,100x10,fan-out"
    where = ["--folder", str(_on_a_disk(tmp_path)), "--results", str(tmp_path / "results")]
    assert peers(["durable", "--rows", rows, "--only", "fanlight-memory", *QUICK, *FEW, *where]) == 0
    (file,) = (tmp_path / "results").iterdir()
    report = json.loads(file.read_text())
    assert report["complete"]
    assert [(run["scenario"], run["faults"]) for run in report["runs"]] == [(name, {}) for name in rows.split(",")]
    assert report["runs"][0]["bare_recycled_p50_us"] > 0
    assert report["runs"][0]["p50_to_growing"] > 0
    assert report["runs"][3]["checked"] == 45
    assert "100 publishers, 10 messages in flight each" in capsys.readouterr().out
    assert main(["--bars", "--results", str(tmp_path / "results")]) == 0


def test_the_command_lists_rows_and_brokers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in (*PLANNED, *KEEPERS))


@pytest.mark.parametrize(
    "arguments", [["--rows", "2x2"], ["--only", "kafka"], ["--report", "/nowhere.json"], ["--bars", "/nowhere.json"]]
)
def test_a_wrong_command_line_is_2(arguments: list[str]) -> None:
    assert main(arguments) == 2


def _on_a_disk(folder: Path) -> Path:
    try:
        Device.below(folder)
    except ValueError as error:
        pytest.skip(f"needs a temporary folder on a disk: {error}")
    return folder / "data"
