"""`python -m fanlight_bench permissions`: its file of rules, its ratios, and that it runs and says what it found."""

import json
from pathlib import Path
from typing import Any

import pytest

from fanlight_bench import permissions
from fanlight_bench.load.target import BadUrl, parse
from fanlight_bench.micro import permission_bars as bars
from fanlight_bench.micro import permission_instructions as instructions
from fanlight_bench.peers.plan import ASKED
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Access, Action, Asker
from fanlight_permissions.permission_file import compile_permissions, parse_permissions


def test_connections_log_in_as_the_same_users_in_each_run() -> None:
    target = parse("mqtt://u:pw@h?users=1000")
    assert target.url == "mqtt://u@h:1883?users=1000"
    users = {target.user_of(f"bench-77-p{number}") for number in range(50)}
    assert users == {target.user_of(f"bench-4711-p{number}") for number in range(50)}
    assert len(users) > 40
    assert all(user is not None and user.startswith("u") and 0 <= int(user[1:]) < 1_000 for user in users)
    assert parse("mqtt://u:pw@h").user_of("bench-77-p1") == "u"
    assert parse("mqtt://h?users=7").user_of("bench-77-p1") is None
    with pytest.raises(BadUrl, match="users=many; it is a number"):
        parse("fanlight://u@h?users=many")


def test_each_user_has_as_many_rules_and_may_do_what_scenarios_do() -> None:
    text = permissions.rows(1_000, 10)
    file = parse_permissions(text, "rows", Limits(), is_csv=True)
    assert len(file.rules) == 1_000
    assert sum(not rule.allow for rule in file.rules) == 100
    table = compile_permissions(file, "rows", Limits())
    for user in ("u0", "u9"):
        assert sum(rule.who == (("user", (user,)),) for rule in file.rules) == 100
        grant = table.grant_of(Asker(user=user))
        assert grant.decide(Action.PUBLISH, b"dev/1/temp", "mqtt").allowed
        assert not grant.decide(Action.PUBLISH, b"private/%d/a" % int(user[1:]), "mqtt").allowed
        assert grant.decide_filter(Action.SUBSCRIBE, b"site/+/dev/3/temp", "mqtt").access is Access.ALL
        assert grant.decide_filter(Action.SUBSCRIBE, b"+/+/dev/3/#", "mqtt").access is Access.PARTLY
    assert not table.grant_of(Asker(user="u10")).decide(Action.PUBLISH, b"dev/1/temp", "mqtt").allowed


def run(contender: str, number: int, value: float, **more: Any) -> dict[str, Any]:
    return {
        "scenario": "A",
        "scheme": "mqtt",
        "contender": contender,
        "round": number,
        "us_per_delivery": value,
        **more,
    }


def test_a_ratio_is_of_neighbours_and_the_median_of_the_rounds() -> None:
    runs = [
        run("off", 0, 1.0), run("on", 0, 1.02), run("off", 1, 2.0), run("on", 1, 2.2), run("off", 2, 4.0),
        run("on", 2, 4.04), run("off", 3, 1.0), run("on", 3, 9.0, faults={"lost": 1}),
        {"scenario": "B", "scheme": "mqtt", "contender": "on", "round": 0, "error": "Refused: no"},
    ]  # fmt: skip
    (found,) = permissions.ratios(runs)
    assert (found["scenario"], found["rounds"], found["ratio"]) == ("A", 3, 1.02)
    assert (found["least"], found["most"], found["met"]) == (1.01, 1.1, True)


def test_neighbours_take_turns_to_be_the_first(tmp_path: Path) -> None:
    contenders = permissions.made(tmp_path, 20, 2)
    steps = list(permissions.steps([ASKED["A"]], contenders, ["fanlight"], 3))
    assert [(step.round, step.contender.name) for step in steps] == [
        (0, "off"), (0, "on"), (1, "on"), (1, "off"), (2, "off"), (2, "on"),
    ]  # fmt: skip


def test_both_brokers_run_and_the_report_has_their_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    assert permissions.main([
        "--scenarios", "A", "--schemes", "mqtt", "--rounds", "1", "--duration", "0.1", "--warmup", "0",
        "--rules", "200", "--users", "10",
    ]) == 0  # fmt: skip
    report = json.loads(capsys.readouterr().out)
    assert [row["contender"] for row in report["runs"]] == ["off", "on"]
    assert not any(row.get("error") or row["faults"] for row in report["runs"])


def test_an_unknown_scenario_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert permissions.main(["--scenarios", "A,Z"]) == 2
    assert "no scenario is called 'Z'" in capsys.readouterr().err


def test_decisions_are_measured_beside_their_bars(capsys: pytest.CaptureFixture[str]) -> None:
    assert permissions.main(["--decisions", "--rules", "400", "--rounds", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["shape"] for row in report["rows"]] == ["users", "devices", "groups"]
    assert all(row["decision_us"] > 0 and row["reload_seconds"] > 0 for row in report["rows"])
    assert report["bars"]["decision_us"] == 1.5


def test_a_row_says_which_bars_are_met() -> None:
    times = {"ns": 1_600.0, "least_ns": 1_000.0, "spread": 0.0}
    found = {
        "cases": {"decide": times, "permits": times, "reload": {**times, "ns": 5_000.0}},
        "facts": {"held_ms": 5.0, "waits_ms": 9.0, "bytes_per_rule": 201},
    }
    assert bars.row("users", 100_000, found)["met"] == {
        "decision": False, "reload": True, "turn": True, "bytes": False,
    }  # fmt: skip


# -- instructions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["fanlight", "mqtt"])
@pytest.mark.parametrize("letter", instructions.SETUPS)
def test_with_permissions_as_much_is_delivered_as_without(letter: str, scheme: str, tmp_path: Path) -> None:
    """What is counted is the same work."""
    file = tmp_path / "rules.csv"
    file.write_text(permissions.rows(400, 200))
    got = []
    for path in (None, file):
        sides = instructions.Sides(scheme, path, 200)
        instructions.SETUPS[letter](sides)
        got.append([sides.turn() for _ in range(3)])
        copies = {"A": 100, "B": 1, "C": 5, "D": 1}[letter]
        assert sides.broker.ledger.messages_in == 3 * sides.messages
        assert sides.broker.ledger.messages_out == 3 * sides.messages * copies
    assert got[0] == got[1]
    assert min(got[0]) > 0


def test_instructions_are_those_between_few_turns_and_many(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("events: Ir\nfn=(1)\nsummary: 1000\n")
    (tmp_path / "2").write_text("events: Ir\nfn=(1)\ntotals: 5000\n")
    assert instructions._per_message(tmp_path, "1 2 200") == 20


@pytest.mark.parametrize("words", [["--scenarios", "B1"], ["--schemes", "mqtt5"]])
def test_instructions_of_what_is_not_known_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert permissions.main(["--instructions", *words]) == 2
    assert "--instructions knows A, B, C, D" in capsys.readouterr().err
