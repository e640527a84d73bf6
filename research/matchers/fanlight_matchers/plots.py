"""The plots of docs/matching.md, from a report; how they come to be SVG is bench/fanlight_bench/svg.py's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fanlight_bench import svg
from fanlight_matchers.bars import Figured
from fanlight_matchers.collect import Report

SIZES = {"W3 1k": 1_000, "W3 10k": 10_000, "W3 100k": 100_000, "W3 1M": 1_000_000}
COLOURS = {
    "fanlight": "#e4572e", "trie-I": "#3d85c6", "trie-S": "#45a29e", "bitmap": "#a35fc6", "paho": "#b8860b",
    "dfa": "#6aa84f", "matchbox": "#8c8c8c", "nats": "#c27ba0", "rabbit": "#7f6000", "naive": "#666666",
    "static": "#76a5af",
}  # fmt: skip


def plots(report: Report) -> dict[str, bytes]:
    """The SVGs by file name. ModuleNotFoundError: no matplotlib."""
    return svg.drawn_from(Figured(report), "matching", PLOTS)


def write(report: Report, folder: Path) -> list[str]:
    """Into files; their names."""
    return svg.write(plots(report), folder)


def _grown(axes: Any, figured: Figured, name: str, contenders: tuple[str, ...]) -> None:
    for contender in contenders:
        points = [(size, figured(workload, contender, name)) for workload, size in SIZES.items()]
        known = [(size, value) for size, value in points if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), marker="o", color=COLOURS[contender], label=contender)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("filters (W3)")
    if axes.lines:
        axes.legend()


def _growth(axes: Any, figured: Figured) -> None:
    _grown(axes, figured, "cold", ("trie-S", "trie-I", "bitmap", "dfa", "fanlight"))
    axes.set_ylabel("ns a match, cold, in C")


def _memory(axes: Any, figured: Figured) -> None:
    _grown(axes, figured, "bytes", ("bitmap", "trie-S", "trie-I", "fanlight"))
    axes.set_ylabel("bytes a filter")


def _latency(axes: Any, figured: Figured) -> None:
    """From the median to the 99th percentile of the topics, for each design and size it was measured at."""
    places: list[str] = []
    for workload in ("W3 10k", "W3 100k", "W3 1M"):
        for contender in COLOURS:
            half, slow = figured(workload, contender, "half"), figured(workload, contender, "slow")
            if half is None or slow is None or contender == "naive":
                continue
            at = len(places)
            axes.plot([half, slow], [at, at], color=COLOURS[contender], linewidth=5, solid_capstyle="butt", alpha=0.75)
            axes.plot([half], [at], marker="|", color=COLOURS[contender], markersize=9)
            places.append(f"{workload[3:]} {contender}")
    axes.set_yticks(range(len(places)), places, fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("ns a match, median to 99th percentile of the topics (W3)")


PLOTS: dict[str, Callable[[Any, Figured], None]] = {"growth": _growth, "latency": _latency, "memory": _memory}
