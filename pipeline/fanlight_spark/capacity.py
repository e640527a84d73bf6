"""How far a broker reaches: a load over time, times a scale, over some nodes, against what a node can do.

    costs_of(report)              what a message, a copy and a byte cost, from what `fanlight bench load` printed
    over_time(load, costs, ...)   each interval of one scale: how busy, how far behind, how many bits go out
    bounds(points, node)          which bounds are reached, and when first
    nodes_needed(...)             the fewest nodes on which none is

A scale multiplies messages, bytes and copies. The topics are divided over the nodes evenly, and nothing is sent
between nodes. What a node does not get done in an interval it does in the next ones: `behind` is the time that takes,
and what a message waits. It needs no Spark.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

COSTS: Final = ("message", "copy", "byte")
NODES_MAX: Final = 1_000
BASE_BYTES: Final = 50 << 20  # a broker at rest (docs/operations.md)
IDLE, AWAY = "idle connection", "session that is away, with a subscription"  # of `python -m fanlight_bench sizing`


class CostsError(ValueError):
    """A report of the load generator that no costs are in."""


class Costs(NamedTuple):
    """Seconds of a processor. error: the greatest part of a measured row that these differ from it by."""

    message: float
    copy: float
    byte: float  # in and out
    error: float = 0.0


class Load(NamedTuple):
    """What passed in one interval from `begin` on."""

    begin: datetime
    messages: float
    bytes: float
    copies: float
    bytes_out: float


@dataclass(frozen=True, slots=True)
class Node:
    """What one can do, and how much of it is to be used. None: without a bound."""

    busy: float = 0.8  # of one processor, which is what routes
    behind: float = 1.0  # seconds
    bits: float = 1e9  # a second, out
    memory: int | None = None  # bytes
    disk: int | None = None  # bytes, of the archive over the time of the load


class Point(NamedTuple):
    """One interval on one node. stored: bytes of bodies since the beginning."""

    begin: datetime
    busy: float
    behind: float
    bits: float
    stored: float


class Bound(NamedTuple):
    """What is reached: when first (None: at once), how much of it there is, and how much is most."""

    what: str
    first: datetime | None
    limit: float
    most: float


def costs_of(report: Any) -> Costs:
    """By least squares of the relative errors, none below 0. Raises CostsError.

    report: what `fanlight bench load` prints, with rows of at least three kinds: one copy a message, many, and large
    """
    rows = report.get("results", ()) if isinstance(report, Mapping) else ()
    found, took = [], []
    for row in rows:
        parameters = row.get("parameters", {}) if isinstance(row, Mapping) else {}
        if parameters.get("kind") != "stream" or not row.get("published") or not row.get("broker_us_per_publish"):
            continue
        copies = row["delivered"] / row["published"]
        found.append((1.0, copies, parameters["payload_bytes"] * (1 + copies)))
        took.append(row["broker_us_per_publish"] / 1e6)
    asked = np.array(found)
    if len(found) < len(COSTS) or np.linalg.matrix_rank(asked) < len(COSTS):
        raise CostsError(
            "no rows to tell what a message, a copy and a byte cost: "
            "fanlight bench load pairs-unbatched fan-out large > costs.json"
        )
    seconds, error = _fitted(asked, np.array(took))
    message, copy, byte = seconds.tolist()
    return Costs(message, copy, byte, error)


def _fitted(asked: NDArray[Any], took: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Of few unknowns: every subset of them that may be above 0 is tried."""
    relative = asked / took[:, None]
    best: tuple[float, NDArray[Any]] | None = None
    for count in range(1, len(COSTS) + 1):
        for chosen in itertools.combinations(range(len(COSTS)), count):
            part = np.linalg.lstsq(relative[:, chosen], np.ones(len(took)), rcond=None)[0]
            if (part < 0).any():
                continue
            seconds = np.zeros(len(COSTS))
            seconds[list(chosen)] = part
            square = float(((relative @ seconds - 1) ** 2).sum())
            if best is None or square < best[0] - 1e-12:
                best = square, seconds
    assert best is not None  # one unknown alone is never below 0
    return best[1], float(np.abs(relative @ best[1] - 1).max())


def over_time(load: Sequence[Load], costs: Costs, every: timedelta, scale: float = 1.0, nodes: int = 1) -> list[Point]:
    """Of a load in ascending intervals of `every`; those without messages may be left out."""
    length, part = every.total_seconds(), scale / nodes
    behind = stored = 0.0
    found: list[Point] = []
    previous: datetime | None = None
    for each in load:
        if previous is not None:
            behind = max(0.0, behind - (each.begin - previous - every).total_seconds())
        previous = each.begin
        work = part * (
            costs.message * each.messages + costs.copy * each.copies + costs.byte * (each.bytes + each.bytes_out)
        )
        behind = max(0.0, behind + work - length)
        stored += part * each.bytes
        found.append(Point(each.begin, work / length, behind, part * each.bytes_out * 8 / length, stored))
    return found


def bounds(points: Sequence[Point], node: Node, memory: float = 0.0) -> list[Bound]:
    """Those that are reached, the first one first. memory: bytes that one node needs."""
    found: list[tuple[int, Bound]] = []  # the place of its first interval; -1: at once
    if node.memory is not None and memory > node.memory:
        found.append((-1, Bound("memory", None, node.memory, memory)))
    limits = (("processor", "busy", node.busy), ("delay", "behind", node.behind), ("network", "bits", node.bits),
              ("disk", "stored", node.disk))  # fmt: skip
    for what, name, limit in limits:
        values = [getattr(point, name) for point in points]
        first = next((place for place, value in enumerate(values) if limit is not None and value > limit), None)
        if first is not None and limit is not None:
            found.append((first, Bound(what, points[first].begin, limit, max(values))))
    return [bound for _, bound in sorted(found, key=lambda each: each[0])]


def memory_of(sizes: Mapping[str, Any] | None, clients: float, subscriptions: float) -> float:
    """Bytes of one node's share of clients and subscriptions, from what `python -m fanlight_bench sizing` printed.

    Each subscription is counted as a session that is away, which is more than one of a client that is there. Raises
    CostsError.
    """
    if sizes is None:
        return 0.0
    try:
        each = sizes["bytes"]
        return BASE_BYTES + float(clients * each[IDLE]["each"] + subscriptions * each[AWAY]["each"])
    except (KeyError, TypeError) as error:
        raise CostsError(f"no sizes: python -m fanlight_bench sizing > sizes.json ({error!r})") from None


def nodes_needed(
    load: Sequence[Load], costs: Costs, every: timedelta, scale: float, node: Node, sizes: Mapping[str, Any] | None,
    counts: tuple[int, int],
) -> int | None:  # fmt: skip
    """The fewest nodes on which no bound is reached; None: more than NODES_MAX. counts: clients, subscriptions."""

    def enough(nodes: int) -> bool:
        memory = memory_of(sizes, *(count * scale / nodes for count in counts))
        return not bounds(over_time(load, costs, every, scale, nodes), node, memory)

    if not enough(NODES_MAX):
        return None
    low, high = 1, NODES_MAX
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def scaled(scales: Iterable[float]) -> list[str]:
    """Their names: 10x."""
    return [f"{scale:g}x" for scale in scales]
