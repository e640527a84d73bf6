"""Two files of rules tried on messages: what comes of each by the old rules and by the new ones, counted.

    comparison = Comparison(old, new, subscriptions)
    comparison.take(topic, "amqp", fields)            once a message
    comparison.different, .by_topic, .by_subscriber, .hits

A message that goes somewhere by the old rules and not by the new ones is lost there, the other way round gained; where
it goes by both, with other headers, another delay or archived by one of them alone, it is changed. Nothing is read or
written here.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.rule_set import RuleSet
from fanlight_broker.core.rules import HeaderValue, Plan, Planned
from fanlight_broker.core.topics import SYNTAXES
from matchcore.filters import FilterIndex
from matchcore.kleene import Fields

LOST, GAINED, CHANGED = "lost", "gained", "changed"
ROWS_MAX: Final = 100_000  # of each count; further ones are counted together
KNOWN_MAX: Final = 65_536  # topics whose plans are kept; then all are forgotten
OTHERS: Final = "(others)"


class SnapshotRow(NamedTuple):
    """One subscription of a snapshot. filter: as its bytes are."""

    user: str
    client: str
    filter: bytes
    syntax: str


class Outcome(NamedTuple):
    """Where one message goes, and as what."""

    topic: bytes
    headers: frozenset[tuple[str, HeaderValue]]
    delay: float | None
    archive: bool

    @staticmethod
    def of(planned: Planned) -> "Outcome":
        return Outcome(planned.topic, frozenset(planned.headers.items()), planned.delay, planned.archive)


class OfTopic(NamedTuple):
    """rules_*: that acted on the message, in the order in which they did."""

    what: str
    topic: str
    at: str
    rules_before: str
    rules_after: str


class OfSubscriber(NamedTuple):
    what: str
    user: str
    client: str
    filter: str


class Comparison:
    def __init__(self, old: RuleSet, new: RuleSet, subscriptions: Sequence[SnapshotRow], limits: Limits) -> None:
        """Raises InvalidFilter."""
        self._sides = old, new
        self._subscribers = subscriptions
        self._index = FilterIndex(limits.topic_words_max, limits.topic_bytes_max)
        for number, each in enumerate(subscriptions):
            self._index.insert(each.filter, number, syntax=each.syntax)
        self.attributes = old.attributes | new.attributes
        self._kept: dict[tuple[bytes, str], tuple[Plan, Plan] | None] = {}
        self.messages = self.different = 0
        self.by_topic: Counter[OfTopic] = Counter()
        self.by_subscriber: Counter[OfSubscriber] = Counter()
        self.hits: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self.failed: Counter[str] = Counter()  # of the new rules: where one could not act

    def concerned(self, topic: bytes, syntax: str) -> bool:
        """May a rule of either file act on messages of this topic?"""
        return any(each.concern(topic, SYNTAXES.index(syntax)) for each in self._sides)

    def take(self, topic: bytes, syntax: str, fields: Fields) -> None:
        self.messages += 1
        plans = self._plans(topic, syntax, fields)
        if plans is None:
            return
        old, new = plans
        for plan, hits in zip(plans, self.hits, strict=True):
            hits.update({step.rule for step in plan.steps if not step.fails})
        self.failed.update({step.rule for step in new.steps if step.fails})
        before, after = (Counter(Outcome.of(each) for each in plan.outputs) for plan in plans)
        if before != after:
            self.different += 1
            self._count(topic, syntax, before - after, after - before, (_acting(old), _acting(new)))

    def never_hit(self) -> tuple[list[str], list[str]]:
        """Rules that acted on no message: the old ones, the new ones."""
        old, new = (
            [rule.label for rule in each.rules if not hits[rule.label]]
            for each, hits in zip(self._sides, self.hits, strict=True)
        )
        return old, new

    def _plans(self, topic: bytes, syntax: str, fields: Fields) -> tuple[Plan, Plan] | None:
        """None: no rule of either file may act. They are kept where no rule asks what a message says."""
        key = topic, syntax
        if key in self._kept:
            return self._kept[key]
        plans = None
        if self.concerned(topic, syntax):
            old, new = (each.planned(topic, syntax, fields) for each in self._sides)
            plans = old, new
        if plans is None or not self.attributes:
            if len(self._kept) >= KNOWN_MAX:
                self._kept.clear()
            self._kept[key] = plans
        return plans

    def _count(
        self, topic: bytes, syntax: str, lost: Counter[Outcome], gained: Counter[Outcome], rules: tuple[str, str]
    ) -> None:
        gone, come = (Counter(route.topic for route in each.elements()) for each in (lost, gained))
        subscribers: dict[int, tuple[int, int]] = {}
        for at in gone | come:
            for what, count in _changes(gone[at], come[at]).items():
                _add(self.by_topic, OfTopic(what, text(topic), text(at), *rules), count)
            for number in self._index.match(at, syntax=syntax):
                less, more = subscribers.get(number, (0, 0))
                subscribers[number] = less + gone[at], more + come[at]
        for number, (less, more) in subscribers.items():
            each = self._subscribers[number]
            for what, count in _changes(less, more).items():
                _add(self.by_subscriber, OfSubscriber(what, each.user, each.client, text(each.filter)), count)


def _changes(less: int, more: int) -> dict[str, int]:
    """A subscriber that gets it on another topic, or with other headers, has lost nothing."""
    both = min(less, more)
    return {what: count for what, count in ((LOST, less - both), (GAINED, more - both), (CHANGED, both)) if count}


def _add(counts: Counter[Any], row: Any, count: int) -> None:
    if row not in counts and len(counts) >= ROWS_MAX:
        row = type(row)(row.what, *[OTHERS] * (len(row) - 1))
    counts[row] += count


def _acting(plan: Plan) -> str:
    return ", ".join(dict.fromkeys(step.rule for step in plan.steps if not step.fails))


def text(octets: bytes) -> str:
    return octets.decode("utf-8", "backslashreplace")
