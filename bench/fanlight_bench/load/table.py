"""Results as lines for a terminal, and as medians: several runs of one scenario against one server are one line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fanlight_bench.load.result import Result

NULL = "null"
HEAD = (
    f"{'scenario':<16} {'server':<7} {'protocol':<8} {'published/s':>12} {'delivered/s':>12} {'CPU µs/delivery':>16} "
    f"{'x null':>7} {'broker':>7} {'generator':>10} {'others':>7} {'RSS MB':>7} {'p50/p99 µs':>15}  faults"
)


@dataclass(frozen=True)
class Run:
    """A result, and what it was measured at: "broker", or NULL for the null broker."""

    server: str
    result: Result


def medians(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """A line for each scenario, server and protocol: medians, and ratios to the null broker if it ran."""
    lines = []
    for key in dict.fromkeys((run.result.scenario, run.server, run.result.protocol) for run in runs):
        of_it = [run.result for run in runs if (run.result.scenario, run.server, run.result.protocol) == key]
        lines.append({"scenario": key[0], "server": key[1], "protocol": key[2], **_figures(of_it)})
    for line in lines:
        for floor in lines:
            same = all(floor[key] == line[key] for key in ("scenario", "protocol"))
            if floor["server"] == NULL and same and line is not floor:
                line["ratio_to_null"] = _ratios(line, floor)
    return lines


def _figures(results: Sequence[Result]) -> dict[str, Any]:
    def middle(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return median(known) if known else None

    faults: dict[str, int] = {}
    for result in results:
        for name, count in result.faults.items():
            faults[name] = faults.get(name, 0) + count
    return {
        "runs": len(results),
        "published_per_second": middle(result.published_per_second for result in results),
        "delivered_per_second": middle(result.delivered_per_second for result in results),
        "broker_us_per_delivery": middle(result.broker_us_per_delivery for result in results),
        "broker_busy": middle(result.broker_busy for result in results),
        "generator_busy": middle(result.generator_busy for result in results),
        "generator_bound_runs": sum(result.generator_bound for result in results),
        "others_busy": middle(result.others_busy for result in results),
        "broker_resident_bytes": middle(result.memory.get("after") for result in results),
        "latency_p50_us": middle(result.latency_us.get("p50") for result in results),
        "latency_p99_us": middle(result.latency_us.get("p99") for result in results),
        "faults": {name: count for name, count in faults.items() if count},
    }


def _ratios(line: dict[str, Any], floor: dict[str, Any]) -> dict[str, float]:
    names = ("delivered_per_second", "broker_us_per_delivery", "latency_p50_us", "latency_p99_us")
    return {name: line[name] / floor[name] for name in names if line[name] and floor[name]}


def table(lines: Sequence[dict[str, Any]]) -> list[str]:
    """What `medians` found. Busy shares are of one processor; * marks what the generator may have limited."""
    return [HEAD, *(_line(line) for line in lines)]


def _line(line: dict[str, Any]) -> str:
    resident, p50, p99 = line["broker_resident_bytes"], line["latency_p50_us"], line["latency_p99_us"]
    busy = share(line["generator_busy"]) + ("*" if line["generator_bound_runs"] else " ")
    ratio = line.get("ratio_to_null", {}).get("broker_us_per_delivery")
    faults = ", ".join(f"{name} {count}" for name, count in line["faults"].items())
    return (
        f"{line['scenario']:<16} {line['server']:<7} {line['protocol']:<8} {number(line['published_per_second']):>12} "
        f"{number(line['delivered_per_second']):>12} {number(line['broker_us_per_delivery'], 4):>16} "
        f"{number(ratio, 2):>7} {share(line['broker_busy']):>7} {busy:>10} {share(line['others_busy']):>7} "
        f"{number(resident / 1e6 if resident else None, 1):>7} {f'{number(p50)}/{number(p99)}' if p50 else '-':>15}  "
        f"{faults or 0}"
    )


def number(value: float | None, digits: int = 0) -> str:
    """A figure with its thousands marked, or a dash."""
    return "-" if value is None else f"{value:,.{digits}f}"


def share(value: float | None) -> str:
    """A share of one processor."""
    return "-" if value is None else f"{value:.0%}"
