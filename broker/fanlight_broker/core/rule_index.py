"""Which rules a message meets: the only place of the broker that knows matchcore's RuleIndex."""

from collections.abc import Iterable

from fanlight_broker.core.rule_actions import RoutingRule
from fanlight_broker.core.topics import SYNTAXES
from matchcore.filters import FilterIndex
from matchcore.kleene import OF_TOPIC, Fields
from matchcore.rules import RuleIndex
from matchcore.selector import Attribute, Source, leaves


class RoutingIndex:
    """Rules by topic and fields. Raises InvalidFilter."""

    def __init__(self, rules: Iterable[RoutingRule], max_words: int, max_bytes: int) -> None:
        self._rules = list(rules)
        self._by_number = {rule.number: rule for rule in self._rules}
        self._index = RuleIndex(max_words, max_bytes)
        self._filters = FilterIndex(max_words, max_bytes)  # for topics alone: nothing is asked of the message
        for rule in self._rules:
            self._index.insert(rule.selector, rule, salience=rule.salience, topic=rule.filter, syntax=rule.syntax)
            self._filters.insert(rule.filter, rule.number, syntax=rule.syntax)

    @property
    def attributes(self) -> frozenset[Attribute]:
        """What rules ask of a message, beside its topic."""
        tests = (test for rule in self._rules for test in leaves(rule.selector))
        return frozenset(
            test.attribute for test in tests
            if test.attribute.source is not Source.MESSAGE or test.attribute.path[0] not in OF_TOPIC
        )

    def concern(self, topic: bytes, syntax: int) -> bool:
        """Does any rule's filter match the topic?"""
        return bool(self._filters.match_any(topic, syntax=SYNTAXES[syntax]))

    def matching(self, topic: bytes, syntax: str, fields: Fields) -> list[RoutingRule]:
        """The rules that act on a message, by salience."""
        found = [rule.result for rule in self._index.matches(fields, topic=topic, syntax=syntax)]
        return [rule for rule in found if isinstance(rule, RoutingRule)]

    def of_topic(self, topic: bytes, syntax: str) -> list[RoutingRule]:
        """Those whose filter matches, whatever they ask of the message."""
        found = [self._by_number[number] for number in self._filters.match(topic, syntax=syntax)]
        return sorted(found, key=lambda rule: rule.order)
