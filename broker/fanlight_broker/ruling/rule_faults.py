"""Faults of a file of rules: circles, rules that never act, rules that act on the same message.

What is said here is proven. A circle that is not proven is ended at run time, after REWRITES_MAX copies and
replacements.

    rule a --every message it sends somewhere--> meets rule b --every ...--> meets rule a

An edge is proven if b's filter covers all topics that a sends to, b's selector follows from a's, and no more salient
rule may take the message away before b acts.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Any, Final, NamedTuple

import matchcore
from fanlight_broker.core.rule_actions import REWRITING, ActionKind, RoutingRule
from fanlight_broker.core.topics import SEPARATORS
from matchcore.implication import disjoint, example, implies
from matchcore.inclusion import outline
from matchcore.kleene import OF_TOPIC
from matchcore.selector import Constant, Selector, Source, leaves

COMPARED_MAX: Final = 2_000  # rules that are compared in pairs: 2 million pairs, some seconds


class Shadow(NamedTuple):
    """A rule that never acts: a more salient one takes away all its messages; None: it is true of none."""

    rule: RoutingRule
    by: RoutingRule | None


class Pair(NamedTuple):
    """Two rules that may act on one message, the more salient one first; and fields of such a message, or None."""

    first: RoutingRule
    second: RoutingRule
    fields: Mapping[Any, object] | None


class Topics:
    """Rules by the topics that their filters match."""

    def __init__(self, rules: Sequence[RoutingRule]) -> None:
        self._rules = {rule.number: rule for rule in rules}
        self._index = matchcore.FilterIndex(1024, 1 << 20)
        for rule in rules:
            self._index.insert(rule.filter, rule.number, syntax=rule.syntax)

    def covering(self, filter: bytes, syntax: str) -> list[RoutingRule]:
        """Those whose filter matches every topic that this one matches, in their order."""
        _, topic = outline(filter, syntax)
        found = [self._rules[number] for number in self._index.match(topic, syntax=syntax)]
        return sorted(
            (rule for rule in found if matchcore.covers(rule.filter, filter, a_syntax=rule.syntax, b_syntax=syntax)),
            key=lambda rule: rule.order,
        )


def circle(rules: Sequence[RoutingRule]) -> list[RoutingRule] | None:
    """Rules that send every message of some of their topics round and round; None if none are proven to."""
    senders = [rule for rule in rules if rule.kind in REWRITING]
    topics = Topics(senders)
    ending = [rule for rule in rules if rule.ends]
    set_here = frozenset(name for rule in rules for name, _ in rule.headers)
    done: set[int] = set()
    for start in senders:
        if start.number in done:
            continue
        path: list[RoutingRule] = []
        on_path: dict[int, int] = {}
        todo: list[Iterator[RoutingRule]] = [iter((start,))]
        while todo:
            rule = next(todo[-1], None)
            if rule is None:
                todo.pop()
                if path:
                    last = path.pop()
                    del on_path[last.number]
                    done.add(last.number)
                continue
            if rule.number in on_path:
                return path[on_path[rule.number] :]
            if rule.number in done:
                continue
            on_path[rule.number] = len(path)
            path.append(rule)
            todo.append(iter(_next(rule, topics, ending, set_here)))
    return None


def _next(
    rule: RoutingRule, topics: Topics, ending: Sequence[RoutingRule], set_here: frozenset[str]
) -> list[RoutingRule]:
    """The rules that are proven to send on each message that a rule sends."""
    filter = rule.output_filter()
    words = filter.split(SEPARATORS[rule.syntax])
    count = inf if b"#" in words else len(words)
    return [
        other for other in topics.covering(filter, rule.syntax)
        if other.template is not None and other.template.words_least <= count
        and _follows(rule.selector, other.selector, set_here)
        and not any(_may_take(end, other, rule, filter) for end in ending)
    ]


def _follows(first: Selector, second: Selector, set_here: frozenset[str]) -> bool:
    """Is the second true of each message that the first is true of, on another topic too, whatever rules set?"""
    for test in leaves(second):
        source, name = test.attribute.source, test.attribute.path[0]
        if (source is Source.MESSAGE and name in OF_TOPIC) or (source is Source.HEADER and name in set_here):
            return False
    return implies(first, second)


def _may_take(end: RoutingRule, other: RoutingRule, sender: RoutingRule, filter: bytes) -> bool:
    """May a more salient rule take away a message before `other` acts on it?"""
    return (
        end is not other and end.order < other.order
        and matchcore.intersects(end.filter, filter, a_syntax=end.syntax, b_syntax=sender.syntax)
    )


def shadowed(rules: Sequence[RoutingRule]) -> Iterator[Shadow]:
    """The rules that never act, by salience, as far as it is proven; but for the end of a circle, where `replace` does
    not act.
    """
    ordered = sorted(rules, key=lambda rule: rule.order)
    takers = Topics([rule for rule in ordered if _takes_all(rule)])
    for rule in ordered:
        if disjoint(rule.selector, Constant(True)):
            yield Shadow(rule, None)
            continue
        for by in takers.covering(rule.filter, rule.syntax):
            if by.order >= rule.order:
                break
            if (by.ends or rule.kind is ActionKind.DELAY) and implies(rule.selector, by.selector):
                yield Shadow(rule, by)
                break


def _takes_all(rule: RoutingRule) -> bool:
    """Does it take away every message that it acts on, from other rules or from other delays?"""
    if rule.kind is ActionKind.REPLACE:
        # Where the topic has too few words, or the new one is not possible, it does not act.
        return rule.template is not None and rule.template.words_least == 0 and b"$" not in rule.template.text
    return rule.kind in (ActionKind.DROP, ActionKind.DELAY)


def overlaps(rules: Sequence[RoutingRule], most: int) -> list[Pair]:
    """Pairs of rules that are not proven to exclude each other: `most` of them, of the COMPARED_MAX most salient."""
    ordered = sorted(rules, key=lambda rule: rule.order)[:COMPARED_MAX]

    def pairs() -> Iterator[Pair]:
        for place, second in enumerate(ordered):
            for first in ordered[:place]:
                if matchcore.intersects(
                    first.filter, second.filter, a_syntax=first.syntax, b_syntax=second.syntax
                ) and not disjoint(first.selector, second.selector):
                    yield Pair(first, second, example(first.selector, second.selector))

    return list(islice(pairs(), most))
