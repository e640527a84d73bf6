"""Bars of ticks of any decoder: open, high, low, close, volume, VWAP and count by time, ticks or volume.

decoders.toml says what payloads hold, and --key, --price, --size and --time which columns of it count. Below --out:
    bars                  key, start, end, open, high, low, close, volume, vwap, count       of all messages
    stream, checkpoint    with --stream, which goes on where it was: a row whenever a bar has changed, with its
                          `revision`; the last one counts. report.html is written anew with every batch

exit codes: 0 done, 1 more than --fail-above messages could not be read, 2 wrong arguments or files
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from fanlight_spark.bars import Every, TickColumns, bars, corrected, latest, readable, ticks, unreadable
from fanlight_spark.decoding.file import Decoders, load
from fanlight_spark.jobs import bar_stream, command, local_time
from fanlight_spark.jobs.bar_report import Counts, report
from fanlight_spark.tables import decode

EVERY, LATE = "1 minute", "1 hour"
SHOWN: Final = 6
COLUMNS: Final = ("offset", "topic", "syntax", "timestamp", "value")


def watched(ticks: DataFrame, observation: Observation | str) -> DataFrame:
    """The same; who runs it learns how many messages there were, and how many of them could not be read."""
    return ticks.observe(
        observation, F.count("*").alias("messages"), F.count_if(unreadable()).alias("unreadable")
    )


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    every, roles, decoders = Every.of(options.every), _roles(options), load(options.decoders)
    if options.stream and (every.kind != "time" or roles.id is not None):
        raise ValueError("--stream makes bars by time, of ticks as they are: leave it out for ticks, volume and --id")
    roles = roles._replace(time=roles.time or decoders.one(options.table).time)
    title = f"Bars of {every.text}"
    if options.stream:
        stream = watched(_ticks(command.stream(spark, options, *COLUMNS), decoders, options, roles), "ticks")
        live = bar_stream.Live(options.out, roles.key, title, command.described(options), options.trigger is not None)
        asked = {"every": options.every, "zone": options.zone, "filter": options.filter, "syntax": options.syntax,
                 "table": options.table, **roles._asdict()}  # fmt: skip
        counts = bar_stream.run(stream, every, options.zone, live, asked, options.late, options.trigger)
        made = latest(live.revisions(spark))
    else:
        read, kept = Observation("ticks"), Observation("kept")
        found = readable(watched(_ticks(command.messages(spark, options, *COLUMNS), decoders, options, roles), read))
        found = (corrected(found) if roles.id else found).observe(kept, F.count("*").alias("kept"))
        made = command.write(bars(found, every, options.zone), options.out / "bars")
        told = read.get
        counts = Counts(told["messages"], told["unreadable"], told["messages"] - told["unreadable"] - kept.get["kept"])
    page = report(made, counts, title, command.described(options), roles.key, options.zone)
    page.write(options.out / command.REPORT)
    shown = made.withColumn("vwap", F.round("vwap", 4)).withColumnRenamed("key", roles.key).drop("end")
    shown.orderBy(F.desc("start"), F.desc_nulls_last("volume"), roles.key).show(SHOWN)
    more = f", {counts.late:,} too late" if options.stream else ""
    more += f", {counts.corrected:,} corrected" if roles.id else ""
    print(f"{counts.messages:,} messages, {counts.unreadable:,} unreadable{more}; {options.out / command.REPORT}")
    return command.code(options, counts.unreadable + counts.late)


def _ticks(messages: DataFrame, decoders: Decoders, options: argparse.Namespace, roles: TickColumns) -> DataFrame:
    return ticks(decode(messages, decoders, options.table), roles)


def _roles(options: argparse.Namespace) -> TickColumns:
    return TickColumns(**{name: getattr(options, name) for name in TickColumns._fields})


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = ("python -m fanlight_spark.jobs.bars archive --decoders decoders.toml --key ticker --price price "
               "--size size --every '1 minute' --out bars")  # fmt: skip
    parser = command.parser("bars", __doc__ or "", example)
    add = parser.add_argument
    add("--decoders", type=Path, required=True, metavar="FILE", help="what payloads hold: docs/pipeline-decoding.md")
    add("--table", metavar="NAME", help="of the file, if it has several")
    add("--key", required=True, metavar="COLUMN", help="whose bars: ticker")
    add("--price", required=True, metavar="COLUMN", help="of a tick, and the close of one that is a bar")
    add("--size", metavar="COLUMN", help="how much of it, for volume and VWAP")
    add("--time", metavar="COLUMN", help="when it was (what the decoder has as time, else when the broker got it)")
    add("--id", metavar="COLUMN", help="of messages of a key with the same one the last counts: corrections")
    for name in ("open", "high", "low"):
        add(f"--{name}", metavar="COLUMN", help="of ticks that are bars themselves")
    add("--every", default=EVERY, metavar="WHAT", help="'7 days', '100 ticks', '1e6 volume' (%(default)s)")
    about_zone = "where days begin, such as America/New_York (%(default)s)"
    add("--zone", type=local_time.zone_named, default="UTC", metavar="ZONE", help=about_zone)
    add("--stream", action="store_true", help="as a stream, from where it was; without it, all there is")
    about = "--stream: how late a message may be and still change its bar (%(default)s)"
    add("--late", default=LATE, metavar="TIME", help=about)
    add("--trigger", metavar="TIME", help="--stream: go on and on, so often; else it ends when all is read")
    command.add_threshold(parser, "messages cannot be read, or are too late")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
