"""Learn what the load of an archive is like, and make one like it, at any scale, for `fanlight bench load replay`.

Written below --out:
    model.json            the model: topic tree, popularity, rates over time, bursts, payload sizes, publishers
    recording.jsonl.gz    a load made by it: at, topic, bytes, publisher (left out with --messages 0)
    report.html           the model for people

INPUT may be a model.json of an earlier run, too: then only a recording is made, without Spark.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.load_making import make, names, write
from fanlight_spark.jobs.load_model import PROBABILITIES, Kind, Level, Model, load, zipf
from fanlight_spark.jobs.report import Report

KINDS_MAX: Final = 200
SHOWN: Final = 20
INTERVALS: Final = 1_440  # at most: minutes of a day
MESSAGES_MIN: Final = 20  # in an interval, on average: the gaps inside it are looked at
NAMES: Final = 1_000  # words of a level that keep their names
MESSAGES: Final = 1_000_000  # of a recording, as many as a replay takes
KIND: Final = ["root", "length"]


def learn(messages: DataFrame, *, names_max: int = NAMES, intervals: int = INTERVALS) -> Model:
    """The model of messages with topic, syntax, timestamp, value and perhaps client. ValueError: no messages."""
    seen = _seen(messages).persist()
    begin, end, count = seen.agg(F.min("micros"), F.max("micros"), F.count("*")).collect()[0]
    if not count:
        raise ValueError("there are no messages to learn from")
    seconds = (end - begin) / 1e6
    interval = max(seconds / intervals, 1.0, seconds * MESSAGES_MIN / count)
    kinds = seen.groupBy(*KIND).count().orderBy(F.desc("count"), *KIND).limit(KINDS_MAX).collect()
    rates, variation = _arrivals(seen, begin, interval, max(ceil(seconds / interval), 1))
    popularity, levels, payloads = _popularity(seen), _levels(seen, names_max), _payloads(seen)
    learned = [
        _kind(each["count"] / count, (each.root, each.length), popularity, levels, payloads) for each in kinds
    ]
    left_out = 1 - sum(kind.share for kind in learned) if len(kinds) == KINDS_MAX else 0.0
    seen.unpersist()
    return Model(count, seconds, interval, rates, variation, tuple(learned), left_out)


def _seen(messages: DataFrame) -> DataFrame:
    """(words, name, root, length, client, micros, size): what is looked at of each message.

    client is "" where messages do not have it: one publisher.
    """
    client = F.coalesce("client", F.lit("")) if "client" in messages.columns else F.lit("")
    words = F.when(F.col("syntax") == "mqtt", F.split("topic", "/")).otherwise(F.split("topic", r"\."))
    return messages.select(
        words.alias("words"),
        client.alias("client"),
        F.unix_micros("timestamp").alias("micros"),
        F.octet_length("value").alias("size"),
    ).select(
        "*",
        F.array_join("words", "\x00").alias("name"),
        F.col("words")[0].alias("root"),
        F.size("words").alias("length"),
    )


def _arrivals(seen: DataFrame, begin: int, interval: float, count: int) -> tuple[tuple[float, ...], float]:
    """Messages/s of each interval; and how much the gaps inside one vary, as a part of their mean."""
    place = F.least(F.floor((F.col("micros") - F.lit(begin)) / F.lit(interval * 1e6)), F.lit(count - 1))
    placed = seen.select(place.alias("place"), "micros")
    gap = F.col("micros") - F.lag("micros").over(Window.partitionBy("place").orderBy("micros"))
    rows = (
        placed.select("place", gap.alias("gap")).groupBy("place")
        .agg(F.count("*").alias("messages"), F.avg("gap").alias("mean"), F.var_pop("gap").alias("variance"))
        .collect()
    )  # fmt: skip
    rates = [0.0] * count
    for row in rows:
        rates[row.place] = row.messages / interval
    # Each interval's own mean, so that a rate that changes over time is not taken for bursts.
    known = [(row.messages - 1, row.variance / row.mean**2) for row in rows if row.messages > 2 and row.mean]
    gaps = sum(weight for weight, _ in known)
    return tuple(rates), (sum(weight * square for weight, square in known) / gaps) ** 0.5 if gaps else 1.0


def _popularity(seen: DataFrame) -> dict[Any, Any]:
    """Of each kind how many topics, and the sum of their messages' logarithms of ranks."""
    topics = seen.groupBy(*KIND, "name").agg(F.count("*").alias("messages"))
    rank = F.row_number().over(Window.partitionBy(*KIND).orderBy(F.desc("messages")))
    found = topics.select(*KIND, "messages", rank.alias("rank")).groupBy(*KIND).agg(
        F.count("*").alias("topics"),
        F.sum("messages").alias("messages"),
        F.sum(F.col("messages") * F.log("rank")).alias("log_ranks"),
    )  # fmt: skip
    return {(row.root, row.length): row for row in found.collect()}


