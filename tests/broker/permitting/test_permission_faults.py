"""What is said of rules is so, by the list of rules that is read from the top."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import ON_TOPICS, Action
from fanlight_broker.permitting.explaining import Request, why_not
from fanlight_broker.permitting.permission_faults import conflicts, shadowed, warnings
from fanlight_permissions.parties import excludes, implies, meets, sample
from fanlight_permissions.permission_file import CLOSED, compile_permissions, parse_permissions
from fanlight_permissions.permission_rule import PermissionRule
from tests.broker.permitting import reference
from tests.broker.permitting.test_table_properties import FIELDS, askers, rules, table_of, tables, topics

LIMITS = Limits()


def rules_of(text: str) -> list[PermissionRule]:
    return parse_permissions(text, "permissions", LIMITS).rules


def hidden(text: str) -> dict[str, list[str]]:
    found = parse_permissions(text, "permissions", LIMITS)
    table = compile_permissions(found, "permissions", LIMITS)
    return {each.rule.label: [by.label for by in each.by] for each in shadowed(found.rules, table)}


@settings(max_examples=100, deadline=None)
@given(tables(), st.lists(st.tuples(askers, topics(), st.sampled_from(sorted(ON_TOPICS))), min_size=1, max_size=30),
       st.sampled_from(FIELDS[1:]))  # fmt: skip
def test_a_shadowed_rule_never_decides(given_rules, asked, fields) -> None:  # type: ignore[no-untyped-def]
    labelled = [
        PermissionRule(rule.number, rule.line, None, rule.allow, rule.who, rule.patterns, rule.salience, rule.where)
        for rule in given_rules
    ]
    found = {each.rule.place for each in shadowed(labelled, table_of(labelled))}
    for asker, (topic, syntax), action in asked:
        assert reference.decide(labelled, CLOSED, asker, action, topic, syntax, fields).rule not in found


@settings(max_examples=140, deadline=None)
@given(rules(0), rules(1), askers)
def test_conditions_compared(first, second, asker) -> None:  # type: ignore[no-untyped-def]
    def applies(rule: PermissionRule) -> bool:
        assert all(meets(*each, asker) for each in rule.who) == reference.applies_to(rule, asker)
        return reference.applies_to(rule, asker)

    met = applies(first), applies(second)
    if implies(first.who, second.who):
        assert met != (True, False)
    if excludes(first.who, second.who):
        assert met != (True, True)
    assert reference.applies_to(first, sample(first.who)) or any("%" in v for _, vs in first.who for v in vs)


@settings(max_examples=140, deadline=None)
@given(rules(0), askers, topics(), st.sampled_from(sorted(ON_TOPICS)), st.sampled_from(FIELDS[1:]))
def test_reasons_are_given_where_a_rule_does_not_apply(rule, asker, topic, action, fields) -> None:  # type: ignore[no-untyped-def]
    text, syntax = topic
    applies = reference.decide([rule], CLOSED, asker, action, text, syntax, fields).rule == rule.label
    assert bool(list(why_not(rule, Request(asker, action, text.encode(), syntax, False, fields)))) is not applies


@pytest.mark.parametrize(("text", "expected"), [
    ('[[allow]]\npublish="a/#"\n[[deny]]\nuser="x"\nwill="a/b"', {"line 3": ["line 1"]}),
    ('[[allow]]\npublish="a/#"\nuser="a*"\n[[deny]]\nuser=["ab","ac"]\npublish="a/b"', {"line 4": ["line 1"]}),
    ('[[allow]]\npublish="a/#"\nuser="a*"\n[[deny]]\nuser=["ab","bc"]\npublish="a/b"', {}),
    ('[[allow]]\naddress="10.0.0.0/8"\nconnect=true\n[[deny]]\naddress="10.1.0.0/16"\nconnect=true',
     {"line 4": ["line 1"]}),
    ('[[allow]]\npublish="#"\n[[deny]]\npublish="#"', {}),
    ('[[deny]]\npublish="#"\n[[allow]]\npublish=["$SYS/#", "x"]', {"line 3": ["line 1"]}),
    ('[[allow]]\nretain="a"\nwill="a"\nrequest="a"\n[[allow]]\neverything="b"\n[[deny]]\npublish="a"', {}),
    ('[[allow]]\nretain="a"\nwill="a"\n[[allow]]\nrequest="a"\n[[deny]]\nretain="a"\nrequest="a"',
     {"line 6": ["line 1", "line 4"]}),
    ('[[allow]]\npublish="a/%u"\n[[allow]]\npublish="a/%u"\nuser="x"', {"line 3": ["line 1"]}),
    ('[[allow]]\npublish="a/%u"\n[[allow]]\npublish="a/%c"', {}),
    ('[[allow]]\npublish="a/%u"\n[[deny]]\npublish="a/%u"', {}),
    ('[[allow]]\npublish="a/*"\n[[allow]]\npublish="a.%u"', {}),
    ('[[allow]]\npublish="a/+"\n[[allow]]\npublish="a.%u"', {"line 3": ["line 1"]}),
    ('[[allow]]\npublish="a"\nwhere="x > 1"\n[[deny]]\npublish="a"\n[[deny]]\npublish="b"\nwhere="x > 1 AND x < 0"',
     {"line 6": []}),
])  # fmt: skip
def test_shadowed(text: str, expected: dict[str, list[str]]) -> None:
    assert hidden(text) == expected


def test_conflicts() -> None:
    found = conflicts(rules_of("""\
[[allow]]
user = "a*"
everything = "x/+"
[[deny]]
user = "b"
publish = "x/y"
[[deny]]
user = "ab"
publish = "x/y"
subscribe = "z"
"""), 10)
    assert [(each.first.place, each.second.place, each.topic) for each in found] == [("line 1", "line 7", "x/y")]
    assert found[0].actions == (Action.PUBLISH, Action.RETAIN, Action.WILL, Action.REQUEST)


@pytest.mark.parametrize(("text", "said"), [
    ('[[allow]]\npublish="#"', "everybody may publish on every topic"),
    ('[[allow]]\neverything="mqtt:#"\ngroup="anonymous"', "whoever is anonymous may publish and subscribe on every"),
    ('[[allow]]\nadmin="write"', "everybody may change the broker by HTTP"),
    ('[[allow]]\npublish="a/%c"', "%c is what a client says of itself"),
    ('[[allow]]\npublish="a/%c"\ncertificate="x*"', ""),
    ('[[allow]]\npublish="#"\nuser="*"', ""),
    ('[[deny]]\npublish="#"', ""),
])  # fmt: skip
def test_warnings(text: str, said: str) -> None:
    found = list(warnings(rules_of(text)))
    assert len(found) == bool(said)
    assert all(said in each for each in found)
