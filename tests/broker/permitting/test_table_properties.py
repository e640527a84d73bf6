"""The table decides as the list of rules does that is read from the top."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import ON_TOPICS, Access, Action, Asker
from fanlight_permissions.permission_file import CLOSED, PermissionFile, compile_permissions
from fanlight_permissions.permission_rule import (
    ACTION_BITS,
    ATTRIBUTES,
    BITS,
    PermissionRule,
    WrongPattern,
    pattern_of,
    value_of,
)
from fanlight_permissions.table import PermissionTable
from matchcore.where import parse_where
from tests.broker.permitting import reference

LIMITS = Limits()
NAMES = ["", "a", "b", "a.b", "a/b", "a+b", "#", "+", "*", "$SYS", "a\0", "ab", "anonymous"]
TOPIC_WORDS = {
    "mqtt": ["a", "b", "", "$SYS", "$audit", "$x", "a.b", "*"],
    "amqp": ["a", "b", "$SYS", "$inbox", "$stream", "a/b", "+", "#", "*"],
}
FILTER_WORDS = {
    syntax: [*words, *(["+"] if syntax == "mqtt" else []), "#", "%u", "%c", "%g"]
    for syntax, words in {"mqtt": ["a", "b", "", "$SYS", "a.b"], "amqp": ["a", "b", "$SYS", "a/b", "*"]}.items()
}
VALUES = {
    "user": ["a", "a*", "*", "b", "ab"], "group": ["a", "b", "a*", "anonymous"], "client": ["a", "a*", "a+b"],
    "certificate": ["a", "a*"], "address": ["10.0.0.0/8", "10.1.0.0/16", "10.1.1.1/32", "2001:db8::/32", "0.0.0.0/0"],
    "protocol": ["mqtt", "native"], "listener": ["tls"], "namespace": ["acme"],
}  # fmt: skip
SELECTORS = ["n > 1", "n > 0 AND m = 'x'", "$word[1] = 'a'", "user = 'a'"]
FIELDS = [None, {}, {"n": 1, "m": "x"}, {"n": 2}, {"user": "a"}]

askers = st.builds(
    Asker, user=st.sampled_from(NAMES), groups=st.frozensets(st.sampled_from(NAMES[1:]), max_size=2),
    client=st.sampled_from(NAMES), certificate=st.sampled_from(["", "a", "ab"]),
    address=st.sampled_from(["", "10.1.1.1", "10.2.0.1", "192.168.0.1", "2001:db8::1"]),
    protocol=st.sampled_from(["mqtt", "native", ""]), listener=st.sampled_from(["tls", ""]),
    namespace=st.sampled_from(["acme", "beta", ""]),
)  # fmt: skip


@st.composite
def topics(draw: st.DrawFn) -> tuple[str, str]:
    syntax = draw(st.sampled_from(["mqtt", "amqp"]))
    words = draw(st.lists(st.sampled_from(TOPIC_WORDS[syntax]), min_size=1, max_size=4))
    text = reference.SEPARATORS[syntax].join(words)
    return text if text or syntax == "amqp" else "a", syntax


@st.composite
def filters(draw: st.DrawFn, names: bool = True) -> tuple[str, str]:
    syntax = draw(st.sampled_from(["mqtt", "amqp"]))
    known = FILTER_WORDS[syntax] if names else FILTER_WORDS[syntax][:-3]
    words = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4))
    if syntax == "mqtt" and "#" in words:
        words = words[: words.index("#") + 1]
    text = reference.SEPARATORS[syntax].join(words)
    return text if text or syntax == "amqp" else "#", syntax


@st.composite
def rules(draw: st.DrawFn, number: int) -> PermissionRule:
    who = draw(st.dictionaries(st.sampled_from(ATTRIBUTES), st.integers(0), max_size=2))
    patterns = []
    for text, syntax in draw(st.lists(filters(), min_size=1, max_size=2)):
        try:
            pattern = pattern_of(f"{syntax}:{text}")
        except WrongPattern:
            pattern = pattern_of("#")
        patterns.append((ACTION_BITS[draw(st.sampled_from(["publish", "subscribe", "retain", "everything"]))], pattern))
    where = draw(st.sampled_from([None, None, None, *SELECTORS]))
    return PermissionRule(
        number, number, draw(st.sampled_from([None, f"rule {number}"])), draw(st.booleans()),
        tuple(
            (attribute, tuple(sorted({value_of(attribute, VALUES[attribute][pick % len(VALUES[attribute])]),
                                      *([VALUES[attribute][0]] if pick % 7 == 0 else [])})))
            for attribute, pick in sorted(who.items(), key=lambda each: ATTRIBUTES.index(each[0]))
        ),
        tuple(patterns), draw(st.sampled_from([0, 0, -1, 2.5])), parse_where(where) if where else None,
    )


@st.composite
def tables(draw: st.DrawFn) -> list[PermissionRule]:
    return [draw(rules(number)) for number in range(draw(st.integers(0, 6)))]


defaults = st.builds(
    lambda some: {action: (action in some) for action in Action}, st.frozensets(st.sampled_from(list(Action)))
)


def table_of(rules: list[PermissionRule], effects: dict[Action, bool] | None = None) -> PermissionTable:
    return compile_permissions(PermissionFile(rules, effects or CLOSED), "permissions.toml", LIMITS)


@settings(max_examples=100, deadline=None)
@given(
    tables(), defaults, askers,
    st.lists(st.tuples(topics(), st.sampled_from(sorted(ON_TOPICS))), min_size=1, max_size=5), st.sampled_from(FIELDS),
)
def test_decisions_are_those_of_the_list(rules, effects, asker, asked, fields) -> None:  # type: ignore[no-untyped-def]
    grant = table_of(rules, effects).grant_of(asker)
    for (topic, syntax), action in asked:
        verdict = grant.decide(action, topic.encode(), syntax, fields)
        assert verdict == reference.decide(rules, effects, asker, action, topic, syntax, fields)
        bare = reference.decide(rules, effects, asker, action, topic, syntax, None)
        assert grant.permits(action, topic.encode(), syntax) is (bare.allowed and not bare.by_content)


@settings(max_examples=100, deadline=None)
@given(tables(), defaults, askers)
def test_decisions_without_a_topic(rules, effects, asker) -> None:  # type: ignore[no-untyped-def]
    bare = [
        PermissionRule(rule.number, rule.line, rule.name, rule.allow, rule.who, (
            (BITS[Action.CONNECT] | BITS[Action.ADMIN_READ], pattern_of("")),
        ), rule.salience)
        for rule in rules
    ]
    grant = table_of(bare, effects).grant_of(asker)
    for action in (Action.CONNECT, Action.ADMIN_READ, Action.ADMIN_WRITE):
        assert grant.decide(action) == reference.decide(bare, effects, asker, action, "", "amqp", None)


TOPICS = [
    (separator.join(words), syntax)
    for syntax, separator in reference.SEPARATORS.items() for count in (1, 2, 3)
    for words in itertools.product(TOPIC_WORDS[syntax][:6], repeat=count) if syntax == "amqp" or any(words) or count > 1
]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(tables(), defaults, askers, st.lists(filters(names=False), min_size=1, max_size=3), st.randoms())
def test_a_filter_that_is_allowed_sees_no_topic_that_is_denied(rules, effects, asker, asked, dice) -> None:  # type: ignore[no-untyped-def]
    grant = table_of(rules, effects).grant_of(asker)
    for filter, syntax in asked:
        found = grant.decide_filter(Action.SUBSCRIBE, filter.encode(), syntax)
        if found.access is Access.PARTLY:
            assert found.rule
            assert found.denied_by
        if found.access is not Access.ALL:
            continue
        assert found.rule
        fields = dice.choice(FIELDS[1:])
        for topic, own in dice.sample(TOPICS, 100):
            if reference.sees(filter, syntax, topic, own):
                verdict = reference.decide(rules, effects, asker, Action.SUBSCRIBE, topic, own, fields)
                assert verdict.allowed, (filter, syntax, topic, own, verdict)


@settings(max_examples=100, deadline=None)
@given(tables(), st.lists(askers, min_size=2, max_size=6), topics())
def test_one_class_is_decided_alike(rules, some, topic) -> None:  # type: ignore[no-untyped-def]
    table = table_of(rules)
    grants = [table.grant_of(asker) for asker in some]
    assert table.classes == len({grant.number for grant in grants}) == len(set(map(id, grants)))
    for asker, grant in zip(some, grants, strict=True):
        expected = reference.decide(rules, CLOSED, asker, Action.PUBLISH, *topic, None)
        assert grant.decide(Action.PUBLISH, topic[0].encode(), topic[1]) == expected
    for grant in grants:
        table.release(grant)
    assert table.classes == 0
    assert table.grant_of(some[0]).number == 0


@pytest.mark.parametrize("name", ["+", "#", "a+b", "a#", "*", "a/b", "a\0b", "", "$SYS", "$inbox"])
def test_a_name_with_such_characters_is_never_filled_in(name: str) -> None:
    """As the first word, where `$SYS` is one of them, for topics and filters in both spellings."""
    rules = [PermissionRule(0, 1, None, True, (), ((ACTION_BITS["everything"], pattern_of("%u/#")),))]
    grant = table_of(rules).grant_of(Asker(user=name, client=name))
    for syntax, separator in reference.SEPARATORS.items():
        for topic in (name, f"{name}{separator}x", "other", f"a{separator}b", "$SYS", f"$SYS{separator}x"):
            assert not grant.decide(Action.PUBLISH, topic.encode(), syntax).allowed
        for filter in ("#", f"a{separator}#", f"$SYS{separator}#"):
            assert grant.decide_filter(Action.SUBSCRIBE, filter.encode(), syntax).access is Access.NONE


def test_a_denying_rule_with_a_name_holds_for_every_name() -> None:
    rules = [
        PermissionRule(0, 1, None, False, (), ((ACTION_BITS["everything"], pattern_of("site/%c")),)),
        PermissionRule(1, 2, None, True, (), ((ACTION_BITS["everything"], pattern_of("#")),)),
    ]
    for name in ("a", "a*", "a.b", "+"):
        grant = table_of(rules).grant_of(Asker(client=name))
        assert grant.decide(Action.PUBLISH, f"site.{name}".encode(), "amqp").allowed is ("." in name)
        assert grant.decide_filter(Action.SUBSCRIBE, b"site.*", "amqp").access is Access.PARTLY
        assert grant.decide_filter(Action.SUBSCRIBE, b"other.#", "amqp").access is Access.ALL


def test_what_no_topic_of_a_filter_is_allowed_is_refused_and_not_allowed_in_part() -> None:
    """A rule that denies some of it stands before the one that denies all of it."""
    for first, filter, access in [
        ("site/secret", "site/#", Access.NONE), ("site/secret", "#", Access.PARTLY), ("other", "site/+", Access.NONE),
    ]:  # fmt: skip
        rules = [
            PermissionRule(n, n + 1, None, allow, (), ((ACTION_BITS["everything"], pattern_of(text)),))
            for n, (allow, text) in enumerate([(False, first), (False, "site/#"), (True, "#")])
        ]
        found = table_of(rules).grant_of(Asker()).decide_filter(Action.SUBSCRIBE, filter.encode(), "mqtt")
        assert found.access is access, (first, filter)
        if access is Access.NONE:
            assert found.rule == "line 2"


@settings(max_examples=100, deadline=None)
@given(tables(), defaults, askers, filters(names=False))
def test_a_filter_that_one_rule_denies_as_a_whole_is_refused(rules, effects, asker, asked) -> None:  # type: ignore[no-untyped-def]
    """However many rules before it deny some of it; what is allowed before it has to be asked for by its own filter."""
    filter, syntax = asked
    denying = PermissionRule(
        -1, 9, "whole", False, (), ((ACTION_BITS["subscribe"], pattern_of(f"{syntax}:{filter}")),), -2.0
    )
    some = PermissionRule(-2, 8, "some", False, (), ((ACTION_BITS["subscribe"], pattern_of("a/b")),), -3.0)
    found = table_of([some, denying, *rules], effects).grant_of(asker).decide_filter(
        Action.SUBSCRIBE, filter.encode(), syntax
    )
    assert found.access is Access.NONE
