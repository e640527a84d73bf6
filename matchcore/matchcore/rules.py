"""RuleIndex: facts in, the rule that wins out; a decision table with as many rules as there are.

    rules = RuleIndex()
    rules.insert("country = 'de' AND price > 100", "ask", salience=1)
    rules.insert(result="take", salience=2)                # without a condition: always
    rules.first({"country": "de", "price": 120}).result    # "ask"

A rule is a selector, a filter for the topic if it has one, a salience and a result of any kind. A fact is a dict, and
may come with a topic; an attribute that is absent meets only rules that do not ask for it. Of the rules that match, the
one of the smallest salience wins; of equals the one inserted first: the order of a table read from the top.

`shadowed` and `overlaps` look for faults in the rules. What they compare is proven or not known (implication.py).
Source of the form: Richard Startin, "A Quick Look at RoaringBitmap" and the rules engine built on it, 2017 to 2018.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matchcore.decision_table import TableRow, read_table
from matchcore.explanation import why_not
from matchcore.filters import FilterIndex
from matchcore.grammar import parse_filter, split_topic
from matchcore.implication import disjoint, example, implies
from matchcore.inclusion import covers, intersects, outline
from matchcore.kleene import Fields, with_topic
from matchcore.patterns import Where, selector_of
from matchcore.reasons import true_tests, why_not_true
from matchcore.selecting import Selecting
from matchcore.selector import Constant, Selector

__all__ = ["Overlap", "Reasons", "Rule", "RuleIndex", "Shadowed"]

ANY_TOPIC = "#"
Text = str | bytes


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    selector: Selector
    result: object
    salience: int | float
    name: str | None
    topic: Text
    """A filter; `#` in the syntax "amqp" where the rule takes any topic, and none."""
    syntax: str
    number: int
    """Rules are counted from 0 as they are inserted."""

    @property
    def order(self) -> tuple[int | float, int]:
        return self.salience, self.number

    def __str__(self) -> str:
        what = str(self.number) if self.name is None else repr(self.name)
        return f"rule {what} (salience {self.salience})"


class Reasons(NamedTuple):
    """A rule that matches a fact, and its tests that are true."""

    rule: Rule
    tests: tuple[str, ...]


class Shadowed(NamedTuple):
    """A rule that can never win: a more salient one matches whatever it matches; None: it matches nothing."""

    rule: Rule
    by: Rule | None


class Overlap(NamedTuple):
    """Two rules that one fact may match, the more salient one first; and such a fact, if one was found."""

    first: Rule
    second: Rule
    fact: Mapping[Any, object] | None


class RuleIndex:
    """Rules by salience. `max_words` and `max_bytes` bound topics and their filters, as in a FilterIndex."""

    def __init__(self, max_words: int = 128, max_bytes: int = 65_535) -> None:
        self._limits = {"max_words": max_words, "max_bytes": max_bytes}
        self._index = Selecting(FilterIndex(max_words, max_bytes))  # topic and fact -> numbers of rules
        self._rules: dict[int, Rule] = {}
        self._names: dict[str, Rule] = {}
        self._ordered: list[Rule] = []
        self._next = 0

    def insert(
        self, where: Where | None = None, result: object = None, *, salience: int | float = 0, name: str | None = None,
        topic: Text | None = None, syntax: str = "amqp",
    ) -> Rule:  # fmt: skip
        """A new rule. Raises InvalidSelector, InvalidFilter; ValueError for a name that another rule has."""
        selector = Constant(True) if where is None else selector_of(where)
        return self._insert(selector, result, salience, name, topic, syntax)

    def _insert(
        self, selector: Selector, result: object, salience: int | float, name: str | None, topic: Text | None,
        syntax: str,
    ) -> Rule:  # fmt: skip
        if name in self._names:
            raise ValueError(f"there is a rule {name!r} already")
        if salience != salience:
            raise ValueError("the salience is not a number")
        pattern, syntax = (ANY_TOPIC, "amqp") if topic is None else (topic, syntax)
        rule = Rule(selector, result, salience, name, pattern, syntax, self._next)
        self._index.insert(pattern, rule.number, selector, syntax)
        self._next += 1
        self._rules[rule.number] = rule
        insort(self._ordered, rule, key=_order)
        if name is not None:
            self._names[name] = rule
        return rule

    def remove(self, rule: Rule | str) -> bool:
        """Whether it was there; a rule, or the name of one."""
        found = self._names.get(rule) if isinstance(rule, str) else rule
        if found is None or self._rules.get(found.number) is not found:
            return False
        self._index.remove(found.topic, found.number, found.syntax)
        del self._rules[found.number]
        del self._ordered[bisect_left(self._ordered, found.order, key=_order)]
        if found.name is not None:
            del self._names[found.name]
        return True

    def load(self, source: Any, format: str) -> list[Rule]:
        """The rules of a decision table, inserted: all or none.

        `format`: "csv", "json", "toml" (of a text), or "table" (mappings, or an Arrow table); decision_table.py has the
        columns and the cells. Raises InvalidSelector, InvalidFilter, ValueError.
        """
        rows = read_table(source, format)
        self._check(rows)
        loaded: list[Rule] = []
        try:
            for row in rows:
                rule = self._insert(row.selector, row.result, row.salience, row.name, row.topic, row.syntax)
                loaded.append(rule)
        except BaseException:
            for rule in loaded:
                self.remove(rule)
            raise
        return loaded

    def _check(self, rows: Sequence[TableRow]) -> None:
        names = [row.name for row in rows if row.name is not None]
        twice = {name for name, times in Counter(names).items() if name in self._names or times > 1}
        if twice:
            raise ValueError(f"two rules have the name {min(twice)!r}")
        for row in rows:
            if row.topic is not None:
                parse_filter(row.topic, row.syntax, **self._limits)

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[Rule]:
        """By salience."""
        return iter(list(self._ordered))

    def __getitem__(self, name: str) -> Rule:
        return self._names[name]

    # ---- asking

    def first(self, fact: Fields, *, topic: Text = "", syntax: str = "amqp") -> Rule | None:
        """The rule that wins; None if none matches."""
        numbers = self._index.match(topic, fact, syntax)
        if len(numbers) == 1:
            return self._rules[numbers[0]]
        return min(map(self._rules.__getitem__, numbers), key=_order, default=None)

    def matches(self, fact: Fields, *, topic: Text = "", syntax: str = "amqp") -> list[Rule]:
        """All rules that match, by salience."""
        return sorted(self._matching(fact, topic, syntax), key=_order)

    def count(self, fact: Fields, *, topic: Text = "", syntax: str = "amqp") -> int:
        return len(self._index.match(topic, fact, syntax))

    def first_many(
        self, facts: Any, *, topics: Iterable[Text] | None = None, syntax: str = "amqp"
    ) -> list[Rule | None]:
        """`first` of each: of dicts, of a dict of columns, or of an Arrow table; with a topic for each."""
        rows = _rows_of(facts)
        return [
            self.first(fact, topic=topic, syntax=syntax)
            for fact, topic in zip(rows, [""] * len(rows) if topics is None else topics, strict=True)
        ]

    def _matching(self, fact: Fields, topic: Text, syntax: str) -> Iterator[Rule]:
        return map(self._rules.__getitem__, self._index.match(topic, fact, syntax))

    def _with_topic(self, fact: Fields, topic: Text, syntax: str) -> Fields:
        return with_topic(fact, split_topic(topic, syntax, **self._limits))

    # ---- for people

    def explain(self, fact: Fields, *, topic: Text = "", syntax: str = "amqp") -> list[Reasons]:
        """The rules that match, by salience, each with its tests that are true."""
        values = self._with_topic(fact, topic, syntax)
        return [
            Reasons(rule, true_tests(rule.selector, values)) for rule in self.matches(fact, topic=topic, syntax=syntax)
        ]

    def why_not(self, fact: Fields, rule: Rule | str, *, topic: Text = "", syntax: str = "amqp") -> str | None:
        """Why a rule does not win, in a sentence; None if it does. KeyError for a name that no rule has."""
        asked = self._names[rule] if isinstance(rule, str) else rule
        if reason := why_not(asked.topic, asked.syntax, topic, syntax):
            return reason
        if reason := why_not_true(asked.selector, self._with_topic(fact, topic, syntax)):
            return reason
        best = self.first(fact, topic=topic, syntax=syntax)
        return None if best is None or best is asked else f"{best} matches, too, and is more salient"

    # ---- faults of the rules

    def shadowed(self) -> list[Shadowed]:
        """Rules that can never win, by salience, as far as it is proven.

        For each rule a fact is made that it matches; of the more salient rules only those that match the fact, too, can
        cover it. Time: a search and a few comparisons for each rule, up to rules x rules where no such fact is found.
        """
        found: list[Shadowed] = []
        for place, rule in enumerate(self._ordered):
            if disjoint(rule.selector, Constant(True)):
                found.append(Shadowed(rule, None))
                continue
            by = next((one for one in self._may_cover(rule, self._ordered[:place]) if _covers(one, rule)), None)
            if by is not None:
                found.append(Shadowed(rule, by))
        return found

    def _may_cover(self, rule: Rule, before: list[Rule]) -> list[Rule]:
        fact = example(rule.selector)
        if fact is None:
            return before
        _, topic = outline(rule.topic, rule.syntax)
        matching = self.matches(fact, topic=topic, syntax=rule.syntax)
        return matching[: matching.index(rule)] if rule in matching else before

    def overlaps(self) -> Iterator[Overlap]:
        """Pairs of rules that are not proven to exclude each other; rules x rules comparisons."""
        for place, second in enumerate(self._ordered):
            for first in self._ordered[:place]:
                if intersects(first.topic, second.topic, a_syntax=first.syntax, b_syntax=second.syntax) and not (
                    disjoint(first.selector, second.selector)
                ):
                    yield Overlap(first, second, example(first.selector, second.selector))


def _order(rule: Rule) -> tuple[int | float, int]:
    return rule.order


def _covers(a: Rule, b: Rule) -> bool:
    return covers(a.topic, b.topic, a_syntax=a.syntax, b_syntax=b.syntax) and implies(b.selector, a.selector)


def _rows_of(facts: Any) -> list[Any]:
    if hasattr(facts, "to_pylist"):
        return list(facts.to_pylist())
    if isinstance(facts, Mapping):
        return [dict(zip(facts, values, strict=True)) for values in zip(*facts.values(), strict=True)]
    return list(facts)
