"""The plots of docs/matching.md, from a report: SVG, the same bytes for the same figures.

No date, no random ids and no fonts in them; the background is left out and lines and letters are of a middle grey,
so that they can be read on white and on black. matplotlib is of the dependency group `bench`.
"""

import importlib
import io
from pathlib import Path
from typing import Any

from bench.matchers.bars import Figured
from bench.matchers.collect import Report

SIZES = {"W3 1k": 1_000, "W3 10k": 10_000, "W3 100k": 100_000, "W3 1M": 1_000_000}
GREY = "#808080"
COLOURS = {
    "fanlight": "#e4572e", "trie-I": "#3d85c6", "trie-S": "#45a29e", "bitmap": "#a35fc6", "paho": "#b8860b",
    "dfa": "#6aa84f", "matchbox": "#8c8c8c", "nats": "#c27ba0", "rabbit": "#7f6000", "naive": "#666666",
    "static": "#76a5af",
}  # fmt: skip
STYLE = {
    "svg.hashsalt": "fanlight", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9,
    "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY,
    "axes.grid": True, "grid.color": GREY, "grid.alpha": 0.25, "grid.linewidth": 0.5, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "figure.figsize": (6.4, 3.4), "lines.linewidth": 1.6,
    "lines.markersize": 4, "path.simplify": True,
}  # fmt: skip


def plots(report: Report) -> dict[str, bytes]:
    """The SVGs by file name. ModuleNotFoundError: no matplotlib."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    figured = Figured(report)
    drawn = {}
    with matplotlib.rc_context(STYLE):
        for name, draw in (("growth", _growth), ("latency", _latency), ("memory", _memory)):
            figure, axes = pyplot.subplots(layout="constrained")
            draw(axes, figured)
            into = io.BytesIO()
            figure.savefig(into, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
            pyplot.close(figure)
            lines = into.getvalue().decode().splitlines()
            drawn[f"matching-{name}.svg"] = ("\n".join(line.rstrip() for line in lines) + "\n").encode()
    return drawn


def write(report: Report, folder: Path) -> list[str]:
    """Into files; their names."""
    drawn = plots(report)
    for name, svg in drawn.items():
        (folder / name).write_bytes(svg)
    return list(drawn)


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
