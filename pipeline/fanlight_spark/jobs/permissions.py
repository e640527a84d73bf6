"""Permissions tried on what was archived: what a new file of rules decides differently, before it is put in force.

    messages       of each message: may its client connect, publish, retain it, and name a topic for the reply?
    subscriptions  of each subscription of a snapshot: is its filter allowed, in part, or not?
    deliveries     of each message that such a subscription's filter matches: may it be delivered there?

Each is decided twice, by --against and by --rules, and counted by user, action, topic and rule where the decisions
differ. Without --against everything was allowed before. An archive has the client that published and its protocol, not
its user: --subscriptions, --clients, --users and --as say who it is, and those that nothing names are anonymous.

exit codes: 0 nothing is decided differently, 1 something is, 2 wrong arguments or files, 130 interrupted
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from fanlight_archive import MESSAGE
from fanlight_archive.arrow import pa
from fanlight_spark.askers import OWN_NAME, askers_of
from fanlight_spark.decisions import (
    BY,
    COLUMNS,
    DELIVERED,
    Judging,
    decided,
    decided_by_content,
    deliveries,
    differing,
    kinds,
)
from fanlight_spark.deliveries import utf8_text
from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.report import Report
from fanlight_spark.judging import Judge, Judged, RuleFile
from fanlight_spark.snapshot import Snapshot, read

DIFFERENT: Final = 1  # exit code
TOP: Final = 20
CELL_MAX: Final = 60  # letters, on the terminal
OWN_RULES: Final = "rules that clients bring in tokens, or get by auth_url, are known from --clients alone"
UNSEEN: Final = frozenset({"certificate", "address", "listener"})  # what an archive does not have, and rules may ask
SUBSCRIPTION: Final = pa.schema(
    [
        *(
            pa.field(name, pa.string())
            for name in (
                "user", "client", "filter", "syntax", "group", "before", "rule_before", "denied_before", "after",
                "rule_after", "denied_after",
            )
        )
    ]
)  # fmt: skip


FRAMES: Final = ("messages", "subscriptions", "deliveries")


class DryRun(NamedTuple):
    """messages, deliveries: as `differing` has them. subscriptions: SUBSCRIPTION. facts: how much was decided."""

    messages: DataFrame
    subscriptions: DataFrame
    deliveries: DataFrame
    facts: dict[str, int]
    notes: list[str]


def dry_run(
    messages: DataFrame, judging: Judging, snapshot: Snapshot | None = None, whole: DataFrame | None = None, *,
    levels: int = 0, refuse_partly: bool = False,
) -> DryRun:  # fmt: skip
    """What the module says, of messages with COLUMNS. Raises matchcore.InvalidFilter.

    whole: the same with all columns of an archive, for rules that ask what a message says
    """
    judge = judging.judge()
    judged = [judge.subscription(each, refuse_partly) for each in (snapshot.subscriptions if snapshot else ())]
    changed = [each for each in judged if each.before.access != each.after.access]
    asked = [each for each in judged if each.in_part or each in changed]
    counted = kinds(messages).persist()
    every = decided(counted, judging).persist()
    if judge.asks_content:
        said = decided_by_content(messages if whole is None else whole, every, judging)
        every = every.where("NOT content").unionByName(said).persist()
    spark = messages.sparkSession
    got = deliveries(counted, asked, judging) if asked else spark.createDataFrame([], DELIVERED)
    rows = pa.Table.from_pylist([_subscription(each) for each in changed], SUBSCRIPTION)
    facts = _facts(every) | {"subscriptions": len(judged), "subscriptions_differ": len(changed)}
    notes = list(_notes(judge, snapshot, facts["unknown"]))
    return DryRun(differing(every, levels), spark.createDataFrame(rows), differing(got, levels), facts, notes)


def _subscription(each: Judged) -> dict[str, str | None]:
    given = each.subscription
    return {
        "user": utf8_text(given.user), "client": utf8_text(given.client), "filter": given.shown,
        "syntax": given.syntax, "group": None if given.group is None else utf8_text(given.group),
        "before": each.before.access, "rule_before": each.before.rule, "denied_before": each.before.denied_by,
        "after": each.after.access, "rule_after": each.after.rule, "denied_after": each.after.denied_by,
    }  # fmt: skip


def _notes(judge: Judge, snapshot: Snapshot | None, unknown: int) -> Iterator[str]:
    """What is decided as if it were not known, and what is not looked at."""
    for name in sorted(judge.conditions & UNSEEN):
        yield f"rules ask for {name}, which an archive does not have: only --clients can say it"
    if unknown:
        yield f"{unknown:,} messages are of clients that nothing names, decided as anonymous ones: --clients, --as"
    if snapshot is not None and snapshot.selectors:
        yield f"{snapshot.selectors:,} subscriptions have selectors, which are not asked: they may get less"
    yield OWN_RULES


def _facts(every: DataFrame) -> dict[str, int]:
    def messages(condition: str) -> Any:
        return F.coalesce(F.sum(F.when(F.expr(condition), F.col("messages"))), F.lit(0))

    row = every.agg(
        messages("true").alias("messages"),
        messages("NOT known").alias("unknown"),
        messages("before AND NOT after").alias("denied_now"),
        messages("after AND NOT before").alias("allowed_now"),
    ).collect()[0]
    return dict(row.asDict())


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    if options.input.startswith(command.BROKERS):
        raise ValueError("a broker does not say who published: read the folder of its archive")
    if options.group and options.publisher is None:
        raise ValueError("--group is a group of the user of --as")
    snapshot = None if options.subscriptions is None else read(options.subscriptions)
    judging = Judging(
        None if options.against is None else RuleFile.read(options.against), RuleFile.read(options.rules),
        askers_of(options.clients, options.users, snapshot, options.publisher, frozenset(options.group)),
    )  # fmt: skip
    narrow, whole = (command.messages(spark, options, *names) for names in (COLUMNS, MESSAGE.names))
    partly = options.subscribe_partly == "refuse"
    found = dry_run(narrow, judging, snapshot, whole, levels=options.levels, refuse_partly=partly)
    if options.strict and found.facts["unknown"]:
        raise ValueError(f"{found.facts['unknown']:,} messages are of clients that nothing names: --clients, --as")
    frames = {name: getattr(found, name).persist() for name in FRAMES}
    counts = {name: frame.count() for name, frame in frames.items()}
    first = {name: _first(frame, options.top) for name, frame in frames.items()}
    if options.out is not None:
        for name, frame in frames.items():
            command.write(frame, options.out / name)
        report(found, first, counts, _about(options)).write(options.out / command.REPORT)
    differ = any(counts.values())
    if options.json:
        shown = {
            name: {"rows": counts[name], "first": [row.asDict() for row in frame.collect()]}
            for name, frame in first.items()
        }
        print(json.dumps({"differ": differ, "facts": found.facts, "notes": found.notes, **shown}))
    else:
        _print(found, first, counts, options.top)
    return DIFFERENT if differ else command.OK


def _first(frame: DataFrame, count: int) -> DataFrame:
    """Of what concerns most messages; of subscriptions, by their names."""
    by = [F.desc("messages"), *BY] if "messages" in frame.columns else ["user", "client", "filter", "syntax", "group"]
    return frame.orderBy(*by).limit(count)


def _print(found: DryRun, first: dict[str, DataFrame], counts: dict[str, int], top: int) -> None:
    facts = found.facts
    print(
        f"messages: {facts['messages']:,} decided, {facts['denied_now']:,} denied that were allowed, "
        f"{facts['allowed_now']:,} allowed that were denied"
    )
    _table(first["messages"], counts["messages"], top)
    if facts["subscriptions"]:
        print(f"subscriptions: {facts['subscriptions']:,} decided, {facts['subscriptions_differ']:,} differently")
        _table(first["subscriptions"].drop("denied_before", "denied_after"), counts["subscriptions"], top)
        print("deliveries: messages that these, and those that are allowed in part, get or do not get any more")
        _table(first["deliveries"], counts["deliveries"], top)
    for note in found.notes:
        print(f"note: {note}")


def _table(frame: DataFrame, count: int, top: int) -> None:
    """On a terminal: no name that somebody chose may have control characters there."""
    if not count:
        return
    plain = {
        field.name: F.regexp_replace(field.name, r"\p{Cntrl}", "\ufffd")
        for field in frame.schema.fields if isinstance(field.dataType, StringType)
    }  # fmt: skip
    frame.withColumns(plain).show(top, truncate=CELL_MAX)
    if count > top:
        print(f"the first {top:,} of {count:,} rows; --top, --out\n")


def report(found: DryRun, first: dict[str, DataFrame], counts: dict[str, int], about: str) -> Report:
    page = Report("Permissions", about)
    facts = found.facts
    page.answer(
        f"{facts['denied_now']:,} of {facts['messages']:,} messages would be denied that were allowed, "
        f"{facts['allowed_now']:,} allowed that were denied"
        + (f"; {facts['subscriptions_differ']:,} subscriptions would be decided differently."
           if facts["subscriptions"] else "."), found=any(counts.values()),
    )  # fmt: skip
    page.facts([(name.replace("_", " "), value) for name, value in found.facts.items()])
    for note in found.notes:
        page.say(note)
    for name, frame in first.items():
        page.section(f"{name.capitalize()} that are decided differently")
        rows = frame.collect()
        page.table(frame.columns, rows, total=counts[name])
        if name == "messages" and rows:
            drawn = [(f"{row.user or 'anonymous'} {row.action} {row.topic}", row.messages) for row in rows]
            page.chart(charts.bars(drawn, "messages"), "Messages that are decided differently, by user and topic")
    return page


def _about(options: argparse.Namespace) -> str:
    before = "everything was allowed" if options.against is None else f"against {options.against}"
    return f"{command.described(options)}; {options.rules}, {before}"


def add_askers(parser: argparse.ArgumentParser) -> None:
    """The arguments that say who published: askers.py."""
    add = parser.add_argument
    about = "a snapshot: python -m fanlight_spark.snapshot URL FILE"
    add("--subscriptions", type=Path, metavar="FILE", help=about)
    add("--clients", type=Path, metavar="FILE", help="JSON lines: the client, and its user, groups, address, ...")
    add("--users", type=Path, metavar="FILE", help="the broker's users file: groups of users, and rules of their own")
    about = f"the user of clients that nothing names; {OWN_NAME}: called like the client; '': anonymous"
    add("--as", dest="publisher", metavar="USER", help=about.replace("%", "%%"))
    add("--group", action="append", default=[], metavar="GROUP", help="a group of that user; repeatable")


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = (
        "python -m fanlight_spark.jobs.permissions --archive archive --rules new.toml --against old.toml "
        "--subscriptions now.jsonl --users users.toml"
    )
    parser = command.parser("permissions", __doc__ or "", example, named=True)
    add = parser.add_argument
    add("--rules", type=Path, required=True, metavar="FILE", help="the new permissions: TOML, or CSV (*.csv)")
    add("--against", type=Path, metavar="FILE", help="those before; without it everything was allowed")
    add_askers(parser)
    add(
        "--subscribe-partly",
        choices=("filter", "refuse"),
        default="filter",
        help="the broker's setting of this name (%(default)s)",
    )
    about = "count by the first N words of topics; 0: whole topics (%(default)s)"
    add("--levels", type=command.at_least(0), default=0, metavar="N", help=about)
    add("--top", type=command.at_least(1), default=TOP, metavar="N", help="rows that are shown (%(default)s)")
    add("--strict", action="store_true", help="messages of clients that nothing names are a mistake: exit code 2")
    add("--json", action="store_true", help="print one JSON object")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
