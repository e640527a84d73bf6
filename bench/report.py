"""Runs in, figures out: medians over the repeats, ratios to the null broker, a table for people."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from bench.measure import Run

NULL = "null"


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """Medians per scenario and server, and the ratios of the broker to the null broker of the same runs."""
    scenarios: dict[str, Any] = {}
    for name in dict.fromkeys(run.scenario for run in runs):
        servers = {}
        for server in dict.fromkeys(run.server for run in runs if run.scenario == name):
            servers[server] = _medians([run for run in runs if run.scenario == name and run.server == server])
        scenarios[name] = {"servers": servers}
        floor = servers.get(NULL)
        for server, figures in servers.items():
            if floor is not None and server != NULL:
                scenarios[name]["ratio_to_null"] = _ratios(figures, floor)
    return scenarios


def _medians(runs: Sequence[Run]) -> dict[str, Any]:
    def middle(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return median(known) if known else None

    return {
        "runs": len(runs),
        "messages_per_second": middle([run.messages_per_second for run in runs]),
        "deliveries_per_second": middle([run.deliveries_per_second for run in runs]),
        "broker_us_per_delivery": middle([run.broker_us_per_delivery for run in runs]),
        "broker_busy": middle([run.broker_busy for run in runs]),
        "generator_busy": middle([run.generator_busy for run in runs]),
        "generator_bound_runs": sum(run.generator_bound for run in runs),
        "others_busy": middle([run.others_busy for run in runs]),
        "broker_resident_bytes": middle([run.broker_resident_bytes for run in runs]),
        "latency_p50_us": middle([(run.latency_us or {}).get("p50") for run in runs]),
        "latency_p99_us": middle([(run.latency_us or {}).get("p99") for run in runs]),
        "faults": sum(sum(run.faults.values()) for run in runs),
    }


def _ratios(figures: dict[str, Any], floor: dict[str, Any]) -> dict[str, float]:
    names = ("deliveries_per_second", "broker_us_per_delivery", "latency_p50_us", "latency_p99_us")
    return {name: figures[name] / floor[name] for name in names if figures[name] and floor[name]}


HEAD = (
    f"{'scenario':<12} {'server':<7} {'messages/s':>11} {'deliveries/s':>13} {'CPU us/delivery':>16} "
    f"{'x null':>7} {'broker':>7} {'generator':>10} {'others':>7} {'RSS MB':>7} {'p50/p99 us':>11}  faults"
)


def table(scenarios: dict[str, Any]) -> list[str]:
    """Lines for a terminal. Busy shares are of one processor; * marks what the generator may have limited."""
    lines = [HEAD]
    for name, scenario in scenarios.items():
        for server, figures in scenario["servers"].items():
            ratios = scenario.get("ratio_to_null", {}) if server != NULL else {}
            latency = f"{_number(figures['latency_p50_us'])}/{_number(figures['latency_p99_us'])}"
            resident = figures["broker_resident_bytes"]
            own = _share(figures["generator_busy"]) + ("*" if figures["generator_bound_runs"] else " ")
            lines.append(
                f"{name:<12} {server:<7} {_number(figures['messages_per_second']):>11} "
                f"{_number(figures['deliveries_per_second']):>13} "
                f"{_number(figures['broker_us_per_delivery'], 4):>16} "
                f"{_number(ratios.get('broker_us_per_delivery'), 2):>7} {_share(figures['broker_busy']):>7} "
                f"{own:>10} {_share(figures['others_busy']):>7} "
                f"{_number(resident / 1e6 if resident else None, 1):>7} "
                f"{latency if figures['latency_p50_us'] else '-':>11}  {figures['faults']}"
            )
    return lines


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
