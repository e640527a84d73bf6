"""The routing rules in force, and what they make of a message.

    message, its topic --rules by salience--> headers, copies, another topic, ...
                ^                                      |
                '--- each copy, on its own topic ------'       at most REWRITES_MAX of them a message

All rules of a topic see the message as it came to that topic. A copy has the headers that more salient rules have set.
A rule that replaces or drops ends the visit. A rule that delays does so before all others, unless a more salient one
replaces or drops the message: nothing else is done with it until it is due.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fanlight_broker.core.field_reader import FieldReader
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.metrics import MetricFamily
from fanlight_broker.core.ports import View
from fanlight_broker.core.rule_actions import REWRITING, ActionKind, RoutingRule
from fanlight_broker.core.rule_index import RoutingIndex
from fanlight_broker.core.rules import HeaderValue, Plan, Planned, Step
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.topics import SYNTAXES, why_not_made, words_of
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Owner
from matchcore.fields import Attributes
from matchcore.kleene import Fields, key_of
from matchcore.selector import Attribute, Constant, Source

REWRITES_MAX: Final = 8  # copies and replacements of one message
ALWAYS: Final = Constant(True)
SHOWN_MAX: Final = 1_000  # rules with a metric of their own: the most salient ones
PLANS_MAX: Final = 1_024  # that are kept, of topics of PLANNED_BYTES_MAX: 4 MiB at most
PLANNED_BYTES_MAX: Final = 256


@dataclass(slots=True)
class Draft:
    """One message on its way through the rules."""

    topic: bytes
    headers: dict[str, HeaderValue] = field(default_factory=dict)
    archive: bool = False
    own: bool = False

    def planned(self, delay: float | None = None) -> Planned:
        return Planned(self.topic, self.headers, self.archive, delay, self.own)


class RuleSet:
    """Rules that do not change. Raises InvalidFilter.

    limits  of topics
    wall    seconds since 1970, for `$time`
    """

    def __init__(
        self, rules: Sequence[RoutingRule], limits: Limits, wall: Callable[[], float] | None = None
    ) -> None:
        self.rules = sorted(rules, key=lambda rule: rule.order)
        self._by_number = {rule.number: rule for rule in rules}
        self._limits = limits
        self._wall = wall
        self._index = RoutingIndex(rules, limits.topic_words_max, limits.topic_bytes_max)
        attributes = Attributes()
        self._names = {attributes.acquire(each): key_of(each) for each in self._index.attributes}
        self._reader = FieldReader(attributes)
        self._plans: dict[tuple[bytes, int, bool, tuple[int, ...]], Plan] = {}
        self.hits: Counter[int] = Counter()  # by the numbers of rules
        self.copied = self.replaced = self.dropped = self.delayed = self.failed = self.stopped = 0

    @property
    def empty(self) -> bool:
        return not self.rules

    @property
    def attributes(self) -> frozenset[Attribute]:
        """What rules ask of a message, beside its topic."""
        return self._index.attributes

    def concern(self, topic: bytes, syntax: int) -> bool:
        return not topic.startswith(b"$") and self._index.concern(topic, syntax)

    # -- planning -----------------------------------------------------------------------------------------------------

    def plan(
        self, message: Message, publisher: Subscriber | Owner | None, body_format: int, *, due: bool
    ) -> Plan | None:
        fields = self._fields(message, publisher, body_format)
        topic, syntax = message.topic, SYNTAXES[message.syntax]
        found = self._matching(Draft(topic), syntax, fields)
        if not found:
            return None
        # What the rules of the topic make of it is the same for each message that meets the same of them, unless rules
        # with selectors may act on what was made.
        key = topic, message.syntax, due, tuple([rule.number for rule in found])
        plan = self._plans.get(key)
        if plan is None:
            plan, lasts = self._planned(topic, syntax, fields, found, due=due)
            if lasts and len(topic) <= PLANNED_BYTES_MAX:
                if len(self._plans) >= PLANS_MAX:
                    del self._plans[next(iter(self._plans))]
                self._plans[key] = plan
        return plan if plan.steps else None

    def _fields(self, message: Message, publisher: Subscriber | Owner | None, body_format: int) -> Fields:
        if not self._names:
            return {}
        who: Any = getattr(publisher, "subscriber", publisher)  # of a client's outbox, or an `Absent`
        now = self._wall() if self._wall is not None else 0.0
        self._reader.read_fields(message, body_format, who, now)
        return {self._names[number]: value for number, value in self._reader.values().items()}

    def planned(self, topic: bytes, syntax: str, fields: Fields, *, due: bool = False) -> Plan:
        """What becomes of a message with these fields on a topic. No steps: no rule acts on it."""
        return self._planned(topic, syntax, fields, self._matching(Draft(topic), syntax, fields), due=due)[0]

    def _planned(
        self, topic: bytes, syntax: str, fields: Fields, found: Sequence[RoutingRule], *, due: bool
    ) -> tuple[Plan, bool]:
        """The same, where these rules act on the topic; and whether all else that was asked is the same for any fields.
        """
        lasts = True
        outputs: list[Planned] = []
        steps: list[Step] = []
        drafts = deque([Draft(topic, own=True)])
        rewrites = 0
        while drafts:
            draft = drafts.popleft()
            if not draft.own:
                found = self._matching(draft, syntax, fields)
                lasts = lasts and not self._selecting(draft.topic, syntax)
            if (delaying := self._delaying(found, due)) is not None:
                steps.append(_step(delaying, draft.topic))
                outputs.append(draft.planned(delaying.seconds))
                continue
            gone = False
            for rule in found:
                if rule.kind is ActionKind.DELAY:
                    continue  # it was delayed, or is no more
                target = None
                if rule.kind in REWRITING:
                    target = self._target(rule, syntax, draft.topic, rewrites, steps)
                    if target is None:
                        continue
                    rewrites += 1
                steps.append(_step(rule, draft.topic, target))
                gone = self._act(rule, draft, target, drafts)
                if gone:
                    break
            if not gone:
                outputs.append(draft.planned())
        return Plan(outputs, steps), lasts

    def _selecting(self, topic: bytes, syntax: str) -> bool:
        """May a rule act on a topic, or not, by what a message says?"""
        return not topic.startswith(b"$") and any(
            rule.selector != ALWAYS for rule in self._index.of_topic(topic, syntax)
        )

    def _matching(self, draft: Draft, syntax: str, fields: Fields) -> list[RoutingRule]:
        if draft.topic.startswith(b"$"):
            return []
        if not draft.headers:
            return self._index.matching(draft.topic, syntax, fields)
        known: dict[str | Attribute, object] = {}
        known.update(fields.items())
        known.update((key_of_header(name), value) for name, value in draft.headers.items())
        return self._index.matching(draft.topic, syntax, known)

    @staticmethod
    def _delaying(found: Sequence[RoutingRule], due: bool) -> RoutingRule | None:
        """The rule that delays a message, if one does."""
        first = next((rule for rule in found if rule.ends or (rule.kind is ActionKind.DELAY and not due)), None)
        return first if first is not None and not first.ends else None

    def _target(
        self, rule: RoutingRule, syntax: str, topic: bytes, rewrites: int, steps: list[Step]
    ) -> bytes | None:
        """The topic that a rule sends a message to. None: it cannot, and a step says why."""
        assert rule.template is not None
        target = rule.template.made_of(words_of(topic, syntax, self._limits), syntax)
        if rewrites == REWRITES_MAX:
            why = f"a message has at most {REWRITES_MAX} copies and replacements: the rules lead in a circle"
        elif target is None:
            why = f"the topic has no word {rule.template.words_least}"
        else:
            why = why_not_made(target, syntax, self._limits)
        if not why:
            return target
        circle = rewrites == REWRITES_MAX
        steps.append(Step(rule.label, rule.number, topic, f"does not act: {why}", fails=True, circle=circle))
        return None

    @staticmethod
    def _act(rule: RoutingRule, draft: Draft, target: bytes | None, drafts: deque[Draft]) -> bool:
        """Do what a rule does. True: the message is on its topic no more."""
        match rule.kind:
            case ActionKind.COPY:
                assert target is not None
                drafts.append(Draft(target, dict(draft.headers)))
            case ActionKind.REPLACE:
                assert target is not None
                drafts.append(Draft(target, draft.headers, draft.archive))
            case ActionKind.ARCHIVE:
                draft.archive = True
            case ActionKind.SET | ActionKind.PRIORITY:
                draft.headers.update(rule.headers)
        return rule.ends

    # -- counting -----------------------------------------------------------------------------------------------------

    def count(self, plan: Plan) -> None:
        for step in plan.steps:
            if step.fails:
                self.failed += 1
                self.stopped += step.circle
                continue
            self.hits[step.number] += 1
            kind = self._by_number[step.number].kind
            self.copied += kind is ActionKind.COPY
            self.replaced += kind is ActionKind.REPLACE
            self.dropped += kind is ActionKind.DROP
            self.delayed += kind is ActionKind.DELAY

    def count_from(self, before: "RuleSet") -> None:
        """Go on with the counts of the rules that these take the place of: a rule of the same name has its hits."""
        for name in ("copied", "replaced", "dropped", "delayed", "failed", "stopped"):
            setattr(self, name, getattr(before, name))
        hits = {rule.label: before.hits[rule.number] for rule in before.rules}
        self.hits = Counter({rule.number: hits.get(rule.label, 0) for rule in self.rules})

    def counters(self) -> Mapping[str, int]:
        return {
            "rules_copied": self.copied, "rules_replaced": self.replaced, "rules_dropped": self.dropped,
            "rules_delayed": self.delayed, "rules_failed": self.failed, "rules_stopped": self.stopped,
        }

    def families(self) -> Sequence[MetricFamily]:
        shown = self.rules[:SHOWN_MAX]
        samples = [({"rule": rule.label}, float(self.hits[rule.number])) for rule in shown]
        return [MetricFamily("rule_messages", "Messages on which a routing rule acted", "counter", samples)]

    # -- for people ---------------------------------------------------------------------------------------------------

    def views(self, begin: int, end: int) -> Sequence[View]:
        """Rules, the most salient first, each with the messages on which it has acted."""
        return [
            {**described(rule), "does": rule.action, "messages": self.hits[rule.number]}
            for rule in self.rules[begin:end]
        ]

    def explain(self, topic: bytes, syntax: str, fields: Mapping[str, object] | None) -> View:
        if fields is None:
            found = [] if topic.startswith(b"$") else self._index.of_topic(topic, syntax)
            return {"rules": [{**described(rule), "does": rule.action} for rule in found[:SHOWN_MAX]]}
        plan = self.planned(topic, syntax, fields)
        return {
            "rules": [
                {"topic": text(step.topic), **described(self._by_number[step.number]), "does": step.does}
                for step in plan.steps
            ],
            "routed": [
                {
                    "topic": text(each.topic), "headers": dict(each.headers), "archived": each.archive,
                    "delay_seconds": each.delay,
                }
                for each in plan.outputs
            ],
        }


def key_of_header(name: str) -> str | Attribute:
    """The key of a header's value among fields, also for a name that looks like another attribute's."""
    return key_of(Attribute(Source.HEADER, (name,)))


def described(rule: RoutingRule) -> View:
    return {
        "rule": rule.label, "place": rule.place, "salience": rule.salience, "filter": text(rule.filter),
        "syntax": rule.syntax, "where": str(rule.selector),
    }


def text(octets: bytes) -> str:
    return octets.decode("utf-8", "backslashreplace")


def _step(rule: RoutingRule, topic: bytes, target: bytes | None = None) -> Step:
    does = rule.action
    if target is not None:
        does = f"copies it to {text(target)}" if rule.kind is ActionKind.COPY else f"sends it to {text(target)} instead"
    return Step(rule.label, rule.number, topic, does)
