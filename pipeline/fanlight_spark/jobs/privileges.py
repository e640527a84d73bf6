"""The least that users need: a file of permissions with what each did, and rules that nothing was decided by.

    permissions.toml   the proposal: by it everything that the archive has is allowed, which is tried, and little else
    privileges         its filters by user, with the topics and messages each is made from (topics, messages), and those
                       of others that it lets the user publish on, too (more_topics, more_messages)
    unused             with --rules: rules that decided about nothing, of those that an archive can say that of

A wildcard is proposed where --least or more words stood in one place between equal ones; 1000000 for none at all.
Who published is known as in the job `permissions`.

exit codes: 0 done, 1 more than --fail-above rules decide nothing, 2 wrong arguments or files
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_archive.arrow import pa
from fanlight_permissions.topics import INBOX_ROOT, first_word, without_namespace
from fanlight_spark import workers
from fanlight_spark.askers import Askers, askers_of
from fanlight_spark.decisions import COLUMNS, Judging, decided, kinds
from fanlight_spark.deliveries import utf8_text
from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.permissions import add_askers
from fanlight_spark.jobs.report import Report
from fanlight_spark.judging import RuleFile
from fanlight_spark.least_privilege import (
    LEAST,
    Did,
    Proposal,
    filters,
    filters_subscribed,
    own_words,
    reached,
    rules_file,
    written,
)
from fanlight_spark.matching import ROWS_AT_ONCE
from fanlight_spark.rule_hits import Unused, unused_rules
from fanlight_spark.snapshot import Snapshot, read
from fanlight_spark.topics import SEPARATORS, index_of, match_rows

TOP: Final = 20
FILE: Final = "permissions.toml"
DONE: Final = "namespace string, user string, client string, action string, syntax string, topic string, messages long"
PROPOSED: Final = "namespace string, user string, action string, syntax string, filter string"
MATCHED: Final = "proposal long, topic string, syntax string, own boolean, messages long"
PRIVILEGES: Final = pa.schema([
    *(pa.field(name, pa.string()) for name in ("namespace", "user", "action", "filter")),
    *(pa.field(name, pa.int64()) for name in ("topics", "messages", "more_topics", "more_messages")),
])  # fmt: skip
UNUSED: Final = pa.schema([("rule", pa.string()), ("effect", pa.string()), ("line", pa.int64())])


class Least(NamedTuple):
    """text: of the proposed file. counts: of each proposal its topics and messages, own and more; none of subscribing.

    denied: messages that the proposal would not allow, which is a mistake. unknown: of clients that nothing names
    """

    text: str
    proposals: list[Proposal]
    counts: list[tuple[int, int, int, int] | None]
    messages: int
    denied: int
    unknown: int


def least_privilege(
    messages: DataFrame, askers: Askers, snapshot: Snapshot | None = None, *, least: int = LEAST, about: str = ""
) -> Least:
    """What the module says, of messages with COLUMNS."""
    counted = kinds(messages).where("client IS NOT NULL").persist()
    done = _done(counted, askers).persist()
    proposals = [
        Proposal(Did(row.namespace, row.user, row.action, row.syntax), row.filter)
        for row in _proposed(done, least).orderBy("namespace", "user", "action", "syntax", "filter").toLocalIterator()
    ]
    counts: list[tuple[int, int, int, int] | None] = list(_counts(done, proposals))
    for did, filter in _subscribed(snapshot):
        proposals.append(Proposal(did, filter))
        counts.append(None)
    text = rules_file(proposals, about)
    judged = decided(counted, Judging(None, RuleFile(FILE, text), askers))
    of_them = F.coalesce(F.sum(F.when(F.expr("NOT after"), F.col("messages"))), F.lit(0))
    unknown = F.coalesce(F.sum(F.when(F.expr("NOT known"), F.col("messages"))), F.lit(0))
    total = F.coalesce(F.sum("messages"), F.lit(0))
    row = judged.agg(total.alias("all"), of_them.alias("denied"), unknown.alias("unknown")).collect()[0]
    return Least(text, proposals, counts, row["all"], row.denied, row.unknown)


def _done(counted: DataFrame, askers: Askers) -> DataFrame:
    """DONE of `kinds`: a row for each action."""
    shared = counted.sparkSession.sparkContext.broadcast(askers)
    names = ("client", "protocol", "topic", "syntax", "retain", "replies", "messages")

    def say(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        for batch in batches:
            rows = zip(*(batch.column(batch.schema.get_field_index(name)).to_pylist() for name in names), strict=True)
            found: list[tuple[Any, ...]] = []
            for client, protocol, topic, syntax, retain, replies, messages in rows:
                namespace, own = without_namespace(topic.encode(), syntax)
                user = shared.value.publisher(client, protocol)[0].user
                found += (
                    (namespace, user, client, action, syntax, own.decode(), messages)
                    for action in ("publish", *["retain"] * retain, *["request"] * replies)
                )
            yield _batch(found, DONE)

    return counted.select(*names).mapInArrow(say, DONE)


def _batch(rows: list[tuple[Any, ...]], schema: str) -> Any:
    named = [each.strip().split(" ") for each in schema.split(",")]
    types = {"string": pa.string(), "long": pa.int64(), "boolean": pa.bool_()}
    columns = zip(*rows, strict=True) if rows else ([] for _ in named)
    arrays = [pa.array(column, types[kind]) for column, (_, kind) in zip(columns, named, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in named])


def _proposed(done: DataFrame, least: int) -> DataFrame:
    """PROPOSED: each user's topics are folded in one task."""

    def fold(table: Any) -> Any:
        workers.settle()
        did = Did(*(table.column(name)[0].as_py() for name in Did._fields))
        given = zip(table.column("topic").to_pylist(), table.column("client").to_pylist(), strict=True)
        words = {own_words(topic, did.syntax, did.user, client) for topic, client in given}
        rows = [(*did, written(each, did.syntax)) for each in filters(words, least)]
        return pa.Table.from_batches([_batch(rows, PROPOSED)])

    return done.groupBy(*Did._fields).applyInArrow(fold, PROPOSED)