def _levels(seen: DataFrame, names_max: int) -> dict[Any, list[Level]]:
    """Of each kind its levels, and the most frequent words of each."""
    topics = seen.groupBy(*KIND, "words").agg(F.count("*").alias("messages"))
    every = topics.select(*KIND, "words", "messages", F.posexplode("words").alias("at", "word"))
    node = F.array_join(F.slice("words", F.lit(1), F.col("at") + 1), "\x00")
    nodes = every.groupBy(*KIND, "at").agg(F.count_distinct(node).alias("nodes"))
    words = every.groupBy(*KIND, "at", "word").agg(F.sum("messages").alias("messages"))
    by_place = Window.partitionBy(*KIND, "at")
    ranked = words.select(
        *KIND, "at", "word",
        F.row_number().over(by_place.orderBy(F.desc("messages"), "word")).alias("rank"),
        F.count("*").over(by_place).alias("words"),
    ).where(F.col("rank") <= max(names_max, 1))  # fmt: skip
    named = ranked.groupBy(*KIND, "at").agg(
        F.first("words").alias("words"), F.array_sort(F.collect_list(F.struct("rank", "word"))).alias("named")
    )
    found: dict[Any, list[Level]] = {}
    for row in nodes.join(named, [*KIND, "at"]).orderBy(*KIND, "at").collect():
        called = names(each.word for each in row.named) if names_max or row["at"] == 0 else ()
        found.setdefault((row.root, row.length), []).append(Level(row.nodes, row.words, called))
    return found


def _payloads(seen: DataFrame) -> dict[Any, Any]:
    """Of each kind the sizes, and who publishes."""
    found = seen.groupBy(*KIND).agg(
        F.percentile("size", F.array(*(F.lit(each) for each in PROBABILITIES))).alias("sizes"),
        F.avg("size").alias("mean"),
        F.count_distinct("client").alias("publishers"),
        F.count_distinct("name", "client").alias("pairs"),
    )
    return {(row.root, row.length): row for row in found.collect()}


def _kind(share: float, key: Any, popularity: Any, levels: Any, payloads: Any) -> Kind:
    many, sizes = popularity[key], payloads[key]
    exponent, error = zipf(many.messages, many.log_ranks, many.topics)
    (root,) = names([key[0]]) or (key[0],)
    return Kind(
        root=root, share=share, topics=many.topics, levels=tuple(levels[key]),
        exponent=round(exponent, 4), exponent_error=round(error, 4),
        sizes=tuple(sizes.sizes), mean_bytes=round(sizes.mean, 2),
        publishers=sizes.publishers, publishers_per_topic=round(sizes.pairs / many.topics, 4),
    )  # fmt: skip


