"""Two snapshots of subscriptions over one archive: who would have got more, or less, with the second.

Written below --out, as Parquet; `before` and `after` are the two snapshots:
    filters    each filter of a client: copies, bytes and topics before and after
    clients    each client: the same in all
    lost       topics that somebody got before and nobody gets after
    gained     topics that nobody got before and somebody gets after

Copies are counted as the broker sends them: deliveries.py says how. Filters that a client has twice are one.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_spark.deliveries import columns_for, deliveries, frame_of, volumes
from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.report import Report
from fanlight_spark.snapshot import Snapshot, read

SHOWN = 20
CLIENT = ["client"]
FILTER = ["client", "filter", "syntax", "group"]
AMOUNTS = ("topics", "messages", "bytes")


class Change(NamedTuple):
    filters: DataFrame
    clients: DataFrame
    lost: DataFrame
    gained: DataFrame


def what_if(messages: DataFrame, before: Snapshot, after: Snapshot) -> Change:
    """What the module says, of messages with the columns `columns_for`. Raises matchcore.InvalidFilter."""
    amounts = volumes(messages, before, after).persist()
    sides = [_received(amounts, snapshot).persist() for snapshot in (before, after)]
    unheard = [_unheard(side) for side in sides]
    return Change(
        compared(amount(sides[0], FILTER), amount(sides[1], FILTER), FILTER),
        compared(amount(sides[0], CLIENT), amount(sides[1], CLIENT), CLIENT),
        unheard[1].join(unheard[0], ["topic", "syntax"], "left_anti"),
        unheard[0].join(unheard[1], ["topic", "syntax"], "left_anti"),
    )


def _received(amounts: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Deliveries with client, filter, syntax and group of the subscription; without, what nobody got."""
    found = deliveries(amounts, snapshot).withColumnRenamed("syntax", "topic_syntax")
    return found.join(frame_of(amounts.sparkSession, snapshot), "subscription", "left")


def amount(received: DataFrame, by: list[str]) -> DataFrame:
    """Copies, bytes and topics by client, or by filter."""
    return received.where("subscription IS NOT NULL").groupBy(*by).agg(
        F.count_distinct("topic", "topic_syntax").alias("topics"),
        F.sum("messages").alias("messages"),
        F.sum("bytes").alias("bytes"),
    )  # fmt: skip


def compared(before: DataFrame, after: DataFrame, by: list[str]) -> DataFrame:
    """Both amounts beside each other, with 0 where there is nothing, and what is more, or less."""
    left = before.select(*(F.col(name).alias(f"_{name}") for name in by), *_named("before"))
    right = after.select(*by, *_named("after"))
    same = F.lit(True)
    for name in by:
        same &= F.col(f"_{name}").eqNullSafe(F.col(name))  # a group may be null
    joined = left.join(right, same, "full")
    sides = [f"{name}_{side}" for name in AMOUNTS for side in ("before", "after")]
    both = joined.select(
        *(F.coalesce(name, f"_{name}").alias(name) for name in by),
        *(F.coalesce(name, F.lit(0)).alias(name) for name in sides),
    )
    return both.withColumns({f"{name}_more": F.col(f"{name}_after") - F.col(f"{name}_before") for name in AMOUNTS})


def _named(side: str) -> list[Any]:
    return [F.col(name).alias(f"{name}_{side}") for name in AMOUNTS]


def _unheard(received: DataFrame) -> DataFrame:
    """(topic, syntax, messages, bytes): topics of which nobody gets anything."""
    by_topic = received.groupBy("topic", F.col("topic_syntax").alias("syntax")).agg(
        F.count("subscription").alias("receivers"), F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes")
    )
    return by_topic.where("receivers = 0").select(
        "topic", "syntax", F.col("messages").cast("bigint"), F.col("bytes").cast("bigint")
    )


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    before, after = read(options.before), read(options.after)
    messages = command.messages(spark, options, *columns_for(before, after))
    found = what_if(messages, before, after)
    written = Change(*(command.write(f, options.out / name) for name, f in zip(Change._fields, found, strict=True)))
    report(written, command.described(options), before, after).write(options.out / command.REPORT)
    columns = ["client", *(f"{name}_{side}" for name in ("messages", "bytes") for side in ("before", "after"))]
    written.clients.orderBy(F.desc(F.abs("bytes_more")), "client").select(*columns).show(SHOWN)
    lost = written.lost.count()
    print(f"{lost:,} topics that nobody gets any more; {options.out / command.REPORT}")
    return command.code(options, lost)