def _subscribed(snapshot: Snapshot | None) -> Iterator[tuple[Did, str]]:
    of_user: dict[Did, list[tuple[str, str]]] = defaultdict(list)
    for each in snapshot.subscriptions if snapshot is not None else ():
        if first_word(each.filter.encode("utf-8", "surrogateescape"), each.syntax) != INBOX_ROOT:  # needs no rule
            of_user[Did("", each.user, "subscribe", each.syntax)].append((each.filter, each.client))
    for did in sorted(of_user):
        for filter in filters_subscribed(of_user[did], did.syntax, did.user):
            yield did, filter


def _counts(done: DataFrame, proposals: list[Proposal]) -> Iterator[tuple[int, int, int, int]]:
    """Of each proposal: the topics and messages of its user that it allows, and those of others alone."""
    if not proposals:
        return
    index = index_of((*_text_first(*reached(each), number),) for number, each in enumerate(proposals))
    shared = done.sparkSession.sparkContext.broadcast((index, [each.did for each in proposals]))

    def match(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        index, whose = shared.value
        for batch in batches:
            for at in range(0, batch.num_rows, ROWS_AT_ONCE):
                part = batch.slice(at, ROWS_AT_ONCE)
                namespaces, users, actions, syntaxes, topics, messages = (
                    part.column(part.schema.get_field_index(name)).to_pylist()
                    for name in ("namespace", "user", "action", "syntax", "topic", "messages")
                )
                archived = [_archived(*each) for each in zip(namespaces, topics, syntaxes, strict=True)]
                starts, ids = match_rows(index, pa.array(archived, pa.string()), pa.array(syntaxes, pa.string()))
                rows = np.repeat(np.arange(part.num_rows), np.diff(starts)).tolist()
                yield _batch(
                    [
                        (number, archived[row], syntaxes[row], users[row] == whose[number].user, messages[row])
                        for row, number in zip(rows, ids.tolist(), strict=True)
                        if actions[row] == whose[number].action
                    ],
                    MATCHED,
                )

    by_topic = done.mapInArrow(match, MATCHED).groupBy("proposal", "topic", "syntax").agg(
        F.max("own").alias("own"), F.sum("messages").alias("messages"),
        F.sum(F.when(F.col("own"), F.col("messages")).otherwise(0)).alias("theirs"),
    )  # fmt: skip
    others = ~F.col("own")
    rows = by_topic.groupBy("proposal").agg(
        F.count_if("own").alias("topics"), F.sum("theirs").alias("messages"), F.count_if(others).alias("more_topics"),
        F.coalesce(F.sum(F.when(others, F.col("messages"))), F.lit(0)).alias("more_messages"),
    )  # fmt: skip
    found = {row.proposal: tuple(row[1:]) for row in rows.collect()}
    for number in range(len(proposals)):
        yield found.get(number, (0, 0, 0, 0))


def _text_first(filter: str, syntax: str, number: int) -> tuple[str | bytes, int, str]:
    return filter.encode("utf-8", "surrogateescape"), number, syntax


def _archived(namespace: str, topic: str, syntax: str) -> str:
    return SEPARATORS[syntax].join(("$namespace", namespace, topic)) if namespace else topic


def privileges(found: Least) -> Any:
    """PRIVILEGES as an Arrow table."""
    none = (None, None, None, None)
    rows = [
        (each.did.namespace, utf8_text(each.did.user), each.did.action, each.filter, *(counts or none))
        for each, counts in zip(found.proposals, found.counts, strict=True)
    ]
    return pa.Table.from_pylist([dict(zip(PRIVILEGES.names, row, strict=True)) for row in rows], PRIVILEGES)


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    if options.input.startswith(command.BROKERS):
        raise ValueError("a broker does not say who published: read the folder of its archive")
    snapshot = None if options.subscriptions is None else read(options.subscriptions)
    rules = None if options.rules is None else RuleFile.read(options.rules)
    askers = askers_of(options.clients, options.users, snapshot, options.publisher, frozenset(options.group))
    messages = command.messages(spark, options, *COLUMNS)
    notes = "Wills, replays and queues are in no archive: rules for them are yours to add."
    if snapshot is None:
        notes += "\nWithout --subscriptions nobody may subscribe."
    about = f"The least that was needed: {command.described(options)}.\n{notes}"
    found = least_privilege(messages, askers, snapshot, least=options.least, about=about)
    if found.denied:
        raise ValueError(f"the proposal would deny {found.denied:,} messages: names of users that no rule can have")
    unused = None if rules is None else unused_rules(kinds(messages), rules, askers, snapshot)
    table = privileges(found)
    command.write(spark.createDataFrame(table), options.out / "privileges")
    if unused is not None:
        rows = [{"rule": rule.label, "effect": rule.effect, "line": rule.line} for rule in unused.rules]
        command.write(spark.createDataFrame(pa.Table.from_pylist(rows, UNUSED)), options.out / "unused")
    (options.out / FILE).write_text(found.text, encoding="utf-8")
    said = answer(found, unused)
    report(found, table, unused, said, command.described(options)).write(options.out / command.REPORT)
    print(said)
    for note in (*notes.splitlines(), *_notes(found, unused)):
        print(f"note: {note}")
    print(options.out / FILE)
    print(options.out / command.REPORT)
    return command.code(options, 0 if unused is None else len(unused.rules))


def answer(found: Least, unused: Unused | None) -> str:
    users = len({each.did[:2] for each in found.proposals})
    said = f"{len(found.proposals):,} filters are enough for what {users:,} users did in {found.messages:,} messages"
    return said + ("." if unused is None else f"; {len(unused.rules):,} of {unused.total:,} rules decided nothing.")


def _notes(found: Least, unused: Unused | None) -> Iterator[str]:
    if found.unknown:
        yield f"{found.unknown:,} messages are of clients that nothing names, taken for anonymous ones: --clients, --as"
    if unused is not None and unused.by_content:
        yield (f"{unused.by_content:,} messages are decided by what they say, and counted for no rule: rules with a "
               "where, and those behind them, may be in use")  # fmt: skip


def report(found: Least, table: Any, unused: Unused | None, said: str, about: str) -> Report:
    page = Report("Least privilege", about)
    page.answer(said, found=bool(unused and unused.rules))
    more = sum(counts[2] for counts in found.counts if counts)
    page.facts([("messages", found.messages), ("filters", len(found.proposals)), ("topics of others let in", more)])
    for note in _notes(found, unused):
        page.say(note)
    page.section("Filters that let in most beside what was done")
    rows = sorted(table.to_pylist(), key=lambda row: -(row["more_topics"] or 0))
    page.table(PRIVILEGES.names, [tuple(row.values()) for row in rows[:TOP]], total=len(rows))
    wide = [row for row in rows[:TOP] if row["more_topics"]]
    if wide:
        bars = [(f"{row['user'] or 'anonymous'} {row['filter']}", row["more_topics"]) for row in wide]
        page.chart(charts.bars(bars, "topics"), "Topics of others that a filter lets in")
    if unused is not None:
        page.section("Rules that decided nothing")
        rules = [(each.label, each.effect, each.line) for each in unused.rules[:TOP]]
        page.table(UNUSED.names, rules, total=len(unused.rules))
    return page


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = "python -m fanlight_spark.jobs.privileges archive --subscriptions now.jsonl --as %c --out least"
    parser = command.parser("privileges", __doc__ or "", example.replace("%", "%%"))
    add = parser.add_argument
    add("--rules", type=Path, metavar="FILE", help="the rules that are in force: which of them decide nothing?")
    add_askers(parser)
    about = "words in one place that a wildcard takes the place of (%(default)s)"
    add("--least", type=command.at_least(2), default=LEAST, metavar="N", help=about)
    command.add_threshold(parser, "rules decide nothing")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
