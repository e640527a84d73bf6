"""Routing rules: what the broker does with a message beside delivering it on its topic (docs/rules.md). Here: nothing.

    PUBLISH, will, delayed message that is due --> Publishing: permission, mark --> Rules.plan --> Plan --> fan-out, ...

A message is looked at where it is routed: when it is accepted, or, if it was delayed, when it is due. Rules are asked
on topics alone that one of their filters matches, which a route knows (`Route.ruled`): other topics stay compiled.
What is made of the file of rules is rule_set.py, which is imported only where the settings name one.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from fanlight_broker.core.metrics import MetricFamily
from fanlight_broker.core.ports import View
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Owner

COUNTERS: Final[Mapping[str, str]] = {
    "rules_copied": "Copies that routing rules made of messages",
    "rules_replaced": "Messages that a routing rule sent to another topic",
    "rules_dropped": "Messages that a routing rule dropped",
    "rules_delayed": "Messages that a routing rule delayed",
    "rules_failed": "Times a routing rule did not act, because the topic it would send to is not possible",
    "rules_stopped": "Of these, because the message had all copies and replacements that one message may have",
}

HeaderValue = str | int | float | bool


class Planned(NamedTuple):
    """One message to route: the one that was published, or what a rule makes of it."""

    topic: bytes
    headers: Mapping[str, HeaderValue] = {}  # that rules have set
    archive: bool = False  # it is archived, whatever `archive_topics` says
    delay: float | None = None  # seconds after which it is routed; None: now
    own: bool = False  # on the topic on which it was published


class Step(NamedTuple):
    """What one rule does with a message on one topic."""

    rule: str
    number: int
    topic: bytes
    does: str  # "copies it to stock.a"
    fails: bool = False  # it cannot be done: `does` says why not
    circle: bool = False  # because the message has as many copies and replacements as one may have


class Plan(NamedTuple):
    """What becomes of one message. `outputs` in the order in which they are published; none: it is dropped."""

    outputs: Sequence[Planned]
    steps: Sequence[Step]

    @property
    def delay(self) -> float | None:
        """Of the whole message: nothing is made of it before."""
        return self.outputs[0].delay if len(self.outputs) == 1 and self.outputs[0].own else None


class Rules(Protocol):
    """The rules in force, none of which changes. Others take their place as a whole (`Publishing.use_rules`)."""

    @property
    def empty(self) -> bool: ...

    def concern(self, topic: bytes, syntax: int) -> bool:
        """May one act on messages of this topic? Asked once a topic, and kept with its route."""
        ...

    def plan(
        self, message: Message, publisher: Subscriber | Owner | None, body_format: int, *, due: bool
    ) -> Plan | None:
        """What becomes of a message; None if no rule acts on it.

        body_format  of a body without a content type: one of BODY_FORMATS, or 0
        due          it was delayed before, and is not delayed again
        """
        ...

    def count(self, plan: Plan) -> None:
        """What was planned has happened."""
        ...

    def explain(self, topic: bytes, syntax: str, fields: Mapping[str, object] | None) -> View:
        """For people: what becomes of a message with these fields; without, which rules may act."""
        ...

    def counters(self) -> Mapping[str, int]: ...

    def families(self) -> Sequence[MetricFamily]: ...


class NoRules:
    empty = True

    def concern(self, topic: bytes, syntax: int) -> bool:
        return False

    def plan(
        self, message: Message, publisher: Subscriber | Owner | None, body_format: int, *, due: bool
    ) -> Plan | None:
        return None

    def count(self, plan: Plan) -> None:
        pass

    def explain(self, topic: bytes, syntax: str, fields: Mapping[str, object] | None) -> View:
        return {"rules": []}

    def counters(self) -> Mapping[str, int]:
        return dict.fromkeys(COUNTERS, 0)

    def families(self) -> Sequence[MetricFamily]:
        return ()
