"""How far brokers reach: what was archived, times --scale, against what a node can do by its own measured costs.

    fanlight bench load pairs-unbatched fan-out large > costs.json      what a message, a copy and a byte cost there
    python -m fanlight_bench sizing > sizes.json                        what a connection and a session keep in memory

Written below --out, as Parquet:
    over_time   scale, start, busy, behind, bits, stored    one node with all of it, in each interval
    scales      scale, nodes, busiest, bound, first         nodes that are enough, and the bound that one reaches first
    hours       scale, hour, hours, busy, busiest           with --zone: one node by hour of day there

busy is a share of one processor, which is what a broker routes on. Within --every the load counts as even: for bursts
take a shorter one. Each scale has as many times the messages, clients and subscriptions.

exit codes: 0 done, 1 the largest scale needs more than --fail-above nodes, 2 wrong arguments or files
"""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_archive.arrow import pa
from fanlight_spark import capacity
from fanlight_spark.jobs import charts, command, local_time
from fanlight_spark.jobs.report import Report
from fanlight_spark.jobs.traffic import HOUR, length_of, per_topic, with_deliveries
from fanlight_spark.snapshot import Snapshot, read

EVERY: Final = "1 minute"
INTERVALS_MAX: Final = 1_000_000  # that the driver has at once
UTC_TIME: Final = pa.timestamp("us", "UTC")
OVER_TIME: Final = pa.schema([
    ("scale", pa.float64()), ("start", UTC_TIME), ("busy", pa.float64()), ("behind", pa.float64()),
    ("bits", pa.float64()), ("stored", pa.float64()),
])  # fmt: skip
SCALES: Final = pa.schema([
    ("scale", pa.float64()), ("nodes", pa.int64()), ("busiest", pa.float64()), ("bound", pa.string()),
    ("first", UTC_TIME), ("limit", pa.float64()), ("most", pa.float64()),
])  # fmt: skip
HOURS: Final = pa.schema([
    ("scale", pa.float64()), ("hour", pa.int32()), ("hours", pa.float64()), ("busy", pa.float64()),
    ("busiest", pa.float64()),
])  # fmt: skip


class Scale(NamedTuple):
    """points, bounds: of one node with all of it. nodes: that are enough; None: more than there may be."""

    scale: float
    points: list[capacity.Point]
    bounds: list[capacity.Bound]
    nodes: int | None

    @property
    def busiest(self) -> float:
        return max((point.busy for point in self.points), default=0.0)


def load_of(messages: DataFrame, snapshot: Snapshot, every: str) -> list[capacity.Load]:
    """By interval. Raises matchcore.InvalidFilter, and ValueError for too many intervals."""
    counted = with_deliveries(per_topic(messages, every), snapshot)
    out = F.sum(F.col("deliveries") * F.col("bytes") / F.col("messages"))
    by_time = counted.groupBy("start").agg(
        F.sum("messages").alias("messages"), F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"),
        F.sum("deliveries").alias("copies"), F.coalesce(out, F.lit(0.0)).alias("out"),
    )  # fmt: skip
    rows = by_time.orderBy("start").limit(INTERVALS_MAX + 1).toArrow().to_pylist()
    if len(rows) > INTERVALS_MAX:
        raise ValueError(f"more than {INTERVALS_MAX:,} intervals: a longer --every, or --from and --until")
    return [capacity.Load(row["start"], row["messages"], row["bytes"], row["copies"], row["out"]) for row in rows]


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    snapshot = read(options.subscriptions)
    costs = capacity.costs_of(_json(options.costs))
    sizes = None if options.sizes is None else _json(options.sizes)
    if options.memory is not None and sizes is None:
        raise ValueError("--memory needs --sizes, to know what a client takes")
    node = capacity.Node(options.busy, options.behind, options.network * 1e9, options.memory, options.disk)
    messages = command.messages(spark, options, "topic", "syntax", "timestamp", "value", "client").persist()
    load = load_of(messages, snapshot, options.every)
    every = length_of(spark.range(0).selectExpr("timestamp_seconds(id) AS start"), options.every)
    publishers = messages.agg(F.count_distinct("client").alias("count")).collect()[0]["count"]
    counts = publishers + len({each.client for each in snapshot.subscriptions}), len(snapshot.subscriptions)
    found = []
    for scale in sorted(set(options.scale or (1.0, 10.0, 100.0))):
        points = capacity.over_time(load, costs, every, scale)
        memory = capacity.memory_of(sizes, *(count * scale for count in counts))
        needed = capacity.nodes_needed(load, costs, every, scale, node, sizes, counts)
        found.append(Scale(scale, points, capacity.bounds(points, node, memory), needed))
    hours = [] if options.zone is None else by_hour(found, every, options.zone)
    for name, table in (tables(found) | ({} if options.zone is None else {"hours": _table(HOURS, hours)})).items():
        command.write(spark.createDataFrame(table), options.out / name)
    said = answer(found, options.zone or "UTC")
    report(found, costs, node, said, options, hours).write(options.out / command.REPORT)
    print(said)
    print(_costs(costs))
    print(options.out / command.REPORT)
    most = found[-1].nodes
    return command.code(options, capacity.NODES_MAX + 1 if most is None else most)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: no JSON: {error}") from error


