"""What two files of permissions decide about one message, or one subscription: before, and after.

    rules = RuleFile.read(Path("permissions.toml"))            its text: that is what workers are sent
    judge = Judge(before, after, askers)                       before: None where everything was allowed
    judge.publish("pump-7", "mqtt", "site/7/t", "mqtt", ...)   -> Asked: who, and both decisions

A message is decided as the broker does it: may its client connect, publish, retain it and name a topic for the reply?
The first action that is denied decides. A decision is made once for a permission class and a topic, and kept while the
topic is the same: ask in the order of topics. It needs no Spark.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from fanlight_permissions.decisions import Access, Action, Asker, Grant
from fanlight_permissions.permission_file import (
    FILE_BYTES_MAX,
    PermissionFileError,
    compile_permissions,
    parse_permissions,
)
from fanlight_permissions.reading import file_text
from fanlight_permissions.table import PermissionTable
from fanlight_permissions.topics import INBOX_ROOT, first_word, without_namespace
from fanlight_spark.askers import Askers
from fanlight_spark.snapshot import Subscription
from fanlight_spark.topics import WORDS_MAX
from matchcore.body_reader import BodyCounts
from matchcore.errors import InvalidTopic
from matchcore.field_values import values_of
from matchcore.fields import Attributes
from matchcore.kleene import Fields, key_of
from matchcore.message_rows import MessageReader, MessageRows
from matchcore.selector import Attribute

KNOWN_MAX: Final = 65_536  # clients whose classes are kept; then all are forgotten
INVALID: Final = "(invalid topic)"  # in place of a rule
ALL, PARTLY, NONE = (access.name.lower() for access in (Access.ALL, Access.PARTLY, Access.NONE))
USER: Final = "$user"  # which an archive does not have


class RuleLimits(NamedTuple):
    """The most that a broker may be set to: what is too much for the broker at hand, its own `check` says."""

    permissions_max: int = 10_000_000
    topic_words_max: int = WORDS_MAX
    topic_bytes_max: int = 65_535


@dataclass(frozen=True, slots=True)
class RuleFile:
    name: str
    text: str
    is_csv: bool = False

    @classmethod
    def read(cls, path: Path) -> "RuleFile":
        """Raises ValueError of a file that cannot be read, or not be put in force."""
        rules = cls(str(path), file_text(path, FILE_BYTES_MAX), path.suffix.lower() == ".csv")
        try:
            table_of(rules)
        except PermissionFileError as error:
            more = len(error.problems) - 1
            also = f", and {more} more: fanlightd permissions check {path}" if more else ""
            raise ValueError(f"{error.problems[0]}{also}") from None
        return rules


@lru_cache(2)  # a worker decides by two files, in one task after another
def table_of(rules: RuleFile) -> PermissionTable:
    """Raises PermissionFileError."""
    limits = RuleLimits()
    found = parse_permissions(rules.text, rules.name, limits, is_csv=rules.is_csv)
    return compile_permissions(found, rules.name, limits)


class Decided(NamedTuple):
    """action: that was denied, or to publish, or to subscribe. access: of a subscription."""

    allowed: bool
    action: str
    rule: str
    access: str = ""
    denied_by: str = ""  # of what is allowed in part


class Asked(NamedTuple):
    """Both decisions about a message; None: it depends on what the message says."""

    asker: Asker
    known: bool
    before: Decided | None
    after: Decided | None


@dataclass(frozen=True, slots=True)
class Judged:
    """Both decisions about a subscription."""

    subscription: Subscription
    asker: Asker
    before: Decided
    after: Decided

    @property
    def in_part(self) -> bool:
        return PARTLY in (self.before.access, self.after.access)


Grants = tuple[Grant | None, Grant | None]


class Judge:
    """For one task, or for the driver. Its classes are held until `close`."""

    def __init__(self, before: RuleFile | None, after: RuleFile, askers: Askers) -> None:
        self.tables = (None if before is None else table_of(before), table_of(after))
        self._askers = askers
        self._known: dict[tuple[str, str, str], tuple[Asker, bool, Grants]] = {}
        self._topic: tuple[str, str] | None = None
        self._decided: dict[tuple[int, int, bool, bool], tuple[Decided | None, Decided | None]] = {}

    @property
    def asks_content(self) -> bool:
        """Has any rule a `where`?"""
        return any(table is not None and table.where for table in self.tables)

    @property
    def conditions(self) -> frozenset[str]:
        """The attributes of askers that rules have conditions on."""
        parties = [table.parties.conditions() for table in self.tables if table is not None]
        return frozenset(attribute for whos in parties for who in whos for attribute, _ in who)

    def close(self) -> None:
        for _, _, grants in self._known.values():
            self.release(grants)
        self._known.clear()
        self._topic = None

    def publish(
        self,
        client: str,
        protocol: str,
        topic: str,
        syntax: str,
        *,
        retain: bool = False,
        replies: bool = False,
        fields: Fields | None = None,
    ) -> Asked:
        """A message: is it retained, does it name a topic for the reply, and what do rules ask of it?

        topic  as it is archived: that of a namespace has its name before it
        """
        namespace, own = without_namespace(topic.encode(), syntax)
        asker, known, grants = self._publisher(client, protocol, namespace)
        if fields is not None:
            if asker.user:
                fields = _with_user(fields, asker.user)
            found = _published(grants, own, syntax, retain, replies, fields)
            return Asked(asker, known, *found)
        if (topic, syntax) != self._topic:
            self._topic = topic, syntax
            self._decided.clear()
        numbers = [-1 if grant is None else grant.number for grant in grants]
        key = numbers[0], numbers[1], retain, replies
        kept = self._decided.get(key)
        if kept is None:
            kept = self._decided[key] = _published(grants, own, syntax, retain, replies, None)
        return Asked(asker, known, *kept)

    def subscription(self, given: Subscription, refuse_partly: bool = False) -> Judged:
        """A subscription of a snapshot. refuse_partly: what is allowed in part is refused (`subscribe_partly`).

        Raises matchcore.InvalidFilter.
        """
        asker = self._askers.subscriber(given)
        whole = refuse_partly or given.group is not None
        filter = given.filter.encode("utf-8", "surrogateescape")
        grants = self.grants(asker)
        before, after = (_subscribed(grant, filter, given.syntax, whole) for grant in grants)
        self.release(grants)
        return Judged(given, asker, before, after)

    def grants(self, asker: Asker) -> Grants:
        """Held until `release`."""
        before, after = (None if table is None else table.grant_of(asker) for table in self.tables)
        return before, after

    def release(self, grants: Grants) -> None:
        for table, grant in zip(self.tables, grants, strict=True):
            if table is not None and grant is not None:
                table.release(grant)

    def _publisher(self, client: str, protocol: str, namespace: str) -> tuple[Asker, bool, Grants]:
        found = self._known.get((client, protocol, namespace))
        if found is None:
            if len(self._known) >= KNOWN_MAX:
                self.close()
                self._decided.clear()  # the numbers of classes are used again
            asker, known = self._askers.publisher(client, protocol)
            asker = replace(asker, namespace=namespace)
            found = self._known[client, protocol, namespace] = asker, known, self.grants(asker)
        return found


def _published(
    grants: Grants, topic: bytes, syntax: str, retain: bool, replies: bool, fields: Fields | None
) -> tuple[Decided | None, Decided | None]:
    actions = [Action.CONNECT, Action.PUBLISH, *([Action.RETAIN] * retain), *([Action.REQUEST] * replies)]
    before, after = (_first_denial(grant, actions, topic, syntax, fields) for grant in grants)
    return before, after


def _with_user(fields: Fields, user: str) -> Fields:
    values: dict[str | Attribute, object] = {USER: user}
    values.update(fields.items())
    return values


def _first_denial(
    grant: Grant | None, actions: Collection[Action], topic: bytes, syntax: str, fields: Fields | None
) -> Decided | None:
    """Or what lets it be published. None: that depends on the content."""
    rule = ""
    if grant is None:
        return Decided(True, Action.PUBLISH.value, rule)
    for action in actions:
        try:
            verdict = grant.decide(action) if action is Action.CONNECT else grant.decide(action, topic, syntax, fields)
        except InvalidTopic:
            return Decided(False, action.value, INVALID)
        if verdict.by_content and fields is None:
            return None
        if not verdict.allowed:
            return Decided(False, action.value, verdict.rule)
        if action is Action.PUBLISH:
            rule = verdict.rule
    return Decided(True, Action.PUBLISH.value, rule)


def _subscribed(grant: Grant | None, filter: bytes, syntax: str, whole: bool) -> Decided:
    action = Action.SUBSCRIBE.value
    if grant is None:
        return Decided(True, action, "", ALL)
    verdict = grant.decide(Action.CONNECT)
    if not verdict.allowed:
        return Decided(False, Action.CONNECT.value, verdict.rule, NONE)
    if first_word(filter, syntax) == INBOX_ROOT:  # its own needs no rule, and it has no other (docs/permissions.md)
        return Decided(True, action, "", ALL)
    found = grant.decide_filter(Action.SUBSCRIBE, filter, syntax)
    if found.access is Access.PARTLY and whole:
        return Decided(False, action, found.denied_by, NONE)
    allowed = found.access is not Access.NONE
    return Decided(allowed, action, found.rule, found.access.name.lower(), found.denied_by)


def delivered(grant: Grant | None, decided: Decided, topic: bytes, syntax: str) -> Decided:
    """What is decided about one topic that the filter of a subscription matches."""
    if grant is None or decided.access != PARTLY:
        return decided
    try:
        verdict = grant.decide(Action.SUBSCRIBE, topic, syntax)
    except InvalidTopic:
        return Decided(False, decided.action, INVALID)
    return Decided(verdict.allowed, decided.action, verdict.rule)


class RowFields:
    """What rules ask of the rows of a record batch, as the broker reads it of messages."""

    def __init__(self, tables: Collection[PermissionTable | None]) -> None:
        wanted: set[Attribute] = set()
        for table in tables:
            wanted |= frozenset() if table is None else table.attributes
        attributes = Attributes()
        self._names = {attributes.acquire(each): key_of(each) for each in wanted}
        self._reader = MessageReader(attributes, BodyCounts())

    def of(self, rows: MessageRows, row: int) -> Fields:
        found: Mapping[int, object] = values_of(self._reader.read_row(rows, row))
        return {self._names[number]: value for number, value in found.items()}
