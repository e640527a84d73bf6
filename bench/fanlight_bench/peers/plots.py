"""The plots of docs/benchmarks.md and the chart of the README, from a file of results. Figures differ by four orders of
magnitude between brokers, so every axis is logarithmic."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fanlight_bench import svg
from fanlight_bench.peers.results import Figured, Report

# Ours warm and filled, the floor grey; what is plotted over each other stays apart by its shape, too.
MARKS = {
    "fanlight-native": ("#e4572e", "o"), "fanlight-mqtt": ("#f2a541", "o"), "fanlight-mqtt5": ("#c0392b", "D"),
    "nats-1cpu": ("#3d85c6", "s"), "nats": ("#3d85c6", "^"), "nats-mqtt": ("#3d85c6", "<"),
    "mosquitto": ("#6aa84f", "v"), "rabbitmq": ("#a35fc6", "P"), "amqtt": ("#45a29e", "X"),
    "null-native": (svg.GREY, "|"), "null-mqtt": (svg.GREY, "x"),
}  # fmt: skip
OTHER = ("#b8860b", "*")  # of a file from before somebody was called otherwise
# What the README shows, in its words: rows that flatter us; and B1, where the kernel does the work, and T1M, which is
# hard for a broker that remembers topics.
CHART = {
    "A": "one topic to 100 subscribers", "C": "wildcards, 5 subscribers a message", "D": "acknowledged, QoS 1",
    "H": "64 KiB a message", "B1": "one message a write", "T1M": "a million topics in turn",
}  # fmt: skip
CHARTED = ("fanlight-native", "fanlight-mqtt", "nats-1cpu", "mosquitto", "rabbitmq", "amqtt")
APART = 0.6  # of the height of a line: the dots are spread over it so that equal ones stay visible


def plots(report: Report) -> dict[str, bytes]:
    """The SVGs by file name. ModuleNotFoundError: no matplotlib."""
    return svg.drawn_from(report, "benchmarks", PLOTS)


def write(report: Report, folder: Path) -> list[str]:
    """Into files; their names."""
    return svg.write(plots(report), folder)


def _dots(
    axes: Any, report: Report, places: Mapping[str, tuple[str, str]], what: str, charted: Sequence[str] | None = None
) -> None:
    """A line a place, a dot a contender. places: label -> (scenario, figure); charted: these contenders, or all."""
    figured = Figured(report)
    shown = [name for name, at in places.items() if any(figured(at[0], one, at[1]) for one in report["contenders"])]
    names = [name for name in report["contenders"] if charted is None or name in charted]
    for number, contender in enumerate(names):
        colour, mark = MARKS.get(contender, OTHER)
        values = [figured(places[name][0], contender, places[name][1]) for name in shown]
        aside = APART * ((number + 0.5) / len(names) - 0.5)
        known = [(value, at + aside) for at, value in enumerate(values) if value]
        if known:
            axes.plot(*zip(*known, strict=True), linestyle="", marker=mark, markersize=6, color=colour,
                      markerfacecolor=colour, alpha=0.9, label=contender)  # fmt: skip
    axes.set_yticks(range(len(shown)), shown)
    axes.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.set_xlabel(what)
    _legend(axes, len(shown))


def _legend(axes: Any, rows: int) -> None:
    axes.figure.set_size_inches(7.2, 1.5 + 0.32 * max(rows, 4))
    if axes.lines:
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)


def _scenarios(report: Report, figure: str) -> dict[str, tuple[str, str]]:
    return {f"{about['title']}  {letter}": (letter, figure) for letter, about in report["scenarios"].items()}


def _cpu(axes: Any, report: Report) -> None:
    what = "µs of processor time per delivery; less is better"
    _dots(axes, report, _scenarios(report, "us_per_delivery"), what)
    axes.xaxis.set_major_formatter("{x:g}")


def _chart(axes: Any, report: Report) -> None:
    what = "µs of processor time per delivery; less is better"
    places = {words: (letter, "us_per_delivery") for letter, words in CHART.items() if letter in report["scenarios"]}
    _dots(axes, report, places, what, CHARTED)
    axes.xaxis.set_major_formatter("{x:g}")


def _rates(axes: Any, report: Report) -> None:
    _dots(axes, report, _scenarios(report, "deliveries_per_second"), "deliveries a second; more is better")


def _memory(axes: Any, report: Report) -> None:
    places = {
        "the process after A": ("A", "resident_bytes"),
        "the process with 1,000,000 filters": ("G", "resident_bytes"),
        "a filter of these": ("G", "bytes_per_subscription"),
        "an idle connection": ("F", "bytes_per_connection"),
    }
    _dots(axes, report, places, "bytes")


def _latency(axes: Any, report: Report) -> None:
    """From the median to the 99th percentile, and a thin line on to the 99.9th."""
    figured = Figured(report)
    places: list[str] = []
    for contender in report["contenders"]:
        half, slow, slowest = (figured("E", contender, name) for name in ("p50_us", "p99_us", "p999_us"))
        if half is None or slow is None:
            continue
        colour, at = MARKS.get(contender, OTHER)[0], len(places)
        axes.plot([half, slow], [at, at], color=colour, linewidth=5, solid_capstyle="butt")
        axes.plot([slow, slowest or slow], [at, at], color=colour, linewidth=1)
        axes.plot([half], [at], marker="|", color=colour, markersize=10)
        places.append(contender)
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(max(len(places), 1) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("µs from when a message was due to its arrival, median to p99, thin to p99.9 (E)")


PLOTS: dict[str, Callable[[Any, Report], None]] = {
    "cpu": _cpu, "chart": _chart, "rates": _rates, "latency": _latency, "memory": _memory,
}  # fmt: skip
