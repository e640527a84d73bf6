"""The file of results: medians over the good runs, what they differ by, and the newest file."""

import json
from pathlib import Path

import pytest

from fanlight_bench.peers import document, results, tables
from fanlight_bench.peers.results import Figured, medians
from tests.bench.peers.reports import report, run


def test_the_median_stands_beside_the_least_and_the_most() -> None:
    runs = [run("A", "nats", number, us_per_delivery=cost) for number, cost in enumerate((0.3, 0.1, 0.9))]
    (row,) = medians(runs)
    assert row["us_per_delivery"] == [0.3, 0.1, 0.9]
    assert (row["runs"], row["good"]) == (3, 3)


def test_a_run_with_a_fault_or_an_error_has_no_part_in_the_median_and_is_counted() -> None:
    runs = [
        run("A", "nats", 0, us_per_delivery=0.3), run("A", "nats", 1, us_per_delivery=0.01, faults={"lost": 7}),
        {"scenario": "A", "contender": "nats", "round": 2, "error": "LaunchError: | ended\nlast line"},
    ]  # fmt: skip
    (row,) = medians(runs)
    assert row["us_per_delivery"] == [0.3, 0.3, 0.3]
    assert (row["runs"], row["good"]) == (3, 1)
    assert row["complaints"] == ["7 lost", "LaunchError: / ended"]
    shown = next(line for line in tables.scenario(report(runs), "A") if line[0] == "nats")
    assert shown[-1] == "7 lost; LaunchError: / ended (1 of 3 runs good)"


def test_what_the_generator_may_have_limited_is_marked() -> None:
    runs = [run("A", "nats", 0, generator_bound=True), run("A", "nats", 1)]
    overview = tables.overview(report(runs), "deliveries_per_second")
    assert next(row for row in overview if row[0] == "nats")[1].endswith("*")


def test_a_figure_that_nobody_measured_is_none() -> None:
    figured = Figured(report([run("A", "nats")]))
    assert figured("A", "nats", "p50_us") is None
    assert figured("A", "mosquitto", "us_per_delivery") is None
    assert figured.between("A", "mosquitto", "us_per_delivery") is None


def test_a_report_is_read_as_it_was_written_with_a_line_a_run(tmp_path: Path) -> None:
    made = report()
    path = results.write(made, tmp_path)
    assert path.name == "2026-11-21.json"
    assert results.load(path) == json.loads(json.dumps(made))
    assert sum('"round"' in line for line in path.read_text().splitlines()) == len(made["runs"])


def test_a_second_report_of_a_day_does_not_replace_the_first_and_is_the_newest(tmp_path: Path) -> None:
    paths = [results.write(report([run("A", "nats")]), tmp_path) for _ in range(11)]
    assert len(set(paths)) == 11
    assert results.newest(tmp_path) == paths[-1] == tmp_path / "2026-11-21-11.json"


def test_what_is_no_file_of_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="make bench-peers"):
        results.newest(tmp_path)
    path = tmp_path / "other.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match="no medians"):
        results.load(path)


def test_a_table_has_the_columns_that_its_scenario_has_figures_for() -> None:
    rows = tables.scenario(report([run("S", "nats", us_per_delivery=None, connects_per_second=9_000.0)]), "S")
    assert "connects/s" in rows[0]
    assert "CPU µs/delivery" not in rows[0]
    assert rows[1][rows[0].index("connects/s")] == "9,000"
    assert "connects/s" not in tables.scenario(report([run("A", "nats")]), "A")[0]


def test_what_is_measured_again_replaces_the_runs_of_its_scenarios_and_says_so() -> None:
    first = report([run("A", "nats", us_per_delivery=9.0), run("B", "nats", us_per_delivery=2.0)])
    later = report([run("A", "nats", us_per_delivery=1.0)])
    later["scenarios"] = {"A": {**later["scenarios"]["A"], "title": "with other subscribers"}}
    later["machine"] = {**later["machine"], "processor": "another processor"}
    whole = results.replaced(first, later)
    figured = Figured(whole)
    assert figured("A", "nats", "us_per_delivery") == 1.0
    assert figured("B", "nats", "us_per_delivery") == 2.0
    assert [row["scenario"] for row in whole["medians"]] == ["A", "B"]
    assert whole["again"] == {"A": {"date": later["date"], **later["effort"], "machine": later["machine"]}}
    assert whole["scenarios"]["A"]["title"] == "with other subscribers"
    said = " ".join(document.BLOCKS["machine"](whole)).partition("Measured again, ")[2]
    assert said.endswith(": A.")
    assert "another processor" in said
    assert "again" not in first


def test_a_scenario_that_the_file_does_not_have_is_put_behind_the_others() -> None:
    first, later = report([run("B", "nats")]), report([run("A", "nats")])
    for letter, one in (("B", first), ("A", later)):
        one["scenarios"] = {letter: one["scenarios"][letter]}
    later["left_out"] = [{"scenario": "A", "contender": "amqtt", "reason": "it is slow"}]
    whole = results.replaced(first, later)
    assert list(whole["scenarios"]) == ["B", "A"]
    assert [row["scenario"] for row in whole["medians"]] == ["B", "A"]
    assert whole["left_out"] == first["left_out"] + later["left_out"]
    assert list(whole["again"]) == ["A"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"complete": False}, "broken off"),
        ({"contenders": {}}, "the contenders of the file"),
    ],
)
def test_what_cannot_stand_beside_the_rest_does_not_replace_it(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        results.replaced(report(), {**report(), **change})
