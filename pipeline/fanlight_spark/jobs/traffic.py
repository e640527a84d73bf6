"""How much passed: messages, bytes and distinct topics by topic root and time, and the hottest topics.

Below --out, as Parquet:
    windows   start, root, messages, bytes, topics     a row for each root and window of time
    roots     root, messages, bytes, topics            the same over all the time
    topics    topic, syntax, root, messages, bytes     the hottest, by messages
With --subscriptions FILE, which `python -m fanlight_spark.snapshot` takes of a broker, each has deliveries: how many
copies a broker with these subscriptions sends.

A root is the first word of a topic. Windows are of UTC, by the time at which the broker got a message.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from fanlight_archive.arrow import pa
from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.report import Report
from fanlight_spark.jobs.roots import root
from fanlight_spark.matching import ROWS_AT_ONCE
from fanlight_spark.shares import shares, terms_of
from fanlight_spark.snapshot import Snapshot, read

Between = tuple[datetime | None, datetime | None]
Stretch = tuple[datetime, datetime]
EVERY, TOP = "1 hour", 1_000
SHOWN: Final = 20  # roots and topics of the report
LINES: Final = 7  # roots that get a line of their own in a plot
OTHERS: Final = "all others"


def per_topic(messages: DataFrame, every: str = EVERY) -> DataFrame:
    """(start, topic, syntax, client, root, messages, bytes) of messages with topic, syntax, timestamp and value.

    What all the rest is made of: much less than there are messages. A topic in another spelling is another topic.
    client is the publisher's if the messages have it, otherwise null.
    """
    start = F.window("timestamp", every)["start"].alias("start")
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
    windows: DataFrame, roots: DataFrame, topics: DataFrame, every: str, about: str, between: Between = (None, None)
) -> tuple[Report, int]:
    """The page, and how many windows nothing at all passed in.

    What it shows is bounded, and so is what it asks Spark for. between: the times that were asked for.
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
    silent = outages([row.start for row in by_time], step)
    _answer(page, sums["messages"], (by_time[0].start, by_time[-1].start + step), silent, every)
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
    page.section("The hottest topics")
    hot = topics.drop("root").limit(SHOWN).collect()
    page.chart(charts.bars([(row.topic, row.messages) for row in hot], "messages"), "Messages of the hottest topics")
    page.table(["topic", "syntax", *topics.columns[3:]], hot, total=sums["topics"])
    return page, sum((end - begin) // step for begin, end in silent)


def _answer(page: Report, messages: int, times: tuple[datetime, datetime], silent: list[Stretch], every: str) -> None:
    passed = f"{messages:,} messages passed from {times[0]:%Y-%m-%d %H:%M} to {times[1]:%Y-%m-%d %H:%M} UTC"
    if not silent:
        page.answer(f"{passed}, some in each window of {every}.", found=False)
        return
    begin, end = max(silent, key=lambda one: one[1] - one[0])
    page.answer(f"{passed}, and none at all in {len(silent):,} stretches, the longest from "
                f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}.", found=True)  # fmt: skip


def outages(starts: Iterable[datetime], step: timedelta) -> list[Stretch]:
    """Between windows that have messages, the stretches of one window or more that have none, ascending."""
    passed = sorted(set(starts))
    return [(one + step, other) for one, other in pairwise(passed) if other - one > step]


def _over_time(windows: DataFrame, lines: list[str]) -> list[Any]:
    """(start, root, sums) of some roots and all others, ascending."""
    sums = [name for name in windows.columns if name not in ("start", "root", "topics")]
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
        command.messages(spark, options, "topic", "syntax", "timestamp", "value", *client), options.every
    )
    if snapshot is not None:
        counted = with_deliveries(counted, snapshot)
    counted.persist()
    made = {"windows": windows(counted), "roots": roots(counted), "topics": hottest(counted, options.top)}
    kept = {name: command.write(frame, options.out / name) for name, frame in made.items()}
    counted.unpersist()
    about = command.described(options)
    between = (options.since, options.until)
    page, silent = report(kept["windows"], kept["roots"], kept["topics"], options.every, about, between)
    page.write(options.out / command.REPORT)
    kept["roots"].orderBy(F.desc("messages"), "root").show(SHOWN)
    print(options.out / command.REPORT)
    return command.code(options, silent)


def main(arguments: Sequence[str] | None = None, spark: SparkSession | None = None) -> int:
    example = "python -m fanlight_spark.jobs.traffic /var/lib/fanlight/archive --out traffic --every '10 minutes'"
    parser = command.parser("traffic", __doc__, example)
    add = parser.add_argument
    add("--every", default=EVERY, metavar="TIME", help="of a window: '10 minutes', '1 day' (%(default)s)")
    add("--subscriptions", type=Path, metavar="FILE", help="a snapshot: count the copies that are sent as well")
    add("--top", type=command.at_least(1), default=TOP, metavar="N", help="hottest topics that are kept (%(default)s)")
    command.add_threshold(parser, "windows of time have no message at all")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
