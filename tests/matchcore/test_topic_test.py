"""MATCHES: a text of a message, read as a topic, beside a filter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchcore import FilterIndex, RuleIndex, reference
from matchcore.kleene import Untyped, holds, is_on
from matchcore.selector import Attribute, Matches, Source
from matchcore.topic_test import _is_on
from matchcore.where import parse_where
from tests.matchcore.selectors import FILTERS, TOPICS
from tests.matchcore.test_rules import VECTORS

A = Attribute(Source.HEADER, ("a",))


def on(text: str, filter: str) -> bool:
    """What the compiled test says, and the definition too."""
    test = Matches(A, filter)
    held, _ = _is_on(text.encode(), filter.encode(), test.syntax == "mqtt")
    assert is_on(text, test) is held
    return held


@given(TOPICS | st.text("ab./$*+#", max_size=8), FILTERS)
def test_the_compiled_test_is_the_definition(text: str, filter: str) -> None:
    on(text, filter)


@pytest.mark.parametrize(("filter", "syntax", "topic", "topic_syntax", "expected"), VECTORS)
def test_the_rules_of_matching(filter: str, syntax: str, topic: str, topic_syntax: str, expected: bool) -> None:
    """Those whose filter is spelled as its syntax says, asked with a topic of the same syntax."""
    if Matches(A, filter).syntax == syntax == topic_syntax:
        assert on(topic, filter) is expected


@given(TOPICS, FILTERS)
def test_topics_are_on_the_filters_that_match_them(topic: str, filter: str) -> None:
    syntax = Matches(A, filter).syntax
    if topic or syntax == "amqp":
        assert on(topic, filter) is reference.matches(filter, syntax, topic, syntax)


def test_a_filter_is_read_as_it_is_spelled() -> None:
    assert [Matches(A, filter).syntax for filter in ("a.*", "#", "", "a/b", "+", "a.b/#")] == ["amqp"] * 3 + [
        "mqtt"
    ] * 3
    assert on("site/1/temp", "site/+/temp")
    assert on("site.1.temp", "site.*.temp")
    assert not on("site.1.temp", "site/+/temp")
    assert on("", "#")
    assert not on("", "*")
    assert on("a/+", "a/+")  # a text is not checked


def test_only_text_is_compared() -> None:
    selector = parse_where("a MATCHES 'x.#'")
    assert holds(selector, {"a": "x.y"}) is holds(selector, {"a": Untyped("x.y")}) is True
    assert holds(selector, {"a": "y.x"}) is False
    assert holds(selector, {"a": 5}) is holds(selector, {}) is holds(selector, {"a": b"x.y"}) is None


@pytest.mark.parametrize(
    ("filter", "affixes"),
    [
        ("a.b", ("a.b", "")), ("a.*", ("a.", "")), ("a.#", ("a", "")), ("a.b.*.c", ("a.b.", ".c")),
        ("#.c.d", ("", "c.d")),
        ("a/+/c/#", ("a/", "")), ("+/c", ("", "/c")), ("#", ("", "")), ("*.b.*", ("", "")), (".*", (".", "")),
        ("a.#.*.b", ("a", ".b")), ("a.*.#.b", ("a.", "b")),
    ],
)  # fmt: skip
def test_what_each_text_on_a_filter_begins_and_ends_with(filter: str, affixes: tuple[str, str]) -> None:
    assert Matches(A, filter).affixes == affixes


@given(TOPICS, FILTERS)
def test_texts_on_a_filter_have_its_affixes(text: str, filter: str) -> None:
    prefix, suffix = Matches(A, filter).affixes
    assert not on(text, filter) or (text.startswith(prefix) and text.endswith(suffix))


def test_the_time_is_linear_in_the_text() -> None:
    filter = b"#.a.a.a.a.a.a.a.b.#.a.a.a.a.b.#.b"
    for words in (1_000, 4_000):
        held, steps = _is_on(b".".join([b"a"] * words), filter, False)
        assert not held
        assert steps < 20 * words


def test_a_subscription_may_ask_where_a_header_leads() -> None:
    index = FilterIndex()
    for i in range(40):
        index.insert("jobs.#", i, where=f"reply MATCHES 'host/{i}/+' AND cost < 5")
    index.insert("jobs.#", 99, where="reply NOT MATCHES 'host/#'")
    assert index.match("jobs.a", fields={"reply": "host/7/x", "cost": 1}) == (7,)
    assert index.match("jobs.a", fields={"reply": "host/7/x/y", "cost": 1}) == ()
    assert index.match("jobs.a", fields={"reply": "hosts", "cost": 1}) == (99,)
    assert index.asked("jobs.a") == ("cost", "reply")


def test_rules_under_the_beginning_or_the_end_of_a_filter() -> None:
    rules = RuleIndex()
    for i in range(1_000):
        rules.insert(f"topic MATCHES 'site/{i}/#'", i)
        rules.insert(f"topic MATCHES 'site.*.device{i}'", -i)
    rules.insert("topic MATCHES '#'", "any", salience=1)
    assert [one.result for one in rules.matches({"topic": "site/7/temp"})] == [7, "any"]
    assert [one.result for one in rules.matches({"topic": "site.7.device8"})] == [-8, "any"]
    assert rules._table._looked_at({"topic": "site.7.device8"}, "", False) == 2
    assert [one.result for one in rules.matches({"topic": "site/7"})] == [7, "any"]
    first = rules.first({"topic": "x"})
    assert first is not None
    assert first.result == "any"
    reason = rules.why_not({"topic": "site.7.device8"}, next(iter(rules)))
    assert reason == "topic is 'site.7.device8'; the selector wants MATCHES 'site/0/#'"


def test_rules_that_others_hide_or_meet() -> None:
    rules = RuleIndex()
    wide = rules.insert("topic MATCHES 'site/+/temp'", name="wide")
    hidden = rules.insert("topic MATCHES 'site/7/temp' AND value > 3", name="hidden")
    rules.insert("topic MATCHES 'site/#'", name="more")
    rules.insert("topic MATCHES 'hall/#'", name="other")
    assert [(rule.name, by and by.name) for rule, by in rules.shadowed()] == [(hidden.name, wide.name)]
    assert {(one.first.name, one.second.name) for one in rules.overlaps()} == {
        ("wide", "hidden"), ("wide", "more"), ("hidden", "more"),
    }  # fmt: skip
    assert all(holds(rule.selector, one.fact) for one in rules.overlaps() if one.fact for rule in one[:2])
    assert any(one.fact for one in rules.overlaps())
