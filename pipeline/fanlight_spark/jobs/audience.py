"""Who gets what, and what for: the subscriptions of a snapshot over what an archive has.

Written below --out, as Parquet:
    filters    each subscription: what it gets, its share, whether another makes it redundant
    clients    each client: the same in all, and how many of its subscriptions get nothing
    spread     each client and first word of a topic: who pays for what
    roots      each first word of a topic: what was published, how many copies it makes, what nobody gets

Copies are counted as the broker sends them: deliveries.py says how.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_archive.arrow import pa
from fanlight_spark.coverage import Spelled, coverage
from fanlight_spark.deliveries import columns_for, deliveries, frame_of, volumes
from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.report import Report
from fanlight_spark.jobs.roots import root
from fanlight_spark.snapshot import Snapshot, read

SHOWN = 20


class Audience(NamedTuple):
    filters: DataFrame
    clients: DataFrame
    spread: DataFrame
    roots: DataFrame


def audience(messages: DataFrame, snapshot: Snapshot) -> Audience:
    """What the module says, of messages with the columns `columns_for`. Raises matchcore.InvalidFilter."""
    amounts = volumes(messages, snapshot).persist()
    per = per_root(deliveries(amounts, snapshot)).persist()
    who = _with_coverage(frame_of(messages.sparkSession, snapshot), snapshot)
    filters = by_filter(per, who)
    return Audience(filters, by_client(filters), by_client_and_root(per, who), by_root(amounts, per))


def per_root(deliveries: DataFrame) -> DataFrame:
    """(subscription, root, topics, messages, bytes)."""
    return deliveries.groupBy("subscription", root().alias("root")).agg(
        F.count_distinct("topic", "syntax").alias("topics"),
        F.sum("messages").alias("messages"),
        F.sum("bytes").alias("bytes"),
    )


def by_filter(per: DataFrame, who: DataFrame) -> DataFrame:
    """Each subscription with what it gets, also if that is nothing, and its share of all copies."""
    got = per.where("subscription IS NOT NULL").groupBy("subscription").agg(
        F.sum("topics").alias("topics"), F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes")
    )  # fmt: skip
    return _with_shares(who.join(got, "subscription", "left").fillna(0, ["topics", "messages", "bytes"]))


def by_client(filters: DataFrame) -> DataFrame:
    """Each client. idle: subscriptions that got nothing."""
    return _with_shares(
        filters.groupBy("client", "user").agg(
            F.count("*").alias("subscriptions"),
            F.count_if(F.col("messages") == 0).alias("idle"),
            F.count("covered_by_own").alias("redundant"),
            F.sum("messages").alias("messages"),
            F.sum("bytes").alias("bytes"),
        )
    )


def by_client_and_root(per: DataFrame, who: DataFrame) -> DataFrame:
    return per.join(who.select("subscription", "client", "user"), "subscription").groupBy("client", "user", "root").agg(
        F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes")
    )  # fmt: skip


def by_root(amounts: DataFrame, per: DataFrame) -> DataFrame:
    """published: messages; copies: of them; unheard: those that nobody got."""
    published = amounts.groupBy(root().alias("root")).agg(
        F.count_distinct("topic", "syntax").alias("topics"),
        F.sum("messages").alias("published"),
        F.sum("bytes").alias("published_bytes"),
    )
    heard = F.col("subscription").isNotNull()
    copies = per.groupBy("root").agg(
        F.sum(F.when(heard, F.col("messages")).otherwise(0)).alias("copies"),
        F.sum(F.when(heard, F.col("bytes")).otherwise(0)).alias("copied_bytes"),
        F.sum(F.when(heard, 0).otherwise(F.col("messages"))).cast("bigint").alias("unheard"),
    )
    return published.join(copies, "root")


def _with_shares(frame: DataFrame) -> DataFrame:
    """Each row's share of all messages and bytes."""
    total = frame.agg(F.sum("messages").alias("all_messages"), F.sum("bytes").alias("all_bytes"))
    share = {
        f"{name}_share": F.when(F.col(f"all_{name}") > 0, F.col(name) / F.col(f"all_{name}")).otherwise(0.0)
        for name in ("messages", "bytes")
    }
    return frame.crossJoin(F.broadcast(total)).withColumns(share).drop("all_messages", "all_bytes")


def _with_coverage(who: DataFrame, snapshot: Snapshot) -> DataFrame:
    """covered_by_own, covered_by: a filter of the same client, of anybody, that matches all that this one does.

    same: subscriptions with this very filter, itself too.
    """
    own, anybody = coverage(snapshot)
    counts: dict[Spelled, int] = {}
    spelled = [(text, syntax) for text, _, syntax, _ in snapshot.filters()]
    for each in spelled:
        counts[each] = counts.get(each, 0) + 1
    columns = {
        "subscription": pa.array(range(len(spelled)), pa.int64()),
        "covered_by_own": pa.array([_shown(each) for each in own], pa.string()),
        "covered_by": pa.array([_shown(each) for each in anybody], pa.string()),
        "same": pa.array([counts[each] for each in spelled], pa.int64()),
    }
    return who.join(who.sparkSession.createDataFrame(pa.table(columns)), "subscription")