def tables(found: Sequence[Scale]) -> dict[str, Any]:
    """Both results as Arrow tables."""
    points = [(each.scale, *point) for each in found for point in each.points]
    scales = []
    for each in found:
        first = each.bounds[0] if each.bounds else capacity.Bound("", None, 0.0, 0.0)
        known = (first.what, first.first, first.limit, first.most) if each.bounds else (None,) * 4
        scales.append((each.scale, each.nodes, each.busiest, *known))
    return {"over_time": _table(OVER_TIME, points), "scales": _table(SCALES, scales)}


def _table(schema: Any, rows: Sequence[tuple[Any, ...]]) -> Any:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def by_hour(found: Sequence[Scale], every: timedelta, zone: str) -> list[tuple[Any, ...]]:
    """Rows of HOURS, of each scale and the 24 hours of day. Of intervals longer than an hour none."""
    made: list[tuple[Any, ...]] = []
    for each in found if every <= HOUR else ():
        busy = [[0.0] for _ in range(local_time.HOURS)]
        for point in each.points:
            busy[local_time.local(point.begin, zone).hour].append(point.busy)
        ends = (each.points[0].begin, each.points[-1].begin + every) if each.points else None
        there = local_time.hours_of_day(*ends, zone) if ends else ()
        made += [
            (each.scale, hour, hours, sum(busy[hour]) * (every / HOUR) / hours if hours else 0.0, max(busy[hour]))
            for hour, hours in enumerate(there)
        ]
    return made


def answer(found: Sequence[Scale], zone: str = "UTC") -> str:
    said = []
    for each, name in zip(found, capacity.scaled(each.scale for each in found), strict=True):
        if not each.bounds:
            said.append(f"{name}: one node is enough, {each.busiest:.1%} of a processor at most")
            continue
        first = each.bounds[0]
        at = None if first.first is None else local_time.local(first.first, zone)
        when = "at once" if at is None else f"on {at:%Y-%m-%d at %H:%M:%S} {zone}"
        nodes = f"more than {capacity.NODES_MAX:,}" if each.nodes is None else f"{each.nodes:,}"
        said.append(f"{name}: {nodes} nodes are enough; of one the {first.what} is reached first, {when}")
    return "; ".join(said) + "."


def _costs(costs: capacity.Costs) -> str:
    return (
        f"a message costs {costs.message * 1e6:.3g} µs of a processor, a copy {costs.copy * 1e6:.3g} µs, a kilobyte "
        f"{costs.byte * 1e9:.3g} µs; a measured row differs from that by {costs.error:.0%} at most"
    )


