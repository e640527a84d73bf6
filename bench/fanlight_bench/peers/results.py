"""The file of results: every run, and for each scenario and contender the medians and what the runs differ by.

    date, machine, effort      when, where, with how many rounds of how long
    complete                   false: it was interrupted
    contenders                 name -> title, protocol, version, configuration, pinned or not
    scenarios                  letter -> scenario of bench/fanlight_bench/load, title, target
    left_out                   who does not take part in what, and why
    missing                    contenders whose broker is not installed
    runs                       a row a run: its figures, or `error`
    medians                    a row for each scenario and contender: figure -> [median, least, most]
    again                      scenario -> date, effort and machine, of what was measured again later

A run with faults or an error has no part in the medians, but is counted. A line holds a row, so that two files can be
compared by diff.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

Report = dict[str, Any]
Row = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "results"

# What has a median. Rates are a second; None or missing in a run: not measured there.
METRICS = (
    "deliveries_per_second", "messages_per_second", "us_per_delivery", "us_per_message", "broker_busy",
    "generator_busy", "others_busy", "p50_us", "p90_us", "p99_us", "p999_us", "resident_bytes",
    "bytes_per_connection", "bytes_per_subscription", "subscribe_cpu_seconds", "connects_per_second",
    "broker_us_per_connect", "throughput_kept", "round_trips_per_second", "broker_us_per_round_trip",
    "stored_per_second", "broker_us_per_stored", "bytes_per_stored", "last_ms_p50", "last_ms_p99",
    "with_delivered_per_second", "changes_per_second", "start_seconds", "resting_bytes", "pause_ms", "pause_ms_max",
    "pause_ms_without",
)  # fmt: skip


def medians(runs: Sequence[Row], metrics: Sequence[str] = METRICS) -> list[Row]:
    """A row for each scenario and contender, in the order of the runs."""
    rows = []
    for scenario, contender in dict.fromkeys((run["scenario"], run["contender"]) for run in runs):
        mine = [run for run in runs if (run["scenario"], run["contender"]) == (scenario, contender)]
        good = [run for run in mine if not run.get("error") and not run.get("faults")]
        row: Row = {"scenario": scenario, "contender": contender, "runs": len(mine), "good": len(good)}
        row["generator_bound"] = sum(bool(run.get("generator_bound")) for run in good)
        row["complaints"] = sorted({complaint for run in mine if (complaint := _complaint(run))})
        for name in metrics:
            values = sorted(float(run[name]) for run in good if run.get(name) is not None)
            if values:
                row[name] = [median(values), values[0], values[-1]]
        rows.append(row)
    return rows


def replaced(report: Report, later: Report) -> Report:
    """The report with what `later` measured in place of its own runs, or behind them if it has none of a scenario.

    `again` says which scenarios, and how.

    ValueError: `later` was broken off, or what `comparable` raises.
    """
    fresh = later["scenarios"]
    comparable(report, list(later["contenders"]))
    if not later["complete"]:
        raise ValueError("a comparison that was broken off cannot replace a whole one")
    runs = [run for run in report["runs"] if run["scenario"] not in fresh] + later["runs"]
    order = list({**report["scenarios"], **fresh})
    runs.sort(key=lambda run: order.index(run["scenario"]))
    again = {letter: {"date": later["date"], **later["effort"], "machine": later["machine"]} for letter in fresh}
    return {
        **report,
        "left_out": [one for one in report["left_out"] if one["scenario"] not in fresh] + later["left_out"],
        "scenarios": {**report["scenarios"], **fresh},
        "runs": runs,
        "medians": medians(runs),
        "again": {**report.get("again", {}), **again},
    }


def comparable(report: Report, contenders: Sequence[str]) -> None:
    """ValueError: these contenders are not those of the report, and figures of two hours would stand side by side."""
    if list(contenders) != list(report["contenders"]):
        raise ValueError("a scenario is measured again with the contenders of the file of results, all of them")


def _complaint(run: Row) -> str:
    """In one line that fits into a table; the row of the run has all of it."""
    if run.get("error"):
        return str(run["error"]).partition("\n")[0].replace("|", "/")[:160]
    return ", ".join(f"{count} {name}" for name, count in (run.get("faults") or {}).items())


class Figured:
    """The medians of a report by scenario, contender and figure; None: not measured."""

    def __init__(self, report: Report) -> None:
        self.rows = {(row["scenario"], row["contender"]): row for row in report["medians"]}

    def __call__(self, scenario: str, contender: str, figure: str) -> float | None:
        values = self.rows.get((scenario, contender), {}).get(figure)
        return None if values is None else float(values[0])

    def between(self, scenario: str, contender: str, figure: str) -> tuple[float, float] | None:
        """The least and the most of the runs."""
        values = self.rows.get((scenario, contender), {}).get(figure)
        return None if values is None else (float(values[1]), float(values[2]))


def ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def text(report: Report) -> str:
    """JSON with a line for each row."""
    parts = []
    for name, value in report.items():
        rows = [json.dumps(row) for row in value] if isinstance(value, list) and value else None
        shown = json.dumps(value) if rows is None else "[\n" + ",\n".join(rows) + "\n]"
        parts.append(f"{json.dumps(name)}: {shown}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(report: Report, folder: Path) -> Path:
    """Into a file named by its date; one more of the same day gets a number. OSError: it cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    day = str(report["date"])[:10]
    path, number = folder / f"{day}.json", 1
    while path.exists():
        number += 1
        path = folder / f"{day}-{number}.json"
    path.write_text(text(report), encoding="utf-8")
    return path


def load(path: Path) -> Report:
    """A report of an earlier run. OSError, ValueError: not readable, or not a report."""
    report: Report = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(report, dict) or "medians" not in report:
        raise ValueError(f"{path} is no file of results: it has no medians")
    return report


def newest(folder: Path = FOLDER) -> Path:
    """The newest file of results. FileNotFoundError: there are no results."""
    files = sorted(folder.glob("*.json"), key=lambda path: (path.stem[:10], len(path.stem), path.stem))
    if not files:
        raise FileNotFoundError(f"{folder} has no results: `make bench-peers` makes them")
    return files[-1]
