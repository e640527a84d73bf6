"""What fell silent, or is not as it was: topics, publishers and the archive as a whole against their own history.

The last part of the time, --recent, is judged by all before it. Written below --out, as Parquet:
    findings   kind (topic, publisher, everything), name, what, begin, end (null: it goes on), usual, found, score
    histories  kind, name, first, last, messages, usual_gap in seconds, null if too little is known of it

what is silent (usual and found in seconds, score in usual gaps), rate (messages in --every; score in deviations), size
(mean bytes) or new. Time in which nothing at all was archived counts for no topic: it is a finding of `everything`.

exit codes: 0 done, 1 more than --fail-above findings, 2 wrong arguments or files
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_archive.arrow import pa
from fanlight_spark import workers
from fanlight_spark.decisions import beginning
from fanlight_spark.histories import EPOCH, LONGER, SECOND, Clock, Finding, History, Rules, findings, rates, silences
from fanlight_spark.histories import usual_gap as usual_gap_of
from fanlight_spark.jobs import command, local_time
from fanlight_spark.jobs.silence_report import report
from fanlight_spark.jobs.traffic import length_of

EVERY, RECENT, USUAL = "1 hour", timedelta(days=1), Rules()
SHOWN: Final = 20
WINDOWS_MAX: Final = 100_000  # of an archive: what is kept of each topic are at most so many numbers
COLUMNS: Final = ("topic", "syntax", "timestamp", "value", "client")
FOUND: Final = (
    "kind STRING, name STRING, what STRING, begin TIMESTAMP, end TIMESTAMP, usual DOUBLE, found DOUBLE, score DOUBLE"
)
KEY: Final = ("kind", "name")


class Compared(NamedTuple):
    """What the job has found out. windows: kind, name, start, messages, bytes, for charts."""

    findings: DataFrame
    histories: DataFrame
    windows: DataFrame
    clock: Clock


def sightings(messages: DataFrame, levels: int = 0) -> DataFrame:
    """(kind, name, at, bytes): each message as one of its topic, and as one of its publisher if that is known.

    at: microseconds since 1970. levels: words of a topic that count, 0 for all of them. Not of `$SYS` and `$audit`.
    """
    at, size = F.unix_micros("timestamp").alias("at"), F.octet_length("value").alias("bytes")
    kinds = [F.struct(F.lit("topic").alias("kind"), beginning(levels).alias("name"))]
    if "client" in messages.columns:
        kinds.append(F.struct(F.lit("publisher").alias("kind"), F.col("client").alias("name")))
    plain = messages.where(~F.col("topic").rlike(r"^\$(SYS|audit)"))
    each = plain.select(at, size, F.explode(F.array(*kinds)).alias("of"))
    return each.select("of.kind", "of.name", "at", "bytes").where("name IS NOT NULL AND name <> ''")


def judge(
    seen: DataFrame, every: timedelta, recent: timedelta, end: int | None, zone: str, rules: Rules
) -> Compared | None:
    """What `sightings` has, judged; None if there is nothing. end: until when messages are known, if not the last.

    Raises ValueError where there are more windows than WINDOWS_MAX, or the zone is not known.
    """
    step = every // timedelta(microseconds=1)
    start = (F.floor(F.col("at") / step) * step).alias("start")
    per_window = seen.groupBy(*KEY, start).agg(F.count("*").alias("messages"), F.sum("bytes").alias("bytes"))
    total = seen.where("kind = 'topic'").groupBy(start).agg(
        F.count("*").alias("messages"), F.sum("bytes").alias("bytes"), F.min("at").alias("first"),
        F.max("at").alias("last"),
    ).orderBy("start").limit(WINDOWS_MAX + 1).toArrow()  # fmt: skip
    if not total.num_rows:
        return None
    whole = {name: total.column(name).to_numpy().astype(np.int64) for name in total.column_names}
    end = int(whole["last"][-1]) if end is None else max(end, int(whole["last"][-1]))
    begin = int(whole["first"][0])
    windows = (end - begin) // step + 1
    if max(windows, total.num_rows) > WINDOWS_MAX:
        raise ValueError(f"{windows:,} windows are more than {WINDOWS_MAX:,}: take a longer --every, or --from")
    judged_from = end - min(recent // timedelta(microseconds=1), (end - begin) // 2)
    clock = Clock.of(whole["start"], step, judged_from, end, zone)
    spark = seen.sparkSession
    live = spark.createDataFrame(pa.table({"start": clock.starts, "place": np.arange(len(clock.starts))}))
    told = _histories(seen, per_window, live, clock, rules, start)
    found = told.mapInArrow(lambda batches: _judge(batches, clock, rules), FOUND)
    all_of_it = spark.createDataFrame(pa.Table.from_pylist(_everything(whole, clock, rules), schema=_schema()))
    known = told.select(
        *KEY, F.timestamp_micros("first").alias("first"), F.timestamp_micros("last").alias("last"), "messages",
        F.when(F.col("gaps") >= rules.least, F.col("usual_gap") / SECOND).alias("usual_gap"),
    )  # fmt: skip
    charted = per_window.withColumn("start", F.timestamp_micros("start"))
    return Compared(found.unionByName(all_of_it), known, charted, clock)


def _histories(
    seen: DataFrame, per_window: DataFrame, live: DataFrame, clock: Clock, rules: Rules, start: Any
) -> DataFrame:
    """A row for each topic and publisher: what `History` has."""
    from pyspark.sql import Window

    placed = seen.withColumn("start", start).join(F.broadcast(live), "start")
    passed = placed.select(*KEY, "at", (F.col("place") * clock.every + F.col("at") - F.col("start")).alias("there"))
    order = Window.partitionBy(*KEY).orderBy("at")
    gaps = passed.select(
        *KEY, "at", F.lag("at").over(order).alias("begin"), (F.col("there") - F.lag("there").over(order)).alias("gap")
    )  # fmt: skip
    before = F.when(F.col("at") < clock.recent, F.col("gap"))
    long = F.when(F.col("gap") >= int(rules.gap_least / LONGER), F.struct("begin", F.col("at").alias("end")))
    of_gaps = gaps.groupBy(*KEY).agg(
        F.min("at").alias("first"), F.max("at").alias("last"), F.count("*").alias("messages"),
        F.coalesce(F.percentile(before, 0.5, F.coalesce("gap", F.lit(0))), F.lit(0.0)).alias("usual_gap"),
        F.count(before).alias("gaps"), F.sort_array(F.collect_list(long)).alias("long"),
    )  # fmt: skip
    window = F.struct("place", F.col("messages").alias("count"), F.col("bytes").alias("octets"))
    of_windows = per_window.join(F.broadcast(live), "start").groupBy(*KEY).agg(
        F.sort_array(F.collect_list(window)).alias("windows")
    )  # fmt: skip
    return of_gaps.join(of_windows, list(KEY))


def _judge(batches: Iterator[Any], clock: Clock, rules: Rules) -> Iterator[Any]:
    workers.settle()
    for batch in batches:
        rows = []
        for row in range(batch.num_rows):
            told = {name: batch.column(name)[row] for name in batch.schema.names}
            windows, long = told["windows"].values, told["long"].values
            places, counts, octets = (windows.field(name).to_numpy() for name in ("place", "count", "octets"))
            begins, ends = (long.field(name).to_numpy() for name in ("begin", "end"))
            first, last, usual, gaps = (told[name].as_py() for name in ("first", "last", "usual_gap", "gaps"))
            history = History(first, last, places, counts, octets, begins, ends, usual, gaps)
            rows += _rows(told["kind"].as_py(), told["name"].as_py(), findings(history, clock, rules))
        yield from pa.Table.from_pylist(rows, schema=_schema()).to_batches()


def _rows(kind: str, name: str, found: list[Finding]) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind, "name": name, **one._asdict(),
            "usual": one.usual if one.usual is None or one.what != "silent" else one.usual / SECOND,
            "found": one.found if one.what != "silent" else one.found / SECOND,
        }
        for one in found
    ]  # fmt: skip


def _schema() -> Any:
    time = pa.timestamp("us", tz="UTC")
    text, number = pa.string(), pa.float64()
    types = {"kind": text, "name": text, "what": text, "begin": time, "end": time, "usual": number, "found": number,
             "score": number}  # fmt: skip
    return pa.schema(list(types.items()))


def _everything(whole: dict[str, Any], clock: Clock, rules: Rules) -> list[dict[str, Any]]:
    """What is to be said of the archive as a whole, by its windows: silent are only those without any message."""
    begin, last = int(whole["first"][0]), int(whole["last"][-1])
    dense = np.arange(clock.starts[0], clock.end + 1, clock.every, dtype=np.int64)
    by_time = Clock.of(dense, clock.every, clock.recent, clock.end)
    between = whole["first"][1:] - whole["last"][:-1]
    apart = np.diff(clock.starts) > clock.every
    # The gaps inside a window are not known one by one, only how many there are in how much time.
    inside = (whole["last"] - whole["first"]) // np.maximum(whole["messages"] - 1, 1)
    known = np.concatenate([between, np.repeat(inside, np.minimum(whole["messages"], 1_000))])
    history = History(
        begin, last, np.searchsorted(dense, clock.starts), whole["messages"], whole["bytes"],
        whole["last"][:-1][apart], whole["first"][1:][apart], usual_gap_of(known), int(whole["messages"].sum()) - 1,
    )  # fmt: skip
    places = np.arange(len(clock.starts))
    live = History(begin, last, places, history.counts, history.octets, history.begins[:0], history.ends[:0], 0, 0)
    quiet = silences(history, by_time, rules)
    return _rows("everything", "", [*quiet, *rates(live, clock, rules, quiet)])


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    columns = COLUMNS[:-1] if options.input.startswith(command.BROKERS) else COLUMNS
    messages = command.messages(spark, options, *columns)
    seen = sightings(messages, options.levels).persist()
    every = length_of(seen, options.every)
    recent = RECENT if options.recent is None else length_of(seen, options.recent)
    end = None if options.until is None else int((options.until - EPOCH) / timedelta(microseconds=1))
    rules = Rules(options.factor, options.score, options.least)
    made = judge(seen, every, recent, end, options.zone, rules)
    if made is None:
        raise ValueError(f"{options.input}: no messages to be judged")
    found = command.write(made.findings, options.out / "findings")
    known = command.write(made.histories, options.out / "histories")
    page, said, count = report(found, known, made.windows, made.clock, options.every, command.described(options))
    page.write(options.out / command.REPORT)
    seen.unpersist()
    print(said)
    print(options.out / command.REPORT)
    return command.code(options, count)


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = "python -m fanlight_spark.jobs.silence /var/lib/fanlight/archive --recent '1 day' --out silence"
    parser = command.parser("silence", __doc__ or "", example)
    add = parser.add_argument
    add("--recent", metavar="TIME", help="what is judged: the last '1 day' (default), at most half of the time")
    add("--every", default=EVERY, metavar="TIME", help="of a window, for rates and sizes (%(default)s)")
    about_zone = "of the hours of day, such as America/New_York (%(default)s)"
    add("--zone", type=local_time.zone_named, default="UTC", metavar="ZONE", help=about_zone)
    add("--levels", type=command.at_least(0), default=0, metavar="N", help="count by the first N words of topics (all)")
    about = "usual gaps that a silence is longer than (%(default)s)"
    add("--factor", type=command.at_least(2), default=USUAL.factor, metavar="N", help=about)
    about = "deviations that a rate or a size is away (%(default)s)"
    add("--score", type=command.at_least(2), default=USUAL.score, metavar="N", help=about)
    about = "messages before, for silences to be known (%(default)s)"
    add("--least", type=command.at_least(2), default=USUAL.least, metavar="N", help=about)
    command.add_threshold(parser, "findings")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
