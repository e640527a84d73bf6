"""What is measured: three curves, each point of which is a broker of its own and one or two loads.

    filters      a number of wildcard filters, of other clients and other topics, beside 10 subscribers of whom one gets
                 each message: "hot", ten topics used again and again, and "cold", each message on a topic of its own
    subscribers  of each message: one publisher, one topic
    connections  all of them at work, in pairs of a publisher and a subscriber ("busy"), or all but 100 silent ("idle")

A publisher of the third curve has eight messages under way, however many there are, so that a connection's share of
the work is the same at all sizes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fanlight_bench.load.scenario import Background, Scenario

PROTOCOLS = {"native": "fanlight", "MQTT": "mqtt"}  # what figures call them, and their scheme
SIZES: dict[str, tuple[int, ...]] = {
    "filters": (0, 1_000, 10_000, 100_000, 1_000_000),
    "subscribers": (1, 10, 100, 1_000, 10_000),
    "connections": (200, 1_000, 4_000, 15_000),
}
QUICK = {"filters": (100,), "subscribers": (10,), "connections": (110,)}
LEAST = {"filters": 0, "subscribers": 1, "connections": 110}
FILTERS_PER_CONNECTION = 100_000
BUSY = 100       # connections of "idle" that are not
UNDER_WAY = 8    # messages of a publisher of pairs

# What the parts of a point take, in seconds: generous, for a busy machine.
BROKER = 1.5        # to start and to stop
LOAD = 0.3          # to end
FILTER = 35e-6      # to be subscribed to and, in the end, checked
CONNECTION = 0.35e-3


@dataclass(frozen=True)
class Point:
    """loads: by the name of their series; background: subscriptions that are there meanwhile."""

    curve: str
    protocol: str
    size: int
    loads: Mapping[str, Scenario]
    background: Scenario | None = None

    @property
    def connections(self) -> int:
        """At one time, at most."""
        held = self.background.background.connections if self.background else 0
        return held + max(load.publishers + load.subscribers + load.idle for load in self.loads.values())

    def seconds(self, measured: float) -> float:
        """What it takes without its broker, about, when each load takes `measured` seconds beside its connections."""
        connections = sum(load.publishers + load.subscribers + load.idle for load in self.loads.values())
        filters = self.size if self.background else 0
        return len(self.loads) * (measured + LOAD) + connections * CONNECTION + filters * FILTER


def points(sizes: Mapping[str, Sequence[int]], protocols: Sequence[str]) -> Iterator[Point]:
    """All points, a curve after the other, the protocols in turns."""
    for curve, chosen in sizes.items():
        for size in chosen:
            if size < LEAST[curve]:
                raise ValueError(f"{curve}: {size}; at least {LEAST[curve]}")
            for protocol in protocols:
                yield MADE[curve](protocol, size)


def _filters(protocol: str, count: int) -> Point:
    loads = {
        name: Scenario(
            name=f"{count:,} filters, {name}", title="10 publishers, 10 subscribers", topic=topic,
            filters=("site/{i}/dev/+/temp",), publishers=10, subscribers=10, topics=10,
        )
        for name, topic in (("hot", "site/{i}/dev/7/temp"), ("cold", "site/{i}/dev/{n}/temp"))
    }  # fmt: skip
    background = Background(
        count, max(1, count // FILTERS_PER_CONNECTION), ("site/{i%100}/+/alarm{i/100}/#",)
    )
    held = Scenario(
        name=f"{count:,} filters", title="the others", topic="nobody/publishes/on/this",
        publishers=0, subscribers=0, background=background,
    )  # fmt: skip
    return Point("filters", protocol, count, loads, held if count else None)


def _subscribers(protocol: str, count: int) -> Point:
    load = Scenario(
        name=f"{count:,} subscribers", title="1 publisher, 1 topic", topic="plant/line1/value",
        subscribers=count, window=max(20_000, 10 * count),
    )  # fmt: skip
    return Point("subscribers", protocol, count, {"": load})


def _pairs(name: str, connections: int, idle: int) -> Scenario:
    pairs = connections // 2
    return Scenario(
        name=name, title="pairs", topic="dev/{i}/temp", publishers=pairs, subscribers=pairs, topics=pairs,
        window=UNDER_WAY * pairs, batch=UNDER_WAY, idle=idle,
    )  # fmt: skip


def _connections(protocol: str, count: int) -> Point:
    loads = {
        "busy": _pairs(f"{count:,} connections, busy", count, 0),
        "idle": _pairs(f"{count:,} connections, idle", BUSY, count - BUSY),
    }
    return Point("connections", protocol, count, loads)


MADE = {"filters": _filters, "subscribers": _subscribers, "connections": _connections}
