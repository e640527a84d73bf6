"""Rules that a client brings along: read, bounded, and decided beside the table."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.permissions import ON_TOPICS, Access, Action, Asker, Unrestricted, Verdict
from fanlight_permissions.decisions import Grant
from fanlight_permissions.own_rules import OWN_BYTES_MAX, OWN_RULES_MAX, WrongOwnRules, own_rules, read_own
from fanlight_permissions.permission_file import CLOSED
from fanlight_permissions.permission_rule import ACTION_BITS, KEYS_OF_ACTIONS, PermissionRule, WrongPattern, pattern_of
from fanlight_permissions.personal import UNREADABLE
from tests.broker.permitting import reference
from tests.broker.permitting.test_table_properties import (
    FIELDS,
    TOPICS,
    askers,
    defaults,
    filters,
    table_of,
    tables,
    topics,
)

Row = dict[str, Any]


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Own rules, as a token has them."""
    made: list[Row] = []
    for _ in range(draw(st.integers(0, 4))):
        row: Row = {}
        for text, syntax in draw(st.lists(filters(), min_size=1, max_size=2)):
            spelled = f"{syntax}:{text}"
            try:
                pattern_of(spelled)
            except WrongPattern:
                spelled = "#"
            key = draw(st.sampled_from(["publish", "subscribe", "retain", "everything"]))
            row.setdefault(key, []).append(spelled)
        if draw(st.booleans()):
            row["effect"] = draw(st.sampled_from(["allow", "deny"]))
        if draw(st.booleans()):
            row["connect"] = True
        made.append(row)
    return made


def listed(own: list[Row]) -> list[PermissionRule]:
    """The same as rules of a file."""
    return [
        PermissionRule(place, place, f"own rule {place}", rule.allow, (), rule.patterns)
        for place, rule in enumerate(read_own(own_rules(own)) if own else [], 1)
    ]


def expected(
    rules: list[PermissionRule], own: list[PermissionRule], effects: dict[Action, bool], asker: Asker, action: Action,
    topic: str, syntax: str, fields: Any,
) -> Verdict:  # fmt: skip
    """The definition: the table's denial, else the first own rule, else the table."""
    table = reference.decide(rules, effects, asker, action, topic, syntax, fields)
    if not table.allowed and table.rule:
        return table
    found = reference.decide(own, dict.fromkeys(Action, False), asker, action, topic, syntax, fields)
    return found._replace(by_content=table.by_content) if found.rule else table


@settings(max_examples=100, deadline=None)
@given(
    tables(), rows(), defaults, askers,
    st.lists(st.tuples(topics(), st.sampled_from(sorted(ON_TOPICS))), min_size=1, max_size=5), st.sampled_from(FIELDS),
)  # fmt: skip
def test_decisions_are_those_of_the_two_lists(rules, own, effects, asker, asked, fields) -> None:  # type: ignore[no-untyped-def]
    grant = table_of(rules, effects).grant_of(with_own(asker, own))
    for (topic, syntax), action in asked:
        verdict = grant.decide(action, topic.encode(), syntax, fields)
        assert verdict == expected(rules, listed(own), effects, asker, action, topic, syntax, fields)
    for action in (Action.CONNECT, Action.ADMIN_READ):
        assert grant.decide(action) == expected(rules, listed(own), effects, asker, action, "", "amqp", None)


@settings(max_examples=100, deadline=None)
@given(tables(), rows(), defaults, askers, st.lists(filters(names=False), min_size=1, max_size=3), st.randoms())
def test_a_filter_that_is_allowed_sees_no_topic_that_is_denied(rules, own, effects, asker, asked, dice) -> None:  # type: ignore[no-untyped-def]
    grant = table_of(rules, effects).grant_of(with_own(asker, own))
    for filter, syntax in asked:
        found = grant.decide_filter(Action.SUBSCRIBE, filter.encode(), syntax)
        assert (found.access is Access.PARTLY) <= bool(found.denied_by)
        if found.access is Access.PARTLY:
            continue
        fields = dice.choice(FIELDS[1:])
        for topic, spelling in dice.sample(TOPICS, 100):
            if found.access is Access.ALL and reference.sees(filter, syntax, topic, spelling):
                one = expected(rules, listed(own), effects, asker, Action.SUBSCRIBE, topic, spelling, fields)
                assert one.allowed, (filter, syntax, topic, spelling, one)


