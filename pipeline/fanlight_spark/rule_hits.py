"""Which rules of permissions decide something about what was archived, and which nothing.

Of each kind of message every action is asked that the broker asks, until one is denied: may its client connect,
publish, retain it, name a topic for the reply? Of each subscription, which rule allows or denies it. A rule that is
about none of these (a will, a replay, a queue, the views) is left out: an archive says nothing of it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanlight_archive.arrow import pa
from fanlight_permissions.decisions import Action, Grant
from fanlight_permissions.permission_file import parse_permissions
from fanlight_permissions.permission_rule import BITS, PermissionRule
from fanlight_permissions.table import PermissionTable
from fanlight_permissions.topics import without_namespace
from fanlight_spark import workers
from fanlight_spark.askers import Askers
from fanlight_spark.decisions import KIND
from fanlight_spark.judging import KNOWN_MAX, RuleFile, RuleLimits, table_of
from fanlight_spark.snapshot import Snapshot
from matchcore.errors import InvalidTopic

SEEN: Final = (Action.CONNECT, Action.PUBLISH, Action.RETAIN, Action.REQUEST, Action.SUBSCRIBE)
HITS: Final = pa.schema([pa.field("rule", pa.string()), pa.field("messages", pa.int64())])
BY_CONTENT: Final = "\0"  # in place of a rule: no rule is called so


class Unused(NamedTuple):
    """rules: that decided nothing, of `total`. by_content: messages that were not decided."""

    rules: list[PermissionRule]
    total: int
    by_content: int


def unused_rules(kinds: DataFrame, rules: RuleFile, askers: Askers, snapshot: Snapshot | None = None) -> Unused:
    """Of `decisions.kinds`. Raises matchcore.InvalidFilter."""
    found = hits(kinds, rules, askers)
    used = {*found, *_of_subscriptions(rules, askers, snapshot)}
    known = parse_permissions(rules.text, rules.name, RuleLimits(), is_csv=rules.is_csv).rules
    looked_at = [rule for rule in known if _visible(rule, snapshot is not None)]
    unused = [rule for rule in looked_at if rule.label not in used]
    return Unused(unused, len(looked_at), found.get(BY_CONTENT, 0))


def _visible(rule: PermissionRule, subscriptions: bool) -> bool:
    bits = 0
    for of_actions, _ in rule.patterns:
        bits |= of_actions
    return any(bits & BITS[action] for action in SEEN if subscriptions or action is not Action.SUBSCRIBE)


def hits(kinds: DataFrame, rules: RuleFile, askers: Askers) -> dict[str, int]:
    """How many messages each rule decided something about, by its label."""
    shared = kinds.sparkSession.sparkContext.broadcast((rules, askers))

    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        rules, askers = shared.value
        table = table_of(rules)
        grants: dict[tuple[str, str, str], Grant] = {}
        counted: dict[str, int] = {}
        for batch in batches:
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for client, protocol, topic, syntax, retain, replies, messages in rows:
                namespace, own = without_namespace(topic.encode(), syntax)
                who = client, protocol, namespace
                if who not in grants:
                    if len(grants) >= KNOWN_MAX:
                        _release(table, grants)
                    asker = replace(askers.publisher(client, protocol)[0], namespace=namespace)
                    grants[who] = table.grant_of(asker)
                for rule in _deciding(grants[who], own, syntax, retain, replies):
                    counted[rule] = counted.get(rule, 0) + messages
        _release(table, grants)
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(counted), pa.string()), pa.array(list(counted.values()), pa.int64())], schema=HITS
        )

    theirs = kinds.where("client IS NOT NULL").select(*KIND, "messages")
    found = theirs.mapInArrow(ask, "rule string, messages long")
    summed = found.groupBy("rule").agg(F.sum("messages").alias("messages")).collect()
    return {row.rule: row.messages for row in summed if row.rule}


def _release(table: PermissionTable, grants: dict[tuple[str, str, str], Grant]) -> None:
    for grant in grants.values():
        table.release(grant)
    grants.clear()


def _deciding(grant: Grant, topic: bytes, syntax: str, retain: bool, replies: bool) -> Iterator[str]:
    for action in (Action.CONNECT, Action.PUBLISH, *[Action.RETAIN] * retain, *[Action.REQUEST] * replies):
        try:
            verdict = grant.decide(action) if action is Action.CONNECT else grant.decide(action, topic, syntax)
        except InvalidTopic:
            return
        yield BY_CONTENT if verdict.by_content else verdict.rule
        if not verdict.allowed and not verdict.by_content:
            return


def _of_subscriptions(rules: RuleFile, askers: Askers, snapshot: Snapshot | None) -> Iterator[str]:
    table = table_of(rules)
    for each in snapshot.subscriptions if snapshot is not None else ():
        grant = table.grant_of(askers.subscriber(each))
        yield grant.decide(Action.CONNECT).rule
        filter = each.filter.encode("utf-8", "surrogateescape")
        found = grant.decide_filter(Action.SUBSCRIBE, filter, each.syntax)
        yield found.rule
        yield found.denied_by
        table.release(grant)
