"""Proposals of permissions: what somebody did is allowed, and what nobody did is not."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_permissions.decisions import Action, Asker
from fanlight_permissions.permission_file import compile_permissions, parse_permissions
from fanlight_spark.judging import RuleLimits
from fanlight_spark.least_privilege import Did, Proposal, filters, filters_subscribed, own_words, rules_file, written

WORD = st.sampled_from(["a", "b", "c", "pump7", "p7", "%u", "50%", "*", "#", ""])
TOPIC = st.lists(WORD, min_size=1, max_size=4).map("/".join).filter(lambda topic: topic and not {*topic} & {"#", "+"})


def proposed(user: str, *topics: str, least: int = 4, client: str = "p7") -> list[str]:
    words = [own_words(topic, "mqtt", user, client) for topic in topics]
    return sorted(written(each, "mqtt") for each in filters(words, least))


def test_words_of_one_place_become_a_wildcard_when_there_are_enough() -> None:
    topics = [f"site/{n}/temp" for n in range(4)]
    assert proposed("u", *topics) == ["site/+/temp"]
    assert proposed("u", *topics, least=5) == topics
    assert proposed("u", *topics, "site/9/temp", "site/9/state") == ["site/+/temp", "site/9/state"]
    grid = [f"a/{x}/{y}" for x in range(4) for y in range(4)]
    assert proposed("u", *grid) == ["a/+/+"]
    assert proposed("u", *grid, "a/9/9") == ["a/+/+"]  # which the filter covers


def test_reserved_words_are_no_wildcard() -> None:
    assert proposed("u", *(f"${n}/x" for n in range(4))) == [f"${n}/x" for n in range(4)]


def test_own_names_are_named() -> None:
    assert proposed("pump7", "site/pump7/temp", "site/p7/temp") == ["site/%c/temp", "site/%u/temp"]
    assert proposed("a#", "site/a/temp") == ["site/a/temp"]
    # A rule cannot have these as words.
    assert proposed("u", "site/50%/x") == ["site/+/x"]


def test_filters_that_others_cover_are_left_out() -> None:
    given = [("site/pump7/#", "p7"), ("site/pump7/cmd", "p7"), ("site/+/alarm", "p7"), ("x", "p7")]
    assert filters_subscribed(given, "mqtt", "pump7") == ["site/%u/#", "site/+/alarm", "x"]


def test_who_did_the_same_shares_a_rule() -> None:
    def of(user: str, action: str, filter: str) -> Proposal:
        return Proposal(Did("", user, action, "mqtt"), filter)

    text = rules_file(
        [of("u1", "publish", "s/%u/#"), of("u2", "publish", "s/%u/#"), of("u3", "subscribe", "#"),
         of("", "publish", "n/e"), of("u1", "retain", "s/%u/r"), of("u2", "retain", "s/%u/r")], "about\nit"
    )  # fmt: skip
    assert text.startswith("# about\n# it\n")
    assert text.count("[[allow]]") == 4
    table = compile_permissions(parse_permissions(text, "p.toml", RuleLimits()), "p.toml", RuleLimits())

    def may(user: str, action: Action, topic: str) -> bool:
        groups = frozenset() if user else frozenset({"anonymous"})
        grant = table.grant_of(Asker(user=user, groups=groups))
        return grant.decide(action, topic.encode(), "mqtt").allowed

    assert may("u1", Action.PUBLISH, "s/u1/x")
    assert not may("u1", Action.PUBLISH, "s/u2/x")
    assert may("u2", Action.RETAIN, "s/u2/r")
    assert not may("u2", Action.RETAIN, "s/u2/x")
    assert not may("u2", Action.REQUEST, "s/u2/x")
    assert may("u3", Action.SUBSCRIBE, "q")
    assert may("", Action.PUBLISH, "n/e")
    assert not may("u3", Action.PUBLISH, "n/e")


def test_a_name_that_rules_take_for_many_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'u\*'"):
        rules_file([Proposal(Did("", "u*", "publish", "mqtt"), "a")], "")


@settings(max_examples=60, deadline=None)
@given(st.lists(TOPIC, min_size=1, max_size=14), st.integers(2, 5), st.sampled_from(["pump7", "a", "u"]))
def test_all_that_was_done_is_allowed_and_each_filter_is_needed(topics: list[str], least: int, user: str) -> None:
    found = proposed(user, *topics, least=least)

    def allowed(filters: list[str], topic: str) -> bool:
        if not filters:
            return False
        text = rules_file([Proposal(Did("", user, "publish", "mqtt"), each) for each in filters], "")
        table = compile_permissions(parse_permissions(text, "p.toml", RuleLimits()), "p.toml", RuleLimits())
        return table.grant_of(Asker(user=user, client="p7")).decide(Action.PUBLISH, topic.encode(), "mqtt").allowed

    assert all(allowed(found, topic) for topic in topics)
    for leave in found:
        rest = [each for each in found if each != leave]
        assert not all(allowed(rest, topic) for topic in topics)
    # Without wildcards, and words that rules cannot have, nothing else is let in.
    if not any({"%", "*"} & {*topic} for topic in topics):
        exact = proposed(user, *topics, least=1_000)
        words = ["a", "b", "c", "pump7", "p7", ""]
        for other in itertools.chain.from_iterable(itertools.product(words, repeat=n) for n in (1, 2)):
            topic = "/".join(other)
            assert not topic or topic in topics or not allowed(exact, topic)