def with_own(asker: Asker, own: list[Row]) -> Asker:
    return replace(asker, own=own_rules(own))


@settings(max_examples=60, deadline=None)
@given(tables(), st.lists(st.tuples(askers, rows()), min_size=2, max_size=6), topics())
def test_one_class_is_decided_alike_and_numbers_are_given_back(rules, some, topic) -> None:  # type: ignore[no-untyped-def]
    table = table_of(rules)
    asked = [with_own(asker, own) for asker, own in some]
    grants: list[Grant] = [table.grant_of(asker) for asker in asked]
    by_number: dict[int, Grant] = {grant.number: grant for grant in grants}
    assert len(by_number) == len(set(map(id, grants)))
    assert all(by_number[grant.number] is grant for grant in grants)
    for grant, (asker, own) in zip(grants, some, strict=True):
        one = expected(rules, listed(own), dict(CLOSED), asker, Action.PUBLISH, *topic, None)
        assert grant.decide(Action.PUBLISH, topic[0].encode(), topic[1]) == one
    for grant in grants:
        table.release(grant)
    assert table.classes == 0
    assert table.grant_of(asked[0]).number <= 1
    if table._personal is not None:
        assert len(table._personal._sets) <= 1  # the filters of the others are out of the index


def decide(own: list[Row], action: Action, topic: str, *rules: PermissionRule, **asker: Any) -> Verdict:
    table = table_of(list(rules)) if rules else Unrestricted()
    return table.grant_of(Asker(own=own_rules(own), **asker)).decide(action, topic.encode(), "mqtt")


def test_without_a_file_own_rules_decide_alone() -> None:
    own: list[Row] = [{"publish": "a/#"}]
    assert decide(own, Action.PUBLISH, "a/b") == Verdict(True, "own rule 1")
    assert decide(own, Action.RETAIN, "a/b").allowed
    assert decide(own, Action.PUBLISH, "b") == Verdict(False)
    assert not decide(own, Action.SUBSCRIBE, "a/b").allowed
    grant = Unrestricted().grant_of(Asker(own=own_rules(own)))
    assert grant.decide(Action.CONNECT).allowed
    assert not grant.decide(Action.ADMIN_READ).allowed
    one = grant.decide_filter(Action.SUBSCRIBE, b"a/#", "mqtt")
    assert one.access is Access.NONE


def test_what_a_rule_of_the_file_denies_stays_denied() -> None:
    denies = PermissionRule(0, 1, "private", False, (), ((31, pattern_of("a/private/#")),))
    allows = PermissionRule(1, 2, "ours", True, (), ((31, pattern_of("b/#")),))
    own: list[Row] = [{"effect": "deny", "publish": "b/x"}, {"publish": ["a/#", "b/x"]}]
    for topic, verdict in [
        ("a/private/b", Verdict(False, "private")), ("a/c", Verdict(True, "own rule 2")),
        ("b/x", Verdict(False, "own rule 1")), ("b/y", Verdict(True, "ours")), ("c", Verdict(False)),
    ]:
        assert decide(own, Action.PUBLISH, topic, denies, allows) == verdict


def test_how_much_of_a_filter_is_allowed() -> None:
    subscribes = ACTION_BITS["subscribe"]
    rules = [
        PermissionRule(0, 1, "private", False, (), ((subscribes, pattern_of("a/private/#")),)),
        PermissionRule(1, 2, "closed", False, (), ((subscribes, pattern_of("closed/#")),)),
        PermissionRule(2, 3, "open", True, (), ((subscribes, pattern_of("open/#")),)),
    ]
    own: list[Row] = [
        {"effect": "deny", "subscribe": ["open/x", "gone/#", "b/x"]}, {"subscribe": ["a/#", "closed/#", "b/#", "c"]},
    ]  # fmt: skip
    grant = table_of(rules).grant_of(Asker(own=own_rules(own)))
    for filter, expected in [
        ("a/#", (Access.PARTLY, "own rule 2", "private")), ("a/b/#", (Access.ALL, "own rule 2", "")),
        ("a/private/x", (Access.NONE, "private", "")), ("closed/a", (Access.NONE, "closed", "")),
        ("open/#", (Access.PARTLY, "open", "own rule 1")), ("open/y", (Access.ALL, "open", "")),
        ("open/x", (Access.NONE, "own rule 1", "")), ("b/#", (Access.PARTLY, "own rule 2", "own rule 1")),
        ("gone/a", (Access.NONE, "own rule 1", "")), ("c", (Access.ALL, "own rule 2", "")),
        ("other", (Access.NONE, "", "")), ("#", (Access.NONE, "", "")),
    ]:  # fmt: skip
        assert grant.decide_filter(Action.SUBSCRIBE, filter.encode(), "mqtt") == expected, filter