def _shown(spelled: Spelled | None) -> str | None:
    return None if spelled is None else spelled[0].decode("utf-8", "backslashreplace")


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    snapshot = read(options.subscriptions)
    messages = command.messages(spark, options, *columns_for(snapshot))
    found = audience(messages, snapshot)
    written = Audience(*(command.write(f, options.out / name) for name, f in zip(Audience._fields, found, strict=True)))
    page, useless = report(written, command.described(options), snapshot)
    page.write(options.out / command.REPORT)
    rounded = [F.round(name).cast("bigint").alias(name) for name in ("messages", "bytes")]
    most = written.clients.select("client", "subscriptions", "idle", "redundant", *rounded)
    most.orderBy(F.desc("bytes"), "client").show(SHOWN)
    print(options.out / command.REPORT)
    return command.code(options, useless)


def report(found: Audience, about: str, snapshot: Snapshot) -> tuple[Report, int]:
    """The page, and how many subscriptions got nothing or are covered by another of their client."""
    page = Report("Audience", f"{about}; {len(snapshot.subscriptions):,} subscriptions" + _taken(snapshot))
    roots = found.roots.orderBy(F.desc("copied_bytes"), "root").limit(SHOWN).collect()
    sums = [F.sum(name) for name in ("published", "copies", "copied_bytes", "unheard")]
    total = found.roots.agg(*sums, F.count("*")).collect()[0]
    nothing, covered = F.col("messages") == 0, F.col("covered_by_own").isNotNull()
    idle, redundant, useless = found.filters.agg(
        F.count_if(nothing), F.count_if(covered), F.count_if(nothing | covered)
    ).collect()[0]
    page.answer(
        f"{useless:,} of {len(snapshot.subscriptions):,} subscriptions could go: {idle:,} got nothing, "
        f"{redundant:,} are covered by another of their own client.", found=useless > 0,
    )  # fmt: skip
    page.facts(
        [
            ("messages published", total[0] or 0), ("copies delivered", round(total[1] or 0)),
            ("bytes delivered", round(total[2] or 0)), ("messages that nobody got", total[3] or 0),
            ("subscriptions that got nothing", idle), ("covered by their own client's", redundant),
        ]
    )  # fmt: skip
    clients = found.clients.orderBy(F.desc("bytes"), "client").limit(SHOWN).collect()
    page.table(
        ["client", "user", "subscriptions", "got nothing", "copies", "bytes", "share of bytes, %"],
        [
            (r.client, r.user, r.subscriptions, r.idle, _n(r.messages), _n(r.bytes), 100 * r.bytes_share)
            for r in clients
        ],
        total=found.clients.count(),
    )
    page.say(
        "A copy is a message that one subscription gets. Of a queue group each member is given its part of one copy; "
        "of an MQTT client whose filters overlap, each filter is given its part."
    )
    page.chart(charts.bars([(row.client or "?", row.bytes) for row in clients], "bytes"), "Bytes, by client")
    page.section("By the first word of the topic")
    page.table(
        ["root", "topics", "published", "copies", "copies of each", "bytes delivered", "nobody got"],
        [
            (r.root, r.topics, r.published, _n(r.copies), r.copies / r.published, _n(r.copied_bytes), r.unheard)
            for r in roots
        ],
        total=total[4],
    )
    paid = [(r.root, r.copied_bytes) for r in roots]
    page.chart(charts.bars(paid, "bytes"), "Bytes delivered, by the first word of the topic")
    _filters(page, found.filters, idle, redundant)
    return page, useless


def _filters(page: Report, filters: DataFrame, idle: int, redundant: int) -> None:
    most = filters.orderBy(F.desc("bytes"), "filter", "client").limit(SHOWN).collect()
    page.section("The filters that get most")
    page.table(
        ["client", "filter", "group", "topics", "copies", "bytes", "share of bytes, %"],
        [(r.client, r.filter, r.group, r.topics, _n(r.messages), _n(r.bytes), 100 * r.bytes_share) for r in most],
    )
    for title, chosen, total, sentence in (
        ("Filters that got nothing", F.col("messages") == 0, idle,
         "In the time that was looked at no message was theirs."),
        (
            "Filters that their own client makes redundant", F.col("covered_by_own").isNotNull(), redundant,
            "Another filter of the same client matches everything that these do. A native client gets such messages "
            "twice; an MQTT client may have asked for another QoS.",
        ),
    ):  # fmt: skip
        page.section(title)
        page.say(sentence)
        page.table(
            ["client", "filter", "copies", "covered by its own", "covered by anybody's", "with the same filter"],
            [
                (r.client, r.filter, _n(r.messages), r.covered_by_own, r.covered_by, r.same)
                for r in filters.where(chosen).orderBy("client", "filter").limit(SHOWN).collect()
            ],
            total=total,
        )


def _n(value: float) -> float | int:
    """A number of copies: whole where it is."""
    return round(value) if abs(value - round(value)) < 1e-6 else value


def _taken(snapshot: Snapshot) -> str:
    return f", taken {snapshot.taken}" if snapshot.taken else ""


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = "python -m fanlight_spark.jobs.audience archive --subscriptions subscriptions.jsonl --out audience"
    parser = command.parser("audience", __doc__ or "", example)
    about = "a snapshot: python -m fanlight_spark.snapshot URL FILE"
    parser.add_argument("--subscriptions", type=Path, required=True, metavar="FILE", help=about)
    command.add_threshold(parser, "subscriptions got nothing, or are covered by another of their client")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
