"""The plots of docs/selectors-speed.md, from a report; how they come to be SVG is bench/fanlight_bench/svg.py's."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fanlight_bench import svg
from fanlight_content.bars import ContentFigured
from fanlight_content.collect import ContentReport
from fanlight_content.document import PASS
from fanlight_content.registry import CONTENDERS
from fanlight_content.workloads import SHARES, SIZES

COLOURS = ("#e4572e", "#3d85c6", "#666666", "#45a29e", "#76a5af", "#a35fc6", "#b8860b", "#6aa84f", "#c27ba0", "#7f6000",
           "#8c8c8c", "#2f6f4f", "#9a3b26", "#4b6cb7", "#d08c60", "#557a46")  # fmt: skip


def plots(report: ContentReport) -> dict[str, bytes]:
    """The SVGs by file name. ModuleNotFoundError: no matplotlib."""
    return svg.drawn_from(ContentFigured(report), "selectors-speed", PLOTS)


def write(report: ContentReport, folder: Path) -> list[str]:
    """Into files; their names."""
    return svg.write(plots(report), folder)


def _lines(axes: Any, figured: ContentFigured, places: Mapping[str, float], name: str) -> None:
    for contender, colour in zip(CONTENDERS, COLOURS, strict=False):
        points = [(place, figured(workload, contender, name)) for workload, place in places.items()]
        known = [(place, value) for place, value in points if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), marker="o", color=colour, label=contender)
    axes.set_xscale("log")
    axes.set_yscale("log")
    if axes.lines:
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))


def _growth(axes: Any, figured: ContentFigured) -> None:
    _lines(axes, figured, {f"shared {name}": size for name, size in SIZES.items()}, "ns")
    axes.set_xlabel("selectors on 54 filters")
    axes.set_ylabel("ns a message")


def _selectivity(axes: Any, figured: ContentFigured) -> None:
    _lines(axes, figured, dict(zip(PASS, SHARES, strict=True)), "ns")
    axes.set_xlabel("share of messages that pass one range of two (2,000 selectors a filter)")
    axes.set_ylabel("ns a message")


def _memory(axes: Any, figured: ContentFigured) -> None:
    _lines(axes, figured, {f"shared {name}": size for name, size in SIZES.items()}, "bytes")
    axes.set_xlabel("selectors on 54 filters")
    axes.set_ylabel("bytes a selector")


PLOTS: dict[str, Callable[[Any, ContentFigured], None]] = {
    "growth": _growth, "selectivity": _selectivity, "memory": _memory,
}  # fmt: skip
