"""RuleIndex: the tables of the literature, the order of rules, their faults; and the index against the oracle."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore import InvalidFilter, InvalidSelector, RuleIndex
from matchcore.kleene import holds
from matchcore.selector import Attribute, Selector, Source
from tests.matchcore.selectors import FIELDS, SELECTORS

# Richard Startin's accents: how vowels are spoken, and where. The first row that fits wins.
ACCENTS = """
thought,cloth,lot,palm,plant,bath,trap,result
ɔ,ɒ,ɑ,ɑː,ɑː,ɑː,æ,Received Pronunciation (UK)
ɔ,ɔ,ɑ,ɑ,æ,æ,æ,Georgian (US)
ɑ,ɑ,ɑ,ɑ,æ,æ,æ,Canadian
*,*,ɑ,ɑ,æ,æ,æ,North American
*,*,*,*,*,*,æ,Non Native
*,*,*,*,*,*,*,French
""".strip()
VOWELS = ("thought", "cloth", "lot", "palm", "plant", "bath", "trap")


def accents() -> RuleIndex:
    rules = RuleIndex()
    rules.load(ACCENTS, "csv")
    return rules


def results(rules: RuleIndex, fact: dict[str, object], **more: str) -> list[object]:
    return [rule.result for rule in rules.matches(fact, **more)]


@pytest.mark.parametrize(
    ("spoken", "accent"),
    [
        ("ɔ ɒ ɑ ɑː ɑː ɑː æ", "Received Pronunciation (UK)"),
        ("ɔ ɔ ɑ ɑ æ æ æ", "Georgian (US)"),
        ("ɑ ɑ ɑ ɑ æ æ æ", "Canadian"),
        ("ɔ ɑ ɑ ɑ æ æ æ", "North American"),
        ("ɔ ɑ ɑ ɑ æ ɑ æ", "Non Native"),
        ("ɔ ɑ ɑ ɑ æ ɑ ɑ", "French"),
    ],
)
def test_the_accents(spoken: str, accent: str) -> None:
    rule = accents().first(dict(zip(VOWELS, spoken.split(), strict=True)))
    assert rule is not None
    assert rule.result == accent


def test_less_particular_accents_match_too() -> None:
    canadian = dict(zip(VOWELS, ["ɑ", "ɑ", "ɑ", "ɑ", "æ", "æ", "æ"], strict=True))
    assert results(accents(), canadian) == ["Canadian", "North American", "Non Native", "French"]
    assert accents().count(canadian) == 4
    assert results(accents(), {"trap": "æ"}) == ["Non Native", "French"]  # what is absent meets no rule that asks
    assert results(accents(), {}) == ["French"]


def test_french_would_hide_all_others_if_it_stood_first() -> None:
    rules = accents()
    assert rules.shadowed() == []
    french = rules.insert(result="French", salience=-1)
    assert [(rule.result, by) for rule, by in rules.shadowed()] == [
        (line.rsplit(",", 1)[1], french) for line in ACCENTS.splitlines()[1:]
    ]


def test_the_field_matching_of_imatix() -> None:
    """Subscriptions 0 to 3 as rules: those of which all criteria are met, and of which any is."""
    criteria = [
        ("currency = 'USD'", "urgent IS NOT NULL"), ("currency = 'EUR'",),
        ("market = 'forex'", "currency = 'EUR'"), ("urgent IS NOT NULL",),
    ]  # fmt: skip
    all_of, any_of = RuleIndex(), RuleIndex()
    for number, texts in enumerate(criteria):
        all_of.insert(" AND ".join(texts), number)
        any_of.insert(" OR ".join(texts), number)
    messages: list[tuple[dict[str, object], list[int], list[int]]] = [
        ({"currency": "JPY", "market": "forex", "slow": ""}, [], [2]),
        ({"currency": "JPY", "urgent": ""}, [3], [0, 3]),
        ({"currency": "EUR", "market": "forex"}, [1, 2], [1, 2]),
    ]
    for fact, every, some in messages:
        assert results(all_of, fact) == every
        assert results(any_of, fact) == some


def test_the_smallest_salience_wins_and_of_equals_the_first() -> None:
    rules = RuleIndex()
    for salience, result in [(2, "c"), (1, "a"), (2, "d"), (1.5, "b"), (10, "e")]:
        rules.insert("x = 1", result, salience=salience)
    assert results(rules, {"x": 1}) == ["a", "b", "c", "d", "e"]
    assert [rule.result for rule in rules] == ["a", "b", "c", "d", "e"]
    first = rules.first({"x": 1})
    assert first is not None
    assert rules.remove(first)
    assert not rules.remove(first)
    assert results(rules, {"x": 1}) == ["b", "c", "d", "e"]
    assert rules.first({"x": 2}) is None


def test_a_rule_may_ask_for_the_topic() -> None:
    rules = RuleIndex()
    rules.insert("value > 30", "hot", topic="site/+/temp", syntax="mqtt")
    rules.insert("$word[2] = 'a' AND $words = 3", "a")
    rules.insert(result="any")
    assert results(rules, {"value": 31}, topic="site/a/temp", syntax="mqtt") == ["hot", "a", "any"]
    assert results(rules, {"value": 31}, topic="site.b.temp") == ["hot", "any"]
    assert results(rules, {"value": 31}, topic="site.b") == ["any"]
    assert results(rules, {"value": 31}) == ["any"]


def test_rules_are_found_and_removed_by_name() -> None:
    rules = RuleIndex()
    rule = rules.insert("a = 1", name="one")
    assert rules["one"] == rule
    with pytest.raises(ValueError, match="'one'"):
        rules.insert("a = 2", name="one")
    assert rules.remove("one")
    assert not rules.remove("one")
    assert len(rules) == 0
    with pytest.raises(KeyError):
        rules.why_not({}, "one")


def test_what_is_refused_changes_nothing() -> None:
    rules = RuleIndex()
    with pytest.raises(InvalidSelector):
        rules.insert("a =", name="x")
    with pytest.raises(InvalidFilter):
        rules.insert("a = 1", name="x", topic="a/#/b", syntax="mqtt")
    with pytest.raises(ValueError, match="not a number"):
        rules.insert("a = 1", name="x", salience=float("nan"))
    with pytest.raises(InvalidFilter):
        rules.load([{"name": "x", "a": 1}, {"topic": "a/#/b", "syntax": "mqtt"}], "table")
    with pytest.raises(ValueError, match="two rules have the name 'x'"):
        rules.load([{"name": "x"}, {"name": "x"}], "table")
    assert len(rules) == 0
    rules.insert("a = 1", name="x")


def test_many_facts_at_once() -> None:
    rules = RuleIndex()
    rules.insert("price > 100", "dear", topic="a.#")
    rules.insert("price IS NOT NULL", "cheap")
    facts: list[dict[str, object]] = [{"price": 120}, {"price": 5}, {}]
    columns = {"price": [120, 5, None]}

    def named(found: list[Any]) -> list[object]:
        return [rule and rule.result for rule in found]

    assert named(rules.first_many(facts, topics=["a.b", "a.b", "a.b"])) == ["dear", "cheap", None]
    assert named(rules.first_many(columns, topics=["a", "b", "a"])) == ["dear", "cheap", None]
    assert named(rules.first_many(facts)) == ["cheap", "cheap", None]
    assert named(rules.first_many({"other": ["x", "y"]})) == [None, None]  # no rule reads it
    assert named(rules.first_many({Attribute(Source.HEADER, ("price",)): [5]})) == ["cheap"]
    assert rules.first_many({}) == []
    with pytest.raises(ValueError, match="zip"):
        rules.first_many(facts, topics=["a"])
    with pytest.raises(ValueError, match="different lengths: 1, 2"):
        rules.first_many({"price": [1], "other": [1, 2]})


def test_many_facts_of_an_arrow_table() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rules = accents()
    table = pyarrow.table({"trap": ["æ", None, "a"]})
    for facts in (table, table.to_batches()[0]):
        assert [rule and rule.result for rule in rules.first_many(facts)] == ["Non Native", "French", "French"]


def test_why_a_rule_matches_and_why_it_does_not_win() -> None:
    rules = RuleIndex()
    rules.insert("price > 100 AND region = 'eu'", name="dear", salience=1)
    rules.insert("price > 50", name="mid", salience=2)
    rules.insert("price > 0", name="there", salience=3, topic="a.*")
    fact: dict[str, object] = {"price": 80}
    assert rules.why_not(fact, "dear") == "price is 80; the selector wants > 100"
    assert rules.why_not(fact, "mid") is None
    assert rules.why_not(fact, "there") == "the filter takes exactly 2 words, and the topic has 0"
    wins = "rule 'mid' (salience 2) matches, too, and is more salient"
    assert rules.why_not(fact, rules["there"], topic="a.b") == wins
    explained = rules.explain(fact, topic="a.b")
    assert [(str(rule), tests) for rule, tests in explained] == [
        ("rule 'mid' (salience 2)", ("price > 50",)), ("rule 'there' (salience 3)", ("price > 0",)),
    ]  # fmt: skip


def test_a_rule_that_can_never_win_is_found() -> None:
    rules = RuleIndex()
    dear = rules.insert("price > 100", topic="orders.#")
    rules.insert("price > 100", topic="trades.#")
    dearer = rules.insert("price > 200 AND region = 'eu'", topic="orders.*.new")
    never = rules.insert("price > 5 AND price < 3")
    rules.insert("price > 50 OR region = 'eu'", topic="orders.#")
    last = rules.insert("price BETWEEN 60 AND 70", topic="orders.eu")
    found = [(rule, by and by.number) for rule, by in rules.shadowed()]
    assert found == [(dearer, dear.number), (never, None), (last, 4)]


def test_rules_that_one_fact_may_match_are_found() -> None:
    rules = RuleIndex()
    rules.insert("price < 10", name="a")
    rules.insert("price >= 10 AND price < 20", name="b")
    rules.insert("price BETWEEN 15 AND 25", name="c")
    rules.insert("price < 10", name="d", topic="x.*")
    rules.insert("price < 10", name="e", topic="y.*")
    found = list(rules.overlaps())
    assert [(one.first.name, one.second.name) for one in found] == [("b", "c"), ("a", "d"), ("a", "e")]
    assert found[0].fact is not None
    assert all(holds(rule.selector, found[0].fact) for rule in found[0][:2])


@settings(deadline=None, max_examples=40)
@given(st.lists(SELECTORS, min_size=2, max_size=4), FIELDS)
def test_rules_that_do_not_overlap_are_not_matched_by_one_fact(
    selectors: list[Selector], fact: dict[Attribute, object]
) -> None:
    rules = RuleIndex()
    for selector in selectors:
        rules.insert(selector)
    pairs = {(one.first.number, one.second.number) for one in rules.overlaps()}
    found = [rule.number for rule in rules.matches(fact)]
    assert {(a, b) for a in found for b in found if a < b} <= pairs
