"""Faults of rules that are proven: circles, rules that never act, rules that act on the same message."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.rule_actions import RoutingRule
from fanlight_broker.core.rule_set import REWRITES_MAX, RuleSet
from fanlight_broker.ruling.rule_faults import circle, overlaps, shadowed
from fanlight_broker.ruling.rule_file import parse_rules
from tests.broker.core.test_rule_set import rules as any_rules
from tests.broker.core.test_rule_set import topics
from tests.broker.protocols.rule_worlds import rule

LIMITS = Limits()


def rules_of(*rules: dict[str, Any]) -> list[RoutingRule]:
    return parse_rules("".join(rule(**each) for each in rules), "rules.toml", LIMITS)


def labels(rules: list[RoutingRule] | None) -> list[str] | None:
    return None if rules is None else [each.label for each in rules]


A_TO_B: dict[str, Any] = {"name": "a", "topic": "a.*", "to": "b.$2"}
B_TO_A: dict[str, Any] = {"name": "b", "topic": "b.#", "replace": "a.$2"}


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ([A_TO_B, B_TO_A], ["a", "b"]),
        ([{"name": "all", "to": "audit.$0"}], ["all"]),
        ([{"name": "self", "topic": "mqtt:a/+/#", "replace": "a.x"}], ["self"]),
        ([{**A_TO_B, "where": "x > 5"}, {**B_TO_A, "where": "x > 1"}], None),  # x > 1 does not lead on from b to a
        ([{**A_TO_B, "where": "x > 1"}, {**B_TO_A, "where": "x > 1"}], ["a", "b"]),
        ([{**A_TO_B, "where": "x = 1"}, {**B_TO_A, "where": "x = 2"}], None),
        # What rules set may be what the others ask for.
        ([{**A_TO_B, "where": "x > 1"}, {**B_TO_A, "where": "x > 1"}, {"topic": "z", "set": {"x": 0}}], None),
        ([{"name": "all", "to": "audit.$0", "where": "$word[1] <> 'audit'"}], None),
        ([{"name": "wide", "topic": "a.#", "to": "a.$3"}], None),  # the copy has no third word
        ([A_TO_B, {**B_TO_A, "topic": "b.x"}], None),  # not each message
        ([A_TO_B, {**B_TO_A, "salience": 5}, {"topic": "b.x", "drop": True}], None),  # one is dropped
        ([A_TO_B, {**B_TO_A, "salience": 5}, {"topic": "c.x", "drop": True}], ["a", "b"]),
        ([A_TO_B, {**B_TO_A, "salience": 5}, {"topic": "b.x", "drop": True, "salience": 6}], ["a", "b"]),
        ([{"name": "1", "topic": "a", "to": "b"}, {"name": "2", "topic": "b", "to": "c"},
          {"name": "3", "topic": "c", "to": "b"}], ["2", "3"]),
        ([{"topic": "a", "to": "b"}, {"topic": "b", "to": "c"}, {"topic": "b", "to": "d"}], None),
    ],
)  # fmt: skip
def test_circles(rules: list[dict[str, Any]], found: list[str] | None) -> None:
    assert labels(circle(rules_of(*rules))) == found


@given(any_rules(), topics, st.sampled_from([0, 1, 2, None]))
def test_a_circle_that_is_proven_is_one_that_some_message_meets(
    rules: list[RoutingRule], topic: list[str], x: int | None
) -> None:
    """Each message that the first rule of a circle sends on comes round, until it may not any more."""
    found = circle(rules)
    if found is None:
        return
    rules = [each for each in rules if each.kind != "delay"]
    fields: dict[str, object] = {} if x is None else {"x": x}
    plan = RuleSet(rules, LIMITS).planned(".".join(topic).encode(), "amqp", fields)
    if any(step.number == found[0].number and not step.fails for step in plan.steps):
        assert any(step.circle for step in plan.steps) or len(plan.steps) >= REWRITES_MAX


def test_rules_that_never_act() -> None:
    rules = rules_of(
        {"name": "drop", "topic": "a.#", "where": "x > 5", "drop": True, "salience": 2},
        {"name": "hidden", "topic": "a.*", "where": "x > 6", "to": "b", "salience": 3},
        {"name": "wider", "topic": "a.*", "where": "x > 4", "to": "b", "salience": 3},
        {"name": "earlier", "topic": "a.*", "where": "x > 6", "to": "b", "salience": 1},
        {"name": "never", "where": "x > 6 AND x < 5", "to": "b"},
        {"name": "copies take nothing away", "topic": "c", "to": "d", "salience": 1},
        {"name": "so", "topic": "c", "drop": True, "salience": 2},
        {"name": "first", "topic": "e", "delay": 1, "salience": 1},
        {"name": "second", "topic": "e", "delay": 2, "salience": 2},
        {"name": "third", "topic": "e", "to": "f", "salience": 2},
        {"name": "may fail", "topic": "g.#", "replace": "h.$2", "salience": 1},
        {"name": "acts then", "topic": "g.#", "drop": True, "salience": 2},
        {"name": "cannot fail", "topic": "i.#", "replace": "h", "salience": 1},
        {"name": "behind it", "topic": "i.j", "archive": True, "salience": 2},
    )
    assert [(each.rule.label, each.by and each.by.label) for each in shadowed(rules)] == [
        ("never", None), ("second", "first"), ("behind it", "cannot fail"), ("hidden", "drop"),
    ]


@given(any_rules(), topics, st.sampled_from([0, 1, 2, None]))
def test_a_rule_that_never_acts_does_not(rules: list[RoutingRule], topic: list[str], x: int | None) -> None:
    never = {each.rule.number for each in shadowed(rules)}
    plan = RuleSet(rules, LIMITS).planned(".".join(topic).encode(), "amqp", {} if x is None else {"x": x})
    if not any(step.circle for step in plan.steps):  # at the end of a circle `replace` does not act
        assert not never & {step.number for step in plan.steps if not step.fails}


def test_rules_that_act_on_the_same_message_with_such_a_message() -> None:
    rules = rules_of(
        {"name": "a", "topic": "a.*", "where": "x > 5", "to": "b", "salience": 2},
        {"name": "b", "topic": "*.b", "where": "x < 9", "to": "c", "salience": 1},
        {"name": "c", "topic": "a.b", "where": "x = 2 OR x = 30", "archive": True, "salience": 3},
        {"name": "d", "topic": "d", "drop": True},
    )
    found = overlaps(rules, 10)
    assert [(each.first.label, each.second.label) for each in found] == [("b", "a"), ("b", "c"), ("a", "c")]
    assert all(each.fields for each in found)
    assert len(overlaps(rules, 2)) == 2