def report(
    found: Sequence[Scale], costs: capacity.Costs, node: capacity.Node, said: str, options: argparse.Namespace,
    hours: Sequence[tuple[Any, ...]] = (),
) -> Report:  # fmt: skip
    page = Report("Capacity", command.described(options))
    page.answer(said, found=bool(found[-1].bounds))
    page.say(f"Of the broker that was measured, {_costs(costs)}.")
    page.table(
        ["scale", "nodes that are enough", "busiest", "bound reached first by one node", "first at"],
        [
            (name, "more" if each.nodes is None else each.nodes, f"{each.busiest:.1%}",
             each.bounds[0].what if each.bounds else "none",
             "" if not each.bounds else str(each.bounds[0].first or "at once"))
            for each, name in zip(found, capacity.scaled(each.scale for each in found), strict=True)
        ],
    )  # fmt: skip
    page.section("Over time, on one node")
    for title, name, limit in (
        ("Processors that are busy", "busy", node.busy), ("Seconds behind", "behind", node.behind),
        ("Bits a second to clients", "bits", node.bits),
    ):  # fmt: skip
        series: dict[str, list[tuple[Any, float | None]]] = {
            f"{each.scale:g}x": [(point.begin, getattr(point, name)) for point in each.points] for each in found
        }
        series["bound"] = [(point.begin, limit) for point in found[0].points]
        page.chart(charts.lines(series, y=title.lower(), log_y=name != "behind"), title)
    if options.zone is not None:
        _hours(page, hours, f"{found[-1].scale:g}x", options.zone)
    page.section("Every bound that one node reaches")
    rows = [(f"{each.scale:g}x", *bound) for each in found for bound in each.bounds]
    page.table(["scale", "bound", "first at", "limit", "most"], [tuple(map(str, row)) for row in rows], total=len(rows))
    return page


def _hours(page: Report, hours: Sequence[tuple[Any, ...]], largest: str, zone: str) -> None:
    page.section(f"By hour of day in {zone}, on one node")
    if not hours:
        page.say("Intervals longer than an hour say nothing of the hours of day: take a shorter --every.")
        return
    page.say("Of the hours that there were, with messages or without; busiest is the interval that was.")
    names = [(f"{scale:g}x", f"{hour:02}:00", there, busy, most) for scale, hour, there, busy, most in hours]
    drawn = [(hour, busy) for scale, hour, _, busy, _ in names if scale == largest]
    page.chart(charts.bars(drawn, "processors that are busy"), f"Processors that are busy at {largest}, by hour of day")
    page.table(["scale", "hour", "hours", "busy", "busiest"], names, total=len(names))


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = (
        "python -m fanlight_spark.jobs.capacity archive --subscriptions now.jsonl --costs costs.json --scale 10 "
        "--scale 100 --out capacity"
    )
    parser = command.parser("capacity", __doc__ or "", example)
    add, above = parser.add_argument, command.above
    about = "a snapshot: python -m fanlight_spark.snapshot URL FILE"
    add("--subscriptions", type=Path, required=True, metavar="FILE", help=about)
    add("--costs", type=Path, required=True, metavar="FILE", help="what `fanlight bench load` printed")
    add("--sizes", type=Path, metavar="FILE", help="what `python -m fanlight_bench sizing` printed")
    add("--scale", type=above(0), action="append", metavar="X", help="times as much; repeatable (1, 10, 100)")
    add("--every", default=EVERY, metavar="TIME", help="length of an interval (%(default)s)")
    add("--zone", type=local_time.zone_named, metavar="ZONE",
        help="whose hours of day the report has, such as America/New_York (UTC, without hours of day)")
    add("--busy", type=above(0), default=0.8, metavar="SHARE", help="of a processor that may be used (%(default)s)")
    add("--behind", type=above(0), default=1.0, metavar="SECONDS", help="that messages may wait (%(default)s)")
    add("--network", type=above(0), default=1.0, metavar="GBIT", help="a second, to clients (%(default)s)")
    add("--memory", type=command.at_least(1), metavar="BYTES", help="of a node; with --sizes")
    add("--disk", type=command.at_least(1), metavar="BYTES", help="for the bodies that a node archives in this time")
    command.add_threshold(parser, "nodes are needed for the largest scale")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