def work(spark: SparkSession, options: argparse.Namespace) -> None:
    # A broker does not send the publisher.
    client = [] if options.input.startswith(command.BROKERS) else ["client"]
    messages = command.messages(spark, options, "topic", "syntax", "timestamp", "value", *client)
    about = command.described(options)
    model = replace(learn(messages, names_max=options.names), learned={"from": about})
    model.save(options.out / "model.json")
    report(model, about).write(options.out / command.REPORT)
    for kind in model.kinds[:SHOWN]:
        tree = " ".join(str(level.nodes) for level in kind.levels)
        print(f"{kind.root}: {kind.share:.1%} of the messages, nodes of each level {tree}, exponent {kind.exponent}")
    print(f"{model.rate:,.1f} messages/s, gaps vary by {model.gap_variation:.2f}; {options.out / command.REPORT}")
    _record(model, options)


def _record(model: Model, options: argparse.Namespace) -> None:
    """Raises ValueError, OSError."""
    if options.messages:
        load = make(model, scale=options.scale, seed=options.seed, messages=options.messages)
        written = write(load, options.out / "recording.jsonl.gz")
        cut = "; more were to come, but for --messages" if written == options.messages else ""
        print(f"{options.out / 'recording.jsonl.gz'}: {written:,} messages{cut}")


def report(model: Model, about: str) -> Report:
    page = Report("Workload", about)
    page.answer(
        f"{model.rate:,.1f} messages/s over {model.seconds:,.0f} s; the gaps between messages vary by "
        f"{model.gap_variation:.2f}, where chance makes 1."
    )
    page.facts(
        [
            ("messages", model.messages), ("seconds", model.seconds), ("messages/s", model.rate),
            ("topics", sum(kind.topics for kind in model.kinds)), ("variation of gaps", model.gap_variation),
        ]
    )  # fmt: skip
    page.say("A variation of 1 is what chance makes (Poisson); less is regular, more comes in bursts.")
    page.section("Kinds of topics")
    page.say(
        "A kind is a first word and a number of words. Its popularity is Zipf's law: the exponent is 0 where all "
        "topics have as many messages, and near 1 where a few have most."
    )
    page.table(
        ["root", "words", "share, %", "topics", "nodes of each level", "words of each level", "exponent", "± error"],
        [
            (
                kind.root, len(kind.levels), 100 * kind.share, kind.topics,
                " · ".join(f"{level.nodes:,}" for level in kind.levels),
                " · ".join(f"{level.words:,}" for level in kind.levels), kind.exponent, kind.exponent_error,
            )
            for kind in model.kinds
        ],
    )  # fmt: skip
    times = [(at * model.interval, rate) for at, rate in enumerate(model.rates)]
    drawn = charts.lines({"messages/s": times}, x="seconds from the first message", y="messages/s")
    page.chart(drawn, "Rate over time")
    page.section("Payloads and publishers")
    wanted = [PROBABILITIES.index(each) for each in (0.0, 0.5, 0.9, 0.99, 1.0)]
    page.table(
        ["root", "words", "mean bytes", "least", "p50", "p90", "p99", "most", "publishers", "of a topic"],
        [
            (kind.root, len(kind.levels), kind.mean_bytes, *(kind.sizes[at] for at in wanted),
             kind.publishers, kind.publishers_per_topic)
            for kind in model.kinds
        ],
    )  # fmt: skip
    return page


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = "python -m fanlight_spark.jobs.workload archive --out load --scale 10\n  fanlight bench load replay"
    example += " --set file=load/recording.jsonl.gz"
    parser = command.parser("workload", __doc__ or "", example)
    add, count = parser.add_argument, command.at_least(0)
    add("--scale", type=float, default=1.0, metavar="N", help="of the recording: N times rate, topics, publishers (1)")
    add("--seed", type=count, default=0, metavar="N", help="another one, another recording (0)")
    add("--messages", type=count, default=MESSAGES, metavar="N", help=f"of the recording at most; 0: none ({MESSAGES})")
    add("--names", type=count, default=NAMES, metavar="N", help=f"words of each level that keep their names ({NAMES})")
    options = parser.parse_args(arguments)
    if not Path(options.input).is_file():
        return command.run(parser, work, arguments, spark)
    try:
        _record(load(Path(options.input)), options)
    except (ValueError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return command.WRONG
    return command.OK


if __name__ == "__main__":
    sys.exit(main())
