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

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from matchcore.decision_table import TableRow, read_table
from matchcore.explanation import why_not
from matchcore.grammar import parse_filter
from matchcore.implication import disjoint, example, implies
from matchcore.inclusion import covers, intersects, outline
from matchcore.kleene import Fields, attribute_of
from matchcore.patterns import Where, selector_of
from matchcore.reasons import true_tests, why_not_true
from matchcore.rule import Rule
from matchcore.rule_rows import first_of_columns
from matchcore.rule_table import RuleTable
from matchcore.selector import Constant, Selector

__all__ = ["Overlap", "Reasons", "Rule", "RuleIndex", "Shadowed"]

Text = str | bytes


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
        self._table = RuleTable(max_words, max_bytes)

    def insert(
        self, where: Where | None = None, result: object = None, *, salience: int | float = 0, name: str | None = None,
        topic: Text | None = None, syntax: str = "amqp",
    ) -> Rule:  # fmt: skip
        """A new rule. Raises InvalidSelector, InvalidFilter; ValueError for a name that another rule has.

        The salience is a number that a float holds exactly, as integers up to 2^53; ValueError for others.
        """
        selector = Constant(True) if where is None else selector_of(where)
        return self._insert(selector, result, salience, name, topic, syntax, not isinstance(where, Mapping))

    def _insert(
        self, selector: Selector, result: object, salience: int | float, name: str | None, topic: Text | None,
        syntax: str, is_read: bool,
    ) -> Rule:  # fmt: skip
        if name is not None and self._table.named(name) is not None:
            raise ValueError(f"there is a rule {name!r} already")
        return self._table.insert(selector, result, _exact(salience), name, topic, syntax, is_read)

    def remove(self, rule: Rule | str) -> bool:
        """Whether it was there; a rule, or the name of one."""
        found = self._table.named(rule) if isinstance(rule, str) else rule
        return found is not None and self._table.remove(found)

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
                rule = self._insert(row.selector, row.result, row.salience, row.name, row.topic, row.syntax, False)
                loaded.append(rule)
        except BaseException:
            for rule in loaded:
                self.remove(rule)
            raise
        return loaded

    def _check(self, rows: Sequence[TableRow]) -> None:
        names = [row.name for row in rows if row.name is not None]
        twice = {name for name, times in Counter(names).items() if times > 1 or self._table.named(name) is not None}
        if twice:
            raise ValueError(f"two rules have the name {min(twice)!r}")
        for row in rows:
            if row.topic is not None:
                parse_filter(row.topic, row.syntax, **self._limits)

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[Rule]:
        """By salience."""
        return iter(self._table.rules())

    def __getitem__(self, name: str) -> Rule:
        rule = self._table.named(name)
        if rule is None:
            raise KeyError(name)
        return rule

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without names and results."""
        return self._table.nbytes

    # ---- asking

    def first(self, fact: Fields, *, topic: Text = "", syntax: str = "amqp") -> Rule | None:
        """The rule that wins; None if none matches. Rules that are less salient than it are not looked at."""
        return self._table.first(fact, topic, syntax)

    def matches(self, fact: Fields, *, topic: Text = "", syntax: str = "amqp") -> list[Rule]:
        """All rules that match, by salience."""
        return self._table.matches(fact, topic, syntax)

    def count(self, fact: Fields, *, topic: Text = "", syntax: str = "amqp") -> int:
        return self._table.count_of(fact, topic, syntax)

    def first_many(
        self, facts: Any, *, topics: Iterable[Text] | None = None, syntax: str = "amqp"
    ) -> list[Rule | None]:
        """`first` of each: of dicts, of a dict of columns, or of an Arrow table; with a topic for each.

        Columns are those of `FilterIndex.match_many`, and the search runs without the GIL; `insert` and `remove` wait
        for it. Where a rule asks for a word of the topic, the columns are read as dicts.
        """
        given = None if topics is None else list(topics)
        if hasattr(facts, "schema") or isinstance(facts, Mapping):
            found = first_of_columns(self._table, facts, _length(facts), given, syntax)
            if found is not None:
                return found
        rows = self._rows(facts)
        return self._table.first_of_each(rows, [""] * len(rows) if given is None else given, syntax)

    def _rows(self, facts: Any) -> list[Any]:
        if hasattr(facts, "schema"):  # of Arrow
            facts = {name: facts.column(place) for place, name in enumerate(facts.schema.names)}
        if not isinstance(facts, Mapping):
            return list(facts)
        rows = _length(facts)
        # Only what a rule reads is made into objects of Python.
        asked = {
            name: column.to_pylist() if hasattr(column, "to_pylist") else column
            for name, column in facts.items()
            if self._table.attributes.number(attribute_of(name) if isinstance(name, str) else name) >= 0
        }
        if not asked:
            return [{}] * rows
        return [dict(zip(asked, values, strict=True)) for values in zip(*asked.values(), strict=True)]

    # ---- for people

    def explain(self, fact: Fields, *, topic: Text = "", syntax: str = "amqp") -> list[Reasons]:
        """The rules that match, by salience, each with its tests that are true."""
        values = self._table.values(fact, topic, syntax)
        return [
            Reasons(rule, true_tests(rule.selector, values)) for rule in self.matches(fact, topic=topic, syntax=syntax)
        ]

    def why_not(self, fact: Fields, rule: Rule | str, *, topic: Text = "", syntax: str = "amqp") -> str | None:
        """Why a rule does not win, in a sentence; None if it does. KeyError for a name that no rule has."""
        asked = self[rule] if isinstance(rule, str) else rule
        if reason := why_not(asked.topic, asked.syntax, topic, syntax):
            return reason
        if reason := why_not_true(asked.selector, self._table.values(fact, topic, syntax)):
            return reason
        best = self.first(fact, topic=topic, syntax=syntax)
        return None if best is None or best == asked else f"{best} matches, too, and is more salient"

    # ---- faults of the rules

    def shadowed(self) -> list[Shadowed]:
        """Rules that can never win, by salience, as far as it is proven.

        For each rule a fact is made that it matches; of the more salient rules only those that match the fact, too, can
        cover it. Time: a search and a few comparisons for each rule, up to rules x rules where no such fact is found.
        """
        found: list[Shadowed] = []
        ordered = self._table.rules()
        for place, rule in enumerate(ordered):
            if disjoint(rule.selector, Constant(True)):
                found.append(Shadowed(rule, None))
                continue
            by = next((one for one in self._may_cover(rule, ordered[:place]) if _covers(one, rule)), None)
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
        ordered = self._table.rules()
        for place, second in enumerate(ordered):
            for first in ordered[:place]:
                if intersects(first.topic, second.topic, a_syntax=first.syntax, b_syntax=second.syntax) and not (
                    disjoint(first.selector, second.selector)
                ):
                    yield Overlap(first, second, example(first.selector, second.selector))


def _length(facts: Any) -> int:
    """Of the columns of a mapping, or of an Arrow table."""
    if not isinstance(facts, Mapping):
        return len(facts)
    counts = {len(column) for column in facts.values()}
    if len(counts) > 1:
        raise ValueError(f"the columns have different lengths: {', '.join(map(str, sorted(counts)))}")
    return max(counts, default=0)


def _exact(salience: int | float) -> float:
    try:
        number = float(salience)
    except OverflowError:
        number = math.inf
    if number != number:
        raise ValueError("the salience is not a number")
    if number != salience:
        raise ValueError(f"the salience {salience} is not a number that a float holds exactly; use smaller ones")
    return number


def _covers(a: Rule, b: Rule) -> bool:
    return covers(a.topic, b.topic, a_syntax=a.syntax, b_syntax=b.syntax) and implies(b.selector, a.selector)
