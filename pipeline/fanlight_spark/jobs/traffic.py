"""How much passed: messages, bytes and distinct topics by topic root and time, and the hottest topics.

Below --out, as Parquet:
    windows   start, root, messages, bytes, topics     a row for each root and window of time
    roots     root, messages, bytes, topics            the same over all the time
    topics    topic, syntax, root, messages, bytes     the hottest, by messages
With --subscriptions FILE, which `python -m fanlight_spark.snapshot` takes of a broker, each has deliveries: how many
copies a broker with these subscriptions sends.

With --zone the report has the hours of day, and there is a fourth result:
    hours     hour, hours, messages, bytes             of day in the zone: how many hours of it there were

A root is the first word of a topic. Windows are by the time at which the broker got a message; those of whole days
begin at midnight in the zone.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from fanlight_archive.arrow import pa
from fanlight_spark import workers
from fanlight_spark.jobs import charts, command, local_time
from fanlight_spark.jobs.local_time import Stretch, Windows, window_start
from fanlight_spark.jobs.report import Report
from fanlight_spark.jobs.roots import root
from fanlight_spark.matching import ROWS_AT_ONCE
from fanlight_spark.shares import shares, terms_of
from fanlight_spark.snapshot import Snapshot, read

Between = tuple[datetime | None, datetime | None]
EVERY, TOP = "1 hour", 1_000
SHOWN: Final = 20  # roots and topics of the report
LINES: Final = 7  # roots that get a line of their own in a plot
OTHERS: Final = "all others"
HOUR: Final = timedelta(hours=1)


def per_topic(messages: DataFrame, every: str = EVERY, zone: str = "UTC") -> DataFrame:
    """(start, topic, syntax, client, root, messages, bytes) of messages with topic, syntax, timestamp and value.

    What all the rest is made of: much less than there are messages. A topic in another spelling is another topic.
    client is the publisher's if the messages have it, otherwise null. zone: where windows of whole days begin
    """
    start = window_start(every, zone).alias("start")
    client = F.col("client") if "client" in messages.columns else F.lit(None).cast("string").alias("client")
    counted = messages.groupBy(start, "topic", "syntax", client).agg(
        F.count("*").alias("messages"), F.sum(F.octet_length("value")).alias("bytes")
    )
    return counted.withColumn("root", root())


def with_deliveries(counted: DataFrame, snapshot: Snapshot) -> DataFrame:
    """What `per_topic` has counted, and how many copies a broker with these subscriptions makes of it.

    Counted as the broker does (pipeline/fanlight_spark/shares.py). Raises matchcore.InvalidFilter.
    """
    shared = counted.sparkSession.sparkContext.broadcast(terms_of(snapshot))

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        for batch in batches:
            for at in range(0, batch.num_rows, ROWS_AT_ONCE):
                part = batch.slice(at, ROWS_AT_ONCE)
                rows, _, weights = shares(shared.value, *(part.column(name) for name in ("topic", "syntax", "client")))
                copies = np.rint(np.bincount(rows, weights, minlength=part.num_rows)).astype(np.int64)
                made = pa.array(copies * part.column("messages").to_numpy())
                yield pa.RecordBatch.from_arrays([*part.columns, made], names=[*part.schema.names, "deliveries"])

    return counted.mapInArrow(count, StructType([*counted.schema.fields, StructField("deliveries", LongType())]))


def windows(counted: DataFrame) -> DataFrame:
    """By time and root: what `per_topic` has counted."""
    return _summed(counted, "start", "root").orderBy("start", "root")


def roots(counted: DataFrame) -> DataFrame:
    """By root, over all the time: the one with the most messages first."""
    return _summed(counted, "root").orderBy(F.desc("messages"), "root")


def hottest(counted: DataFrame, count: int = TOP) -> DataFrame:
    """The topics with the most messages; of equal ones the first by name."""
    summed = _summed(counted, "topic", "syntax", "root").drop("topics")
    return summed.orderBy(F.desc("messages"), "topic", "syntax").limit(count)


def _summed(counted: DataFrame, *by: str) -> DataFrame:
    sums = [name for name in ("messages", "bytes", "deliveries") if name in counted.columns]
    found = counted.groupBy(*by).agg(
        *(F.sum(name).alias(name) for name in sums), F.count_distinct("topic", "syntax").alias("topics")
    )
    return found.select(*by, "messages", "bytes", "topics", *sums[2:])


def report(
    windows: DataFrame, roots: DataFrame, topics: DataFrame, every: str, about: str, between: Between = (None, None),
    zone: str | None = None, hours: Sequence[tuple[Any, ...]] = (),
) -> tuple[Report, int]:  # fmt: skip
    """The page, and how many windows nothing at all passed in.

    What it shows is bounded, and so is what it asks Spark for. between: the times that were asked for. zone: None for
    UTC, and no hours of day. hours: what `by_hour` gave
    """
    fan_out = "deliveries" in roots.columns
    # What was read from files is in no order.
    roots, topics = (frame.orderBy(F.desc("messages"), frame.columns[0]) for frame in (roots, topics))
    sums = roots.agg(*(F.sum(name).alias(name) for name in roots.columns[1:]), F.count("*").alias("roots")).first()
    page = Report("Traffic", about)
    if not sums["messages"]:
        page.answer("There are no messages.")
        return page, 0
    by_time = _over_time(windows, [row.root for row in roots.limit(LINES).collect()])
    step = length_of(windows, every)
    kept = Windows.of(step, every, zone or "UTC")
    silent = kept.outages(row.start for row in by_time)
    _answer(page, sums["messages"], (by_time[0].start, kept.end(by_time[-1].start)), silent, every, kept.zone)
    columns = ["messages", "bytes", "topics", *(["deliveries"] if fan_out else [])]
    page.facts([(name, sums[name] or 0) for name in [*columns, "roots"]])
    shown = _rows(roots.select("root", *columns).limit(SHOWN).collect(), fan_out)
    page.table(["root", *columns, *(["a message"] if fan_out else [])], shown, total=sums["roots"])
    page.section("Over time")
    ends = partial(by_time[0].start, by_time[-1].start, step, between)
    marks = charts.partial_marks(by_time[0].start, by_time[-1].start, step, ends)
    marks += [charts.Mark(begin, end, "nothing") for begin, end in silent]
    page.say("A gap is time in which nothing at all passed. A window that may be there only in part is marked.")
    for what in ("messages", "bytes", *(["deliveries"] if fan_out else [])):
        drawn = charts.lines(_series(by_time, what), y=f"{what} in {every}", step=step, marks=marks)
        page.chart(drawn, f"{what.capitalize()} by topic root")
    if fan_out:
        page.say("Deliveries are the copies that a broker with the subscriptions of the snapshot sends; a queue group "
                 "gets one. What slow consumers lose, and what permissions forbid, is not in it.")  # fmt: skip
    if zone is not None:
        _hours(page, hours, zone)
    page.section("The hottest topics")
    hot = topics.drop("root").limit(SHOWN).collect()
    page.chart(charts.bars([(row.topic, row.messages) for row in hot], "messages"), "Messages of the hottest topics")
    page.table(["topic", "syntax", *topics.columns[3:]], hot, total=sums["topics"])
    return page, sum(kept.count(begin, end) for begin, end in silent)


def _answer(page: Report, messages: int, times: Stretch, silent: list[Stretch], every: str, zone: str) -> None:
    def shown(stretch: Stretch) -> str:
        begin, end = (f"{local_time.local(at, zone):%Y-%m-%d %H:%M}" for at in stretch)
        return f"from {begin} to {end}"

    passed = f"{command.counted(messages, 'message')} passed {shown(times)} {zone}"
    if not silent:
        page.answer(f"{passed}, some in each window of {every}.", found=False)
        return
    longest = shown(max(silent, key=lambda one: one[1] - one[0]))
    stretches = f"one stretch, {longest}" if len(silent) == 1 else f"{len(silent):,} stretches, the longest {longest}"
    page.answer(f"{passed}, and none at all in {stretches}.", found=True)


def by_hour(windows: DataFrame, step: timedelta, zone: str) -> list[tuple[Any, ...]]:
    """(hour of day in the zone, hours that there were, messages, bytes, deliveries if there are any), of 24 hours.

    The hours are those from the first window to the last, with messages or without. Of windows longer than an hour
    nothing is known by hours: none.
    """
    sums = sums_of(windows)
    # In quarters of an hour, which are of one hour of day each: so few rows, whatever the windows are.
    quarter = F.window("start", "15 minutes")["start"].alias("start")
    summed = windows.groupBy(quarter).agg(*(F.sum(name).alias(name) for name in sums)).orderBy("start")
    rows = summed.collect() if step <= HOUR else []
    if not rows:
        return []
    there = local_time.hours_of_day(rows[0].start, rows[-1].start + max(step, local_time.QUARTER), zone)
    found = local_time.by_hour_of_day(rows, sums, zone)
    return [(hour, there[hour], *found[hour].values()) for hour in range(local_time.HOURS)]


def _hours(page: Report, hours: Sequence[tuple[Any, ...]], zone: str) -> None:
    page.section(f"By hour of day in {zone}")
    if not hours:
        page.say("Windows longer than an hour say nothing of the hours of day: take a shorter --every.")
        return
    page.say("Messages an hour, of the hours that there were, with messages or without. An hour that clocks skip is "
             "missing on that day; one that they repeat counts twice.")  # fmt: skip
    drawn = [(f"{hour:02}:00", messages / there if there else 0.0) for hour, there, messages, *_ in hours]
    page.chart(charts.bars(drawn, "messages an hour"), "Messages an hour, by hour of day")


def sums_of(windows: DataFrame) -> list[str]:
    """The columns that can be added up: messages, bytes, deliveries."""
    return [name for name in windows.columns if name not in ("start", "root", "topics")]


def _over_time(windows: DataFrame, lines: list[str]) -> list[Any]:
    """(start, root, sums) of some roots and all others, ascending."""
    sums = sums_of(windows)
    named = windows.withColumn("root", F.when(F.col("root").isin(lines), F.col("root")).otherwise(OTHERS))
    summed = named.groupBy("start", "root").agg(*(F.sum(name).alias(name) for name in sums))
    return list(summed.orderBy("start").collect())


def length_of(windows: DataFrame, every: str) -> timedelta:
    """That of a window."""
    one = F.window(F.timestamp_seconds(F.lit(0)), every)
    found = windows.sparkSession.range(1).select(one.alias("one")).first()
    length: timedelta = found.one.end - found.one.start
    return length


def partial(first: datetime, last: datetime, step: timedelta, between: Between) -> tuple[bool, bool]:
    """Whether the first and the last window may lack messages: the archive, or what was asked for, ends inside them."""
    since, until = ((at if at is None else at.astimezone(UTC).replace(tzinfo=None)) for at in between)
    return since is None or since > first, until is None or until < last + step


def _series(rows: Iterable[Any], what: str) -> dict[str, list[tuple[Any, float | None]]]:
    """A line for each root: 0 where it has no row and another root has one; a gap where nothing at all passed."""
    given = list(rows)
    times = list(dict.fromkeys(row.start for row in given))
    found: dict[str, dict[Any, float | None]] = {}
    for row in given:
        found.setdefault(row.root, dict.fromkeys(times, 0))[row.start] = row[what]
    largest = sorted(found, key=lambda name: (name == OTHERS, -sum(value or 0 for value in found[name].values())))
    return {name: list(found[name].items()) for name in largest}


def _rows(rows: list[Any], fan_out: bool) -> list[tuple[Any, ...]]:
    return [(*row, row.deliveries / row.messages) if fan_out else tuple(row) for row in rows]


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    snapshot = None if options.subscriptions is None else read(options.subscriptions)
    # The publisher is read only where it matters: an archive has it, a broker does not send it.
    client = ["client"] if snapshot and snapshot.no_echo else []
    counted = per_topic(
        command.messages(spark, options, "topic", "syntax", "timestamp", "value", *client), options.every,
        options.zone or "UTC",
    )  # fmt: skip
    if snapshot is not None:
        counted = with_deliveries(counted, snapshot)
    counted.persist()
    made = {"windows": windows(counted), "roots": roots(counted), "topics": hottest(counted, options.top)}
    kept = {name: command.write(frame, options.out / name) for name, frame in made.items()}
    counted.unpersist()
    hours: list[tuple[Any, ...]] = []
    if options.zone is not None:
        hours = by_hour(kept["windows"], length_of(kept["windows"], options.every), options.zone)
        names = ("hour INT, hours DOUBLE", *(f"{name} BIGINT" for name in sums_of(kept["windows"])))
        command.write(spark.createDataFrame(hours, ", ".join(names)), options.out / "hours")
    about = command.described(options)
    between = (options.since, options.until)
    frames = kept["windows"], kept["roots"], kept["topics"]
    page, silent = report(*frames, options.every, about, between, options.zone, hours)
    page.write(options.out / command.REPORT)
    kept["roots"].orderBy(F.desc("messages"), "root").show(SHOWN)
    print(options.out / command.REPORT)
    return command.code(options, silent)


def main(arguments: Sequence[str] | None = None, spark: SparkSession | None = None) -> int:
    example = "python -m fanlight_spark.jobs.traffic /var/lib/fanlight/archive --out traffic --every '10 minutes'"
    parser = command.parser("traffic", __doc__, example)
    add = parser.add_argument
    add("--every", default=EVERY, metavar="TIME", help="of a window: '10 minutes', '1 day' (%(default)s)")
    add("--zone", type=local_time.zone_named, metavar="ZONE", help=f"{local_time.ABOUT} (UTC, without hours of day)")
    add("--subscriptions", type=Path, metavar="FILE", help="a snapshot: count the copies that are sent as well")
    add("--top", type=command.at_least(1), default=TOP, metavar="N", help="hottest topics that are kept (%(default)s)")
    command.add_threshold(parser, "windows of time have no message at all")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
