"""The chart of docs/pipeline-speed.md: how fast each way finds which subscriptions get which messages."""

from collections.abc import Mapping
from typing import Any

from fanlight_bench.svg import drawn

NAME = "pipeline-speed-matching.svg"
#: From the quickest possible to what one tries first; the last ones are those of the group without `topics`.
WAYS = ("scan", "match_topics", "mapInPandas", "paho, topics", "join, topics", "rlike, topics", "paho", "rlike", "join")
WIDTH = 0.09  # of a bar, where a group is 1 wide


def plots(report: Mapping[str, Any]) -> dict[str, bytes]:
    """By their file's name. ModuleNotFoundError: no matplotlib."""
    groups = report["benches"]["matching"]
    return drawn({NAME: lambda axes: _matching(axes, groups)})


def _matching(axes: Any, groups: Mapping[str, Any]) -> None:
    names = list(groups)
    for number, way in enumerate(WAYS):
        known = [(at, groups[name]["cases"][way]) for at, name in enumerate(names) if way in groups[name]["cases"]]
        if known:
            places = [at + (number - len(WAYS) / 2 + 0.5) * WIDTH for at, _ in known]
            rates = [found["rows_per_second"] for _, found in known]
            axes.bar(places, rates, WIDTH * 0.9, label=way, color=f"C{number}")
    axes.set_yscale("log")
    axes.set_ylabel("messages/s")
    axes.set_xticks(range(len(names)), [name.replace(", ", ",\n", 1) if "own" in name else name for name in names])
    axes.legend(ncols=3, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 1.3))
