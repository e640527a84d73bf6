"""What subscriptions cost and need not: redundant ones, ones that could be one, ones that never match.

What each proposal saves is measured: the messages of the archive are given to the subscriptions as they are, and as
they would be. Written below --out, as Parquet:
    redundant  subscriptions that another one of their client covers, and what they get twice
    merges     filters of one client that differ in one word, the one that could take their place, and what it lets in
    idle       subscriptions that no message of the archive was for
    keyed      selectors that ask one field for one value each: the value could be a word of the topic

exit codes: 0 done, 1 more than --fail-above subscriptions could go, 2 wrong arguments or files
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_archive.arrow import pa
from fanlight_spark import merging
from fanlight_spark.coverage import coverage
from fanlight_spark.deliveries import columns_for, deliveries, utf8_text, volumes
from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.report import Report
from fanlight_spark.snapshot import Snapshot, Subscription, read

SHOWN: Final = 20
WHO: Final = ("client", "user", "filter", "syntax")


class Volume(NamedTuple):
    """What is delivered: copies, and their bytes."""

    messages: float
    bytes: float


class Proposals(NamedTuple):
    """What could change. got: of each subscription without a selector, by its place; `after`: of each merge."""

    plain: Snapshot  # those without a selector
    redundant: list[int]
    covered_by: dict[int, str]
    merges: list[merging.Merge]
    keyed: list[merging.Keyed]
    got: dict[int, Volume]
    after: list[Volume]
    before: Volume
    then: Volume

    @property
    def idle(self) -> list[int]:
        return [place for place in range(len(self.plain.subscriptions)) if place not in self.got]

    @property
    def fewer(self) -> int:
        """Subscriptions that there would be less."""
        return len(self.redundant) + sum(len(each.places) - 1 for each in self.merges)


def proposals(messages: DataFrame, snapshot: Snapshot, least: int = merging.LEAST) -> Proposals:
    """What the module says, of messages with the columns `columns_for`. Raises matchcore.InvalidFilter."""
    plain = replace(snapshot, subscriptions=tuple(each for each in snapshot.subscriptions if each.where is None))
    redundant = merging.without_redundant(plain)
    own, _ = coverage(plain)
    merges = merging.merges(plain, least, leave=redundant)
    then = merging.with_merges(plain, redundant, merges)
    amounts = volumes(messages, plain).persist()
    got, after = _by_subscription(amounts, plain), _by_subscription(amounts, then)
    kept = len(then.subscriptions) - len(merges)
    covered_by = {place: "the same filter" if (by := own[place]) is None else by[0].decode("utf-8", "backslashreplace")
                  for place in redundant}  # fmt: skip
    return Proposals(
        plain, redundant, covered_by, merges, merging.keyed(snapshot, least), got,
        [after.get(kept + number, Volume(0, 0)) for number in range(len(merges))], _sum(got), _sum(after),
    )  # fmt: skip


def _by_subscription(amounts: DataFrame, snapshot: Snapshot) -> dict[int, Volume]:
    found = deliveries(amounts, snapshot).where("subscription IS NOT NULL").groupBy("subscription").agg(
        F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes")
    )  # fmt: skip
    table = found.toArrow().to_pydict()
    return {
        place: Volume(messages, octets)
        for place, messages, octets in zip(table["subscription"], table["messages"], table["bytes"], strict=True)
    }


def _sum(volumes: dict[int, Volume]) -> Volume:
    return Volume(sum(each.messages for each in volumes.values()), sum(each.bytes for each in volumes.values()))


def tables(found: Proposals) -> dict[str, Any]:
    """Each result as an Arrow table, by its name."""
    none = Volume(0, 0)
    given = found.plain.subscriptions
    redundant = [
        {**_who(given[place]), "covered_by": found.covered_by[place], **found.got.get(place, none)._asdict()}
        for place in found.redundant
    ]
    merges = []
    for each, after in zip(found.merges, found.after, strict=True):
        before = _sum({place: found.got.get(place, none) for place in each.places})
        merges.append({
            **_who(each.made), "instead_of": len(each.places),
            "filters": [given[place].shown for place in each.places[:SHOWN]],
            "messages": before.messages, "bytes": before.bytes, "more_messages": after.messages - before.messages,
            "more_bytes": after.bytes - before.bytes,
        })  # fmt: skip
    keyed = [
        {"filter": each.filter, "syntax": each.syntax, "field": each.field, "subscriptions": len(each.places),
         "values": each.values}
        for each in found.keyed
    ]  # fmt: skip
    who = [pa.field(name, pa.string()) for name in WHO]
    volume = [pa.field("messages", pa.float64()), pa.field("bytes", pa.float64())]
    schemas = {
        "redundant": pa.schema([*who, pa.field("covered_by", pa.string()), *volume]),
        "merges": pa.schema([
            *who, pa.field("instead_of", pa.int64()), pa.field("filters", pa.list_(pa.string())), *volume,
            pa.field("more_messages", pa.float64()), pa.field("more_bytes", pa.float64()),
        ]),
        "idle": pa.schema(who),
        "keyed": pa.schema([
            pa.field("filter", pa.string()), pa.field("syntax", pa.string()), pa.field("field", pa.string()),
            pa.field("subscriptions", pa.int64()), pa.field("values", pa.int64()),
        ]),
    }  # fmt: skip
    rows = {
        "redundant": redundant, "merges": merges, "idle": [_who(given[place]) for place in found.idle], "keyed": keyed,
    }  # fmt: skip
    return {name: pa.Table.from_pylist(rows[name], schema=schema) for name, schema in schemas.items()}


def _who(each: Subscription) -> dict[str, str]:
    return {
        "client": utf8_text(each.client), "user": utf8_text(each.user), "filter": each.shown, "syntax": each.syntax,
    }  # fmt: skip


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    snapshot = read(options.subscriptions)
    found = proposals(command.messages(spark, options, *columns_for(snapshot)), snapshot, options.least)
    made = tables(found)
    for name, table in made.items():
        command.write(spark.createDataFrame(table), options.out / name)
    said = answer(found)
    report(found, made, said, command.described(options)).write(options.out / command.REPORT)
    print(said)
    print(options.out / command.REPORT)
    return command.code(options, found.fewer)


def answer(found: Proposals) -> str:
    count, saved = len(found.plain.subscriptions), found.before.messages - found.then.messages
    change = f"{saved:,.0f} fewer" if saved >= 0 else f"{-saved:,.0f} more"
    return (
        f"{found.fewer:,} of {count:,} subscriptions could go: {len(found.redundant):,} are redundant, and "
        f"{len(found.merges):,} filters would do for {sum(len(each.places) for each in found.merges):,} others; "
        f"of {found.before.messages:,.0f} copies that is {change}."
    )


def report(found: Proposals, made: dict[str, Any], said: str, about: str) -> Report:
    page = Report("Subscriptions", about)
    page.answer(said, found=found.fewer > 0)
    selectors = sum(len(each.places) for each in found.keyed)
    page.facts([
        ("subscriptions", len(found.plain.subscriptions)), ("redundant", len(found.redundant)),
        ("proposed filters", len(found.merges)), ("never matched", len(found.idle)),
        ("copies", round(found.before.messages)), ("copies then", round(found.then.messages)),
        ("bytes", round(found.before.bytes)), ("bytes then", round(found.then.bytes)),
    ])  # fmt: skip
    merges = made["merges"].to_pylist()
    page.table(
        ["client", "one filter", "instead of", "copies of them", "copies more", "bytes more"],
        [
            (row["client"], row["filter"], row["instead_of"], round(row["messages"]), round(row["more_messages"]),
             round(row["more_bytes"]))
            for row in merges[:SHOWN]
        ],
        total=len(merges),
    )  # fmt: skip
    if merges:
        bars = [(f"{row['client']}: {row['filter']}", row["instead_of"] - 1) for row in merges[:SHOWN]]
        page.chart(charts.bars(bars, "subscriptions"), "Subscriptions fewer, by proposed filter")
    page.section("Redundant subscriptions")
    page.say("Another filter of the same client matches everything that these do. A native client gets such messages "
             "twice; an MQTT client may have asked for another QoS.")  # fmt: skip
    rows = sorted(made["redundant"].to_pylist(), key=lambda row: (-row["bytes"], row["client"], row["filter"]))
    page.table(
        ["client", "filter", "covered by", "copies", "bytes"],
        [(r["client"], r["filter"], r["covered_by"], round(r["messages"]), round(r["bytes"])) for r in rows[:SHOWN]],
        total=len(rows),
    )
    page.section("Filters that never matched")
    idle = made["idle"].to_pylist()
    page.table(list(WHO), [tuple(row.values()) for row in idle[:SHOWN]], total=len(idle))
    page.section("Selectors that could be topics")
    page.say(f"{selectors:,} selectors ask a field for one value. A topic with that value as a word finds its "
             "subscribers by a hash, and nothing is looked at in the message.")  # fmt: skip
    keyed = made["keyed"].to_pylist()
    page.table(list(made["keyed"].column_names), [tuple(row.values()) for row in keyed[:SHOWN]], total=len(keyed))
    return page


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = "python -m fanlight_spark.jobs.subscriptions archive --subscriptions now.jsonl --out subscriptions"
    parser = command.parser("subscriptions", __doc__ or "", example)
    add = parser.add_argument
    about = "a snapshot: python -m fanlight_spark.snapshot URL FILE"
    add("--subscriptions", type=Path, required=True, metavar="FILE", help=about)
    about = "how many filters one has to take the place of (%(default)s)"
    add("--least", type=command.at_least(2), default=merging.LEAST, metavar="N", help=about)
    command.add_threshold(parser, "subscriptions could go")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
