"""Bars of the market's prices: open, high, low, close, volume and count of each ticker in each stretch of time.

Messages are those of `make demo`: a JSON object with ticker, date, open, high, low, close and volume. A bar is of the
time in the message, not the time of publication; messages of equal time are in the order of their offsets.
What a message leaves out, it leaves out; one that names no ticker or no time is counted as unreadable. A payload may
come from anybody: no payload, whatever it contains, ends the job.

Below --out:
    bars                  ticker, start, open, high, low, close, volume, count        from all messages there are
    stream, checkpoint    the same with --stream, which goes on where it was: each bar once, when the watermark has
                          passed its end. A message that comes later than that is dropped, and counted
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.report import Report

EVERY, LATE = "7 days", "7 days"
PAYLOAD: Final = "ticker STRING, date STRING, open DOUBLE, high DOUBLE, low DOUBLE, close DOUBLE, volume BIGINT"
SHOWN: Final = 6  # tickers that get a plot
ROWS: Final = 20
PROGRESS: Final = "spark.sql.streaming.numRecentProgressUpdates"
BATCHES_MAX: Final = 10_000  # of a run, of which counts are kept
YEARS: Final = (1000, 8999)  # so that what Python has times for, 1 to 9999, has room for the windows about them
SETTINGS: Final = "stream.json"  # below --out: what the stream that goes on there was begun with


def quotes(messages: DataFrame) -> DataFrame:
    """(ticker, at, offset, open, high, low, close, volume) of messages with offset and value.

    ticker or at is null where a payload has none; at also where its year is outside YEARS.
    """
    parsed = F.from_json(F.col("value").cast("string"), PAYLOAD, {"allowNonNumericNumbers": "false"})
    read = messages.select("offset", parsed.alias("parsed")).select("offset", "parsed.*")
    time = F.try_to_timestamp("date")
    at = F.when(F.year(time).between(*YEARS), time).alias("at")
    return read.select("ticker", at, "offset", "open", "high", "low", "close", "volume")


def readable(quotes: DataFrame) -> DataFrame:
    return quotes.where("ticker IS NOT NULL AND at IS NOT NULL")


def begin_of(every: str) -> str:
    """Where bars begin, after 1970-01-01, which was a Thursday: those of whole weeks on Mondays."""
    number, _, unit = every.strip().lower().partition(" ")
    days = int(number) * (7 if unit.startswith("week") else 1) if number.isdigit() else 0
    return "4 days" if days and days % 7 == 0 and unit.rstrip("s") in ("day", "week") else "0 days"


def bars(quotes: DataFrame, every: str = EVERY) -> DataFrame:
    """(ticker, start, open, high, low, close, volume, count) of quotes; volume is null if it is no BIGINT any more."""
    order = F.struct("at", "offset")
    window = F.window("at", every, startTime=begin_of(every))
    return (
        quotes.groupBy("ticker", window.alias("window"))
        .agg(
            F.min_by("open", F.when(F.col("open").isNotNull(), order)).alias("open"),
            F.max("high").alias("high"),
            F.min("low").alias("low"),
            F.max_by("close", F.when(F.col("close").isNotNull(), order)).alias("close"),
            F.try_sum("volume").alias("volume"),
            F.count("*").alias("count"),
        )
        .select("ticker", F.col("window.start").alias("start"), "open", "high", "low", "close", "volume", "count")
    )


def watched(quotes: DataFrame, observation: Observation | str) -> DataFrame:
    """The same; who runs it learns how many messages there were, and how many of them could not be read."""
    unreadable = F.count_if(F.col("ticker").isNull() | F.col("at").isNull())
    return quotes.observe(observation, F.count("*").alias("messages"), unreadable.alias("unreadable"))


@dataclass(frozen=True, slots=True)
class Counts:
    """What a run has done with the messages."""

    messages: int = 0
    unreadable: int = 0
    late: int = 0  # dropped by the watermark


def run_stream(
    stream: DataFrame, out: Path, *, every: str = EVERY, late: str = LATE, trigger: dict[str, Any] | None = None
) -> Counts:
    """Bars of a stream of messages into out/stream, as far as there are messages; or on and on, with another trigger.

    late: how much older a message may be than the newest before it; what is older is dropped if its bar is closed.
    """
    stream.sparkSession.conf.set(PROGRESS, str(BATCHES_MAX))
    timely = readable(watched(quotes(stream), "quotes")).withWatermark("at", late)
    query = (
        bars(timely, every)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(**(trigger or {"availableNow": True}))
        .start(str(out / "stream"))
    )
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        if trigger is None:
            raise
        # How one that goes on and on is ended.
    finally:
        query.stop()
    return counts_of(query.recentProgress)


def counts_of(progress: Sequence[Any]) -> Counts:
    """The sums over the batches of a query."""
    seen = [one.observedMetrics["quotes"] for one in progress if "quotes" in one.observedMetrics]
    return Counts(
        sum(row["messages"] for row in seen),
        sum(row["unreadable"] for row in seen),
        sum(state.numRowsDroppedByWatermark for one in progress for state in one.stateOperators),
    )


def report(bars: DataFrame, counts: Counts, every: str, about: str, streamed: bool) -> Report:
    page = Report(f"Prices, bars of {every}", about)
    totals = bars.agg(F.count("*").alias("bars"), F.count_distinct("ticker").alias("tickers")).first()
    lost = counts.unreadable + counts.late
    page.answer(
        f"{totals['bars']:,} bars of {totals['tickers']:,} tickers, from {counts.messages:,} messages; {lost:,} were "
        "unreadable or too late.", found=lost > 0,
    )  # fmt: skip
    facts = [("messages", counts.messages), ("bars", totals["bars"]), ("tickers", totals["tickers"]),
             ("unreadable", counts.unreadable)]  # fmt: skip
    page.facts([*facts, ("dropped, too late", counts.late)] if streamed else facts)
    if streamed:
        page.say("Messages are those of the last run, bars those of all. A bar is written when the watermark has "
                 "passed its end; the newest are still to come.")  # fmt: skip
    by_volume = bars.groupBy("ticker").agg(F.try_sum("volume").alias("volume"), F.sum("count").alias("count"))
    largest = by_volume.orderBy(F.desc_nulls_last("volume"), "ticker").limit(ROWS).collect()
    shown = [row.ticker for row in largest[:SHOWN]]
    rows: dict[str, list[Any]] = {ticker: [] for ticker in shown}
    wanted = bars.where(F.col("ticker").isin(shown)).dropna(subset=["open", "high", "low", "close"])
    newest = wanted.orderBy(F.desc("start")).limit(SHOWN * charts.CANDLES_MAX).collect()
    for row in reversed(newest):
        label = f"{row.start:%Y-%m-%d %H:%M}".removesuffix(" 00:00")
        volume = None if row.volume is None else float(row.volume)
        rows[row.ticker].append(charts.Candle(label, row.open, row.high, row.low, row.close, volume))
    page.table(["ticker", "volume", "messages"], largest, total=totals["tickers"])
    page.section("The tickers with the most volume")
    for ticker, candles in rows.items():
        page.chart(charts.candles(candles, ticker), f"{ticker}: filled where it fell")
    return page


def work(spark: SparkSession, options: argparse.Namespace) -> None:
    if options.stream:
        _same_as_before(options)
        trigger = {"processingTime": options.trigger} if options.trigger else None
        messages = command.stream(spark, options, "offset", "value")
        counts = run_stream(messages, options.out, every=options.every, late=options.late, trigger=trigger)
        made = spark.read.parquet(str(options.out / "stream"))
    else:
        observation = Observation("quotes")
        found = readable(watched(quotes(command.messages(spark, options, "offset", "value")), observation))
        made = command.write(bars(found, options.every), options.out / "bars")
        counts = Counts(**observation.get)
    page = report(made, counts, options.every, command.described(options), options.stream)
    page.write(options.out / command.REPORT)
    made.orderBy(F.desc("start"), F.desc_nulls_last("volume"), "ticker").show(SHOWN)
    late = f", {counts.late:,} dropped, too late" if options.stream else ""
    print(f"{counts.messages:,} messages, {counts.unreadable:,} unreadable{late}; {options.out / command.REPORT}")


def _same_as_before(options: argparse.Namespace) -> None:
    """Raises ValueError where the stream was begun with other windows or topics: bars of both would be mixed."""
    asked = {name: getattr(options, name) for name in ("every", "filter", "syntax")}
    path = options.out / SETTINGS
    try:
        was = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        options.out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asked) + "\n", encoding="utf-8")
        return
    for name, value in asked.items():
        if was.get(name) != value:
            raise ValueError(f"{options.out}/stream was begun with {name} {was.get(name)}, not {value}: "
                             "take another folder")  # fmt: skip


def main(arguments: Sequence[str] | None = None, spark: SparkSession | None = None) -> int:
    example = "python -m fanlight_spark.jobs.ohlc /var/lib/fanlight/archive --filter 'stock.#' --out bars"
    parser = command.parser("ohlc", __doc__, example)
    add = parser.add_argument
    add("--every", default=EVERY, metavar="TIME", help="of a bar: '1 day'; weeks begin on Mondays (%(default)s)")
    add("--stream", action="store_true", help="as a stream, from where it was; without it, all there is")
    add("--late", default=LATE, metavar="TIME", help="--stream: how late a message may be (%(default)s)")
    add("--trigger", metavar="TIME", help="--stream: go on and on, so often; else it ends when all is read")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
