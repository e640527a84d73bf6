"""What is run and in which order: in turns, without those who are left out, and timed beforehand."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fanlight_bench.launch import LaunchError
from fanlight_bench.load import scenario
from fanlight_bench.peers import compare, plan
from fanlight_bench.peers.__main__ import parser as main_parser
from fanlight_bench.peers.contenders import CONTENDERS, Contender
from fanlight_bench.peers.peer import Peer, Up
from fanlight_bench.peers.plan import ASKED, PlannedScenario


class Pretended(Peer):
    """A broker that only says what it was asked to do."""

    name = "pretended"
    one_thread = True

    def __init__(self, broken: bool = False, there: bool = True) -> None:
        self.events: list[str] = []
        self.broken, self.there = broken, there
        self.folders: list[Path] = []

    def program(self) -> str | None:
        return "pretended" if self.there else None

    def version(self) -> str:
        return "3"

    def configuration(self) -> str:
        return ""

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        assert folder.is_dir()
        self.folders.append(folder)
        if self.broken:
            raise LaunchError("pretended ended; its last lines:\nno such port")
        self.events.append("start")
        try:
            yield Up({"mqtt": 1, "nats": 2}, 4711)
        finally:
            self.events.append("stop")


def contender(name: str, peer: Peer, *schemes: str) -> Contender:
    return Contender(name, name.title(), peer, schemes or ("mqtt",))


A, B = PlannedScenario("A", "fan-out", "one to many"), PlannedScenario("B", "pairs", "pairs", schemes=("mqtt",))


def test_runs_are_interleaved_by_round_and_then_by_scenario() -> None:
    two = [contender("x", Pretended()), contender("y", Pretended())]
    order = [(step.asked.letter, step.round, step.contender.name) for step in plan.steps([A, B], two, 2)]
    assert order == [
        ("A", 0, "x"), ("A", 0, "y"), ("A", 1, "x"), ("A", 1, "y"),
        ("B", 0, "x"), ("B", 0, "y"), ("B", 1, "x"), ("B", 1, "y"),
    ]  # fmt: skip


def test_who_does_not_speak_the_protocol_or_is_left_out_has_no_run() -> None:
    spoken = contender("x", Pretended(), "nats")
    slow = contender("slow", Pretended())
    asked = PlannedScenario("B", "pairs", "pairs", schemes=("mqtt",), left_out={"slow": "an hour", "x": "never said"})
    assert list(plan.steps([asked], [spoken, slow], 1)) == []
    assert plan.left_out([asked], [spoken, slow]) == [{"scenario": "B", "contender": "slow", "reason": "an hour"}]


def test_a_contender_takes_the_first_of_its_protocols_that_the_scenario_knows() -> None:
    both = contender("x", Pretended(), "mqtt", "mqtt5")
    only5 = PlannedScenario("P5", "properties", "MQTT 5", schemes=("mqtt5",))
    assert [step.scheme for step in plan.steps([A, only5], [both], 1)] == ["mqtt", "mqtt5"]


def test_the_time_that_is_told_grows_with_rounds_and_duration() -> None:
    one = [contender("x", Pretended())]
    short = plan.seconds(list(plan.steps([A], one, 1)), 1.0, 0.5)
    assert short > 1.5
    assert plan.seconds(list(plan.steps([A], one, 3)), 1.0, 0.5) == pytest.approx(3 * short)
    assert plan.seconds(list(plan.steps([A], one, 1)), 3.0, 0.5) == pytest.approx(short + 2)


def test_all_of_it_takes_no_more_than_26_minutes() -> None:
    command = main_parser().parse_args([])
    planned = list(plan.steps(list(ASKED.values()), plan.contenders(), command.rounds))
    assert plan.seconds(planned, command.duration, command.warmup) <= 26 * 60


def test_a_long_scenario_has_fewer_rounds_and_some_contenders_take_part_in_some() -> None:
    seldom = Contender("seldom", "Seldom", Pretended(), ("mqtt", "mqtt5"), every=3)
    asked = [
        A, PlannedScenario("G", "million", "long", rounds_max=1),
        PlannedScenario("P5", "properties", "MQTT 5", schemes=("mqtt5",)),
    ]  # fmt: skip
    both = [contender("often", Pretended(), "mqtt", "mqtt5"), seldom]
    made = [(step.asked.letter, step.contender.name) for step in plan.steps(asked, both, 3)]
    assert Counter(made) == {
        ("A", "often"): 3, ("A", "seldom"): 1, ("G", "often"): 1, ("G", "seldom"): 1, ("P5", "often"): 3,
        ("P5", "seldom"): 3,
    }  # fmt: skip


def test_contenders_are_chosen_by_their_own_name_or_their_brokers() -> None:
    assert [one.name for one in plan.contenders(["fanlight", "nats-1cpu"])] == [
        "fanlight-native", "fanlight-mqtt", "nats-1cpu", "fanlight-mqtt5",
    ]  # fmt: skip
    assert plan.contenders() == list(CONTENDERS.values())
    with pytest.raises(KeyError):
        plan.contenders(["activemq"])


def test_everybody_who_is_left_out_is_a_contender_and_has_a_reason() -> None:
    for asked in ASKED.values():
        assert set(asked.left_out) <= set(CONTENDERS)
        assert all(asked.left_out.values())


def test_the_scenarios_are_those_of_the_load_generator_and_their_changes_fit() -> None:
    for asked in ASKED.values():
        made = scenario.load(asked.scenario).with_changes(**asked.changes)
        assert all(getattr(made, name) == value for name, value in asked.changes.items())


def drive(asked: PlannedScenario, url: str, duration: float, warmup: float, pid: int) -> dict[str, Any]:
    assert pid == 4711
    return {"us_per_delivery": 2.0, "deliveries_per_second": 5e5, "faults": {}, "url_seen": url}


def test_each_run_has_a_broker_and_a_folder_of_its_own_and_leaves_nothing() -> None:
    peer = Pretended()
    told: list[str] = []
    report = compare.compare(
        [A], [contender("x", peer)], drive, told.append, rounds=2, duration=0.1, warmup=0.0
    )
    assert peer.events == ["start", "stop"] * 2
    assert len(set(peer.folders)) == 2
    assert not any(folder.exists() for folder in peer.folders)
    assert [row["url_seen"] for row in report["runs"]] == ["mqtt://127.0.0.1:1"] * 2
    assert told[0].startswith("2 runs of 1 scenarios and 1 contenders: about 0:0")
    assert told[-1].startswith("[2/2, 0:00 left] A fan-out, round 2, x: 500,000/s, 2 µs")
    assert report["contenders"]["x"]["version"] == "3"


def test_a_broken_broker_is_a_row_that_says_so_and_the_others_go_on() -> None:
    broken, well = contender("broken", Pretended(broken=True)), contender("well", Pretended())
    report = compare.compare([A], [broken, well], drive, lambda line: None, rounds=1, duration=0.1, warmup=0.0)
    rows = {row["contender"]: row for row in report["medians"]}
    assert rows["broken"]["complaints"] == ["LaunchError: pretended ended; its last lines:"]
    assert "no such port" in report["runs"][0]["error"]
    assert (rows["broken"]["good"], rows["well"]["good"]) == (0, 1)


def test_a_broker_that_fails_under_load_is_stopped_and_the_row_says_why() -> None:
    peer = Pretended()

    def refused(asked: PlannedScenario, url: str, duration: float, warmup: float, pid: int) -> dict[str, Any]:
        raise ConnectionResetError("reset by peer")

    report = compare.compare(
        [A], [contender("x", peer)], refused, lambda line: None, rounds=1, duration=0.1, warmup=0.0
    )
    assert peer.events == ["start", "stop"]
    assert report["runs"][0]["error"] == "ConnectionResetError: reset by peer"


def test_a_missing_broker_is_named_and_not_run() -> None:
    gone, well = contender("gone", Pretended(there=False)), contender("well", Pretended())
    report = compare.compare([A], [gone, well], drive, lambda line: None, rounds=1, duration=0.1, warmup=0.0)
    assert report["missing"] == ["gone"]
    assert {row["contender"] for row in report["runs"]} == {"well"}


def test_an_interrupt_stops_the_broker_and_keeps_what_was_run() -> None:
    peer = Pretended()
    runs: list[str] = []

    def interrupted(asked: PlannedScenario, url: str, duration: float, warmup: float, pid: int) -> dict[str, Any]:
        if runs:
            raise KeyboardInterrupt
        runs.append(url)
        return drive(asked, url, duration, warmup, pid)

    report = compare.compare(
        [A], [contender("x", peer)], interrupted, lambda line: None, rounds=3, duration=0.1, warmup=0.0
    )
    assert len(report["runs"]) == 1
    assert not report["complete"]
    assert peer.events == ["start", "stop"] * 2
