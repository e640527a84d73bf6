"""Plots as SVG: the same bytes for the same figures, and readable on white and on black.

No date, no random ids and no fonts in them; the background is left out and lines and letters are of a middle grey.
matplotlib is of the dependency group `bench`.
"""

import importlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

GREY = "#808080"
STYLE = {
    "svg.hashsalt": "fanlight", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9,
    "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY,
    "axes.grid": True, "grid.color": GREY, "grid.alpha": 0.25, "grid.linewidth": 0.5, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "figure.figsize": (6.4, 3.4), "lines.linewidth": 1.6,
    "lines.markersize": 4, "path.simplify": True,
}  # fmt: skip

Subject = TypeVar("Subject")


def drawn_from(
    subject: Subject, prefix: str, plots: Mapping[str, Callable[[Any, Subject], None]]
) -> dict[str, bytes]:
    """`drawn` by functions of axes and of what all of them draw from; the names begin with the prefix."""

    def draw(plot: Callable[[Any, Subject], None]) -> Callable[[Any], None]:
        return lambda axes: plot(axes, subject)

    return drawn({f"{prefix}-{name}.svg": draw(plot) for name, plot in plots.items()})


def write(pictures: Mapping[str, bytes], folder: Path) -> list[str]:
    """Into files of a folder; their names."""
    for name, content in pictures.items():
        (folder / name).write_bytes(content)
    return list(pictures)


def drawn(plots: Mapping[str, Callable[[Any], None]]) -> dict[str, bytes]:
    """The SVG of each, which is drawn by a function of matplotlib's axes. ModuleNotFoundError: no matplotlib."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    made = {}
    with matplotlib.rc_context(STYLE):
        for name, draw in plots.items():
            figure, axes = pyplot.subplots(layout="constrained")
            draw(axes)
            into = io.BytesIO()
            figure.savefig(into, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
            pyplot.close(figure)
            lines = into.getvalue().decode().splitlines()
            made[name] = ("\n".join(line.rstrip() for line in lines) + "\n").encode()
    return made
