"""The plots of docs/scaling.md: one for each curve, a line for each protocol and series."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fanlight_bench import svg

COLOURS = {"native": "#e4572e", "MQTT": "#3d85c6"}
OTHERS = "#8c8c8c"
DASHES = ("-", "--")  # of the first series of a curve, and the second
AXES = {
    "filters": "wildcard filters of others", "subscribers": "subscribers of each message", "connections": "connections",
}  # fmt: skip


def lines(report: Mapping[str, Any], curve: str) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """(protocol, series) to (size, µs a message), in the order of the sizes."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for point in sorted(report["points"], key=lambda point: int(point["size"])):
        if point["curve"] == curve and point["us_per_message"] is not None:
            found.setdefault((point["protocol"], point["series"]), []).append((point["size"], point["us_per_message"]))
    return found


def plots(report: Mapping[str, Any]) -> dict[str, bytes]:
    """The SVGs by file name. ModuleNotFoundError: no matplotlib."""
    made: dict[str, Callable[[Any], None]] = {
        f"scaling-{curve}.svg": partial(_draw, report=report, curve=curve) for curve in AXES if lines(report, curve)
    }
    return svg.drawn(made)


def write(report: Mapping[str, Any], folder: Path) -> list[str]:
    """Into files; their names."""
    return svg.write(plots(report), folder)


def _draw(axes: Any, *, report: Mapping[str, Any], curve: str) -> None:
    found = lines(report, curve)
    series = list(dict.fromkeys(series for _, series in found))
    sizes = sorted({size for points in found.values() for size, _ in points})
    for (protocol, name), points in found.items():
        label = f"{protocol}, {name}" if name else protocol
        style = DASHES[series.index(name) % len(DASHES)]
        axes.plot(*zip(*points, strict=True), style, marker="o", color=COLOURS.get(protocol, OTHERS), label=label)
    if curve == "filters":
        axes.set_xscale("symlog", linthresh=max(sizes[1] if len(sizes) > 1 else 1, 1))  # none is a size, too
    else:
        axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    if curve == "connections":
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(AXES[curve])
    axes.set_ylabel("µs of broker CPU per message")
    axes.legend()
