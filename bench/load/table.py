"""Results as lines for a terminal."""

from collections.abc import Sequence

from bench.load.result import Result

HEAD = (
    f"{'scenario':<18} {'protocol':<9} {'published/s':>12} {'delivered/s':>12} {'CPU us/delivery':>16} {'broker':>7} "
    f"{'generator':>10} {'others':>7} {'RSS MB':>7} {'p50/p99 us':>15}  faults"
)


def table(results: Sequence[Result]) -> list[str]:
    """A line for each result. Busy shares are of one processor; * marks what the generator may have limited."""
    return [HEAD, *(_line(result) for result in results)]


def _line(result: Result) -> str:
    resident = result.memory.get("after")
    latency = result.latency_us
    shown = f"{number(latency['p50'])}/{number(latency['p99'])}" if latency else "-"
    faults = ", ".join(f"{name} {count}" for name, count in result.faults.items() if count)
    busy = share(result.generator_busy) + ("*" if result.generator_bound else " ")
    return (
        f"{result.scenario:<18} {result.protocol:<9} {number(result.published_per_second):>12} "
        f"{number(result.delivered_per_second):>12} {number(result.broker_us_per_delivery, 4):>16} "
        f"{share(result.broker_busy):>7} {busy:>10} "
        f"{share(result.others_busy):>7} {number(resident / 1e6 if resident else None, 1):>7} {shown:>15}  "
        f"{faults or 0}"
    )


def number(value: float | None, digits: int = 0) -> str:
    """A figure with its thousands marked, or a dash."""
    return "-" if value is None else f"{value:,.{digits}f}"


def share(value: float | None) -> str:
    """A share of one processor."""
    return "-" if value is None else f"{value:.0%}"
