"""Who got it: the messages of an archive with the subscriptions that there were when each passed.

The broker has to run with audit_topics, and to archive them: archive_topics = "#, $audit.#". Written below --out,
as Parquet: `recipients`, a row for each message and each subscription that it was for; `nobody`, the messages that were
for no one. outcome is sent, queued (a session whose client was away, a queue), missed (QoS 0 while it was away), or
group (one member of it).

exit codes: 0 done, 1 with --client or --user: a message was not for it, 2 wrong arguments, or no audit topics
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_archive import MESSAGE
from fanlight_spark import trail
from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.report import Report
from fanlight_spark.recipients import COLUMNS, asks_content, recipients

NOT_ALL: Final = 1  # exit code
TOP: Final = 20


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    known = read_trail(spark, options)
    if known.first is None:
        raise ValueError(
            f"{options.input}: no messages below $audit: start the broker with --audit-topics and "
            "--archive-topics '#, $audit.#'"
        )
    columns = ("offset", *MESSAGE.names) if asks_content(known) else COLUMNS
    messages = command.messages(spark, options, *columns).where(~F.col("topic").rlike(r"^\$(SYS|audit)/"))
    messages = messages.where(F.col("offset") > known.first).persist()
    found = recipients(messages, known)
    for name in ("client", "user"):
        if getattr(options, name) is not None:
            found = found.where(F.col(name) == getattr(options, name))
    got = command.write(found, options.out / "recipients")
    nobody = messages.select(*COLUMNS).join(got.select("offset").distinct(), "offset", "left_anti")
    left = command.write(nobody, options.out / "nobody")
    missing, total = left.count(), messages.count()
    by_client = outcomes(got)
    asked = options.client or options.user
    whose = "no one" if asked is None else f"others than {asked}"
    page = report(known, by_client, left, missing, total, command.described(options), whose)
    page.write(options.out / command.REPORT)
    by_client.show(options.top, truncate=False)
    print(f"{total:,} messages, {missing:,} of them for {whose}")
    if known.lost:
        print(f"note: {known.lost:,} audit messages were lost: some subscriptions are not known")
    print(options.out / command.REPORT)
    return NOT_ALL if asked is not None and missing else command.OK


def read_trail(spark: SparkSession, options: argparse.Namespace) -> trail.Trail:
    """What the audit topics say, of the whole archive whatever --from, --until and --filter are."""
    given = {**vars(options), "filter": trail.FILTER[0], "syntax": trail.FILTER[1], "since": None, "until": None}
    rows = command.messages(spark, argparse.Namespace(**given), "offset", "topic", "value")
    rows = rows.where(F.col("topic").startswith(trail.ROOT)).orderBy("offset")
    said = ((row.offset, row.topic, bytes(row.value)) for row in rows.toLocalIterator())
    return trail.Trail.of(trail.said_by(said))


def outcomes(got: DataFrame) -> DataFrame:
    """(client, user, outcome, messages), the largest first."""
    counted = got.groupBy("client", "user", "outcome").agg(F.count("*").alias("messages"))
    return counted.orderBy(F.desc("messages"), "client", "user", "outcome")


def report(
    known: trail.Trail, by_client: DataFrame, nobody: DataFrame, missing: int, total: int, about: str, whose: str
) -> Report:
    page = Report("Who got it", about)
    rows = by_client.limit(TOP).collect()
    page.answer(f"{missing:,} of {total:,} messages were for {whose}.", found=missing > 0)
    page.facts([("messages", total), (f"for {whose}", missing), ("subscriptions", len(known.subscriptions))])
    page.table(by_client.columns, rows, total=by_client.count())
    if rows:
        bars = [(f"{row.client}: {row.outcome}", row.messages) for row in rows]
        page.chart(charts.bars(bars, "messages"), "By client")
    page.section(f"Messages for {whose}")
    first = nobody.orderBy("offset").select("offset", "timestamp", "topic", "client").limit(TOP)
    page.table(first.columns, first.collect(), total=missing)
    return page


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = "python -m fanlight_spark.jobs.recipients archive --filter 'stock.#' --client desk --out who"
    parser = command.parser("recipients", __doc__ or "", example)
    add = parser.add_argument
    add("--client", metavar="NAME", help="only what was for this client; exit code 1 if a message was not")
    add("--user", metavar="NAME", help="the same for a user")
    add("--top", type=command.at_least(1), default=TOP, metavar="N", help="rows that are shown (%(default)s)")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