@pytest.mark.parametrize("name", ["+", "#", "a+b", "a#", "*", "a/b", "a\0b", "", "$SYS", "$inbox"])
def test_a_name_with_such_characters_is_never_filled_in(name: str) -> None:
    own: list[Row] = [{"everything": "%u/#"}]
    for topic in (name or "x", f"{name}/x", "other", "$SYS", "$SYS/x", "a/b/c"):
        if "+" in topic or "#" in topic or "\0" in topic:
            continue  # no topic of MQTT
        assert not decide(own, Action.PUBLISH, topic, user=name, client=name).allowed
    grant = Unrestricted().grant_of(Asker(user=name, own=own_rules(own)))
    for filter in (b"#", b"a/#", b"$SYS/#"):
        assert grant.decide_filter(Action.SUBSCRIBE, filter, "mqtt").access is Access.NONE


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"publish": "a"}, "must be a list"),
        ("publish", "must be a list"),
        ([{"publish": "a"}] * (OWN_RULES_MAX + 1), f"at most {OWN_RULES_MAX} rules"),
        ([{"publish": [f"{n}" for n in range(257)]}], "257 filters; at most 256"),
        ([{"publish": [f"{n}/{'x' * 900}" for n in range(10)]}], f"at most {OWN_BYTES_MAX}"),
        ([{"publish": "x" * 1025}], "1025 bytes; 1 to 1024"),
        (["a"], "permission 1: is no rule"),
        ([{"publish": "a"}, {"effect": "maybe", "publish": "a"}], "permission 2: effect is allow or deny"),
        ([{"effect": ["allow"], "publish": "a"}], "effect is allow or deny"),
        ([{"pubish": "a"}], "did you mean publish"),
        ([{"where": "a > 1", "publish": "a"}], "there is no 'where'"),
        ([{"user": "bob", "publish": "a"}], "there is no 'user'"),
        ([{"name": "x", "publish": "a"}], "there is no 'name'"),
        ([{"salience": -5, "publish": "a"}], "there is no 'salience'"),
        ([{}], "allows nothing"),
        ([{"effect": "deny", "connect": False}], "denies nothing"),
        ([{"connect": "yes"}], "connect is true or false"),
        ([{"admin": "all"}], "'all' is not read or write"),
        ([{"publish": []}], "a text, or a list of texts"),
        ([{"publish": [1]}], "a text, or a list of texts"),
        ([{"publish": ""}], "0 bytes"),
        ([{"publish": "a/#/b"}], "'a/#/b'"),
        ([{"publish": "a/x%u"}], "stands for a whole word"),
        ([{"publish": "a/\ud800"}], "no valid text"),
        ([{"publish": "a.b" * 300}], "words"),
    ],
)
def test_what_is_wrong_is_said_with_the_number_of_the_rule(value: Any, said: str) -> None:
    with pytest.raises(WrongOwnRules) as caught:
        own_rules(value)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


def test_equal_rules_have_one_text() -> None:
    one = own_rules([{"subscribe": "b", "publish": ["c", "a", "a"]}])
    assert one == own_rules([{"effect": "allow", "publish": ("a", "c"), "subscribe": ["b"], "connect": False}])
    assert own_rules([]) == ""
    every: Row = {key: True if key == "connect" else "read" if key == "admin" else "a/#" for key in KEYS_OF_ACTIONS}
    assert len(read_own(own_rules([every]))[0].patterns) == len(KEYS_OF_ACTIONS)


@pytest.mark.parametrize("text", ["no JSON", "[1]", '[{"effect":"allow","fly":["a"]}]', '[{"publish":["a"]}]'])
def test_a_text_of_another_version_permits_nothing(text: str) -> None:
    for table in (Unrestricted(), table_of([PermissionRule(0, 1, "all", True, (), ((31, pattern_of("#")),))])):
        grant = table.grant_of(Asker(own=text))
        assert grant.decide(Action.PUBLISH, b"a", "mqtt") == Verdict(False, UNREADABLE)
        assert grant.decide_filter(Action.SUBSCRIBE, b"a", "mqtt").access is Access.NONE
        table.release(grant)