def report(found: Change, about: str, before: Snapshot, after: Snapshot) -> Report:
    page = Report("What if", f"{about}; {_called('before', before)}, {_called('after', after)}")
    sums = [F.sum(f"{name}_{side}") for name in ("messages", "bytes") for side in ("before", "after")]
    copies_before, copies_after, bytes_before, bytes_after = found.clients.agg(*sums).collect()[0]
    lost, gained = found.lost.count(), found.gained.count()
    page.answer(_answer(lost, copies_before or 0, copies_after or 0), found=lost > 0)
    page.facts(
        [
            ("copies before", round(copies_before or 0)), ("copies after", round(copies_after or 0)),
            ("bytes before", round(bytes_before or 0)), ("bytes after", round(bytes_after or 0)),
            ("topics nobody gets any more", lost), ("topics that somebody gets now", gained),
        ]
    )  # fmt: skip
    for title, sign in (("Clients that get more", 1), ("Clients that get less", -1)):
        some = found.clients.where(F.col("bytes_more") * sign > 0).orderBy(F.desc(F.abs("bytes_more")), "client")
        rows = some.limit(SHOWN).collect()
        page.section(title)
        page.table(["client", *_COLUMNS], [(row.client, *_amounts(row)) for row in rows], total=some.count())
        if rows:
            bars = charts.bars([(row.client or "?", abs(row.bytes_more)) for row in rows], "bytes")
            page.chart(bars, f"{title}: bytes")
    page.section("Filters")
    page.say("Those whose copies change most, first. A filter that only one of the snapshots has is 0 in the other.")
    changed = found.filters.where("messages_more <> 0 OR bytes_more <> 0")
    rows = changed.orderBy(F.desc(F.abs("bytes_more")), "client", "filter").limit(SHOWN).collect()
    page.table(
        ["client", "filter", "group", *_COLUMNS], [(r.client, r.filter, r.group, *_amounts(r)) for r in rows],
        total=changed.count(),
    )  # fmt: skip
    lists = (("What nobody gets any more", found.lost, lost), ("What nobody got before", found.gained, gained))
    for title, topics, total in lists:
        page.section(title)
        rows = topics.orderBy(F.desc("messages"), "topic").limit(SHOWN).collect()
        page.table(["topic", "messages", "bytes"], [(row.topic, row.messages, row.bytes) for row in rows], total=total)
    return page


def _answer(lost: int, before: float, after: float) -> str:
    topics = f"{lost:,} topics have receivers before and none after" if lost else "No topic loses its last receiver"
    change = f"; copies go from {before:,.0f} to {after:,.0f}"
    return topics + change + (f", {100 * (after - before) / before:+.1f} %." if before else ".")


_COLUMNS = ["copies before", "after", "bytes before", "after", "topics before", "after"]


def _amounts(row: Any) -> list[float]:
    return [
        number if number % 1 > 1e-6 else round(number)
        for name in ("messages", "bytes", "topics")
        for number in (row[f"{name}_before"], row[f"{name}_after"])
    ]


def _called(name: str, snapshot: Snapshot) -> str:
    taken = f", taken {snapshot.taken}" if snapshot.taken else ""
    return f"{name} {len(snapshot.subscriptions):,} subscriptions{taken}"


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = "python -m fanlight_spark.jobs.whatif archive --before now.jsonl --after planned.jsonl --out whatif"
    parser = command.parser("whatif", __doc__ or "", example)
    for name, about in (("--before", "a snapshot: python -m fanlight_spark.snapshot URL FILE"), ("--after", "another")):
        parser.add_argument(name, type=Path, required=True, metavar="FILE", help=about)
    command.add_threshold(parser, "topics have receivers before and none after")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
