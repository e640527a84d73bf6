"""Templates, their spelling in each protocol, and who gets what: as the matcher's oracle has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_bench.load.spelling import Audience, BadTemplate, check, expand, filters, spelled
from matchcore.reference import matches

LITERAL = st.sampled_from(["a", "b", "{i}", "x{i%2}", "{i/2}"])
TOPICS = st.lists(LITERAL, min_size=1, max_size=4).map("/".join)
LEVELS = st.lists(st.one_of(LITERAL, st.just("+")), min_size=1, max_size=4)
FILTERS = st.builds(lambda levels, rest: "/".join(levels + rest), LEVELS, st.sampled_from([[], ["#"]]))


@pytest.mark.parametrize(
    ("template", "index", "expanded"),
    [
        ("dev/{i}/temp", 7, "dev/7/temp"),
        ("site/{i/10}/dev/{i%10}", 123, "site/12/dev/3"),
        ("{i/10%7}", 123, "5"),
        ("cold/{i}/{n}/temp", 3, "cold/3/0000000000/temp"),
        ("plain", 9, "plain"),
    ],
)
def test_a_template_is_expanded(template: str, index: int, expanded: str) -> None:
    check(template, topic=True)
    assert expand(template, index) == expanded


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("dev/{j}", "not understood"),
        ("dev/{i", "not understood"),
        ("dev/{i*2}", "not understood"),
        ("{n}/{n}", "not understood"),
        ("a//b", "empty levels"),
        ("a/b c", "spaces"),
        ("a.b", "not in all protocols"),
        ("a/+", "no wildcards"),
        ("{i/0}", "division by zero"),
    ],
)
def test_what_is_no_topic_template_is_refused(template: str, why: str) -> None:
    with pytest.raises(BadTemplate, match=why):
        check(template, topic=True)


@pytest.mark.parametrize(
    ("template", "why"), [("a/#/b", "last level"), ("a/b+", "whole level"), ("a/{n}", "not understood")]
)
def test_what_is_no_filter_template_is_refused(template: str, why: str) -> None:
    with pytest.raises(BadTemplate, match=why):
        check(template, topic=False)


def test_subscribers_go_through_the_templates_in_turn() -> None:
    assert list(filters(["a/{i}", "+/{i}"], 5)) == ["a/0", "+/0", "a/1", "+/1", "a/2"]


@pytest.mark.parametrize(
    ("protocol", "syntax", "wire"),
    [
        ("mqtt", "mqtt", "a/+/c/#"),
        ("mqtt5", "mqtt", "a/+/c/#"),
        ("fanlight", "amqp", "a.*.c.#"),
        ("fanlight", "mqtt", "a/+/c/#"),
        ("nats", "mqtt", "a.*.c.>"),
    ],
)
def test_each_protocol_has_its_spelling(protocol: str, syntax: str, wire: str) -> None:
    assert spelled("a/+/c/#", protocol, syntax) == wire


@given(TOPICS, st.lists(FILTERS, min_size=1, max_size=4), st.booleans())
def test_who_gets_what_is_what_the_oracle_says(topic: str, templates: list[str], parent: bool) -> None:
    topics = [expand(topic, index) for index in range(4)]
    audience = Audience(topics, templates, parent=parent)
    for pattern in filters(templates, 4 * len(templates)):
        wanted = []
        for number, name in enumerate(topics):
            alone = pattern == f"{name}/#" or parent_only(pattern, name)
            if matches(pattern, "mqtt", name, "mqtt") and (parent or not alone):
                wanted.append(number)
        assert list(audience.topics(pattern)) == wanted


def parent_only(pattern: str, topic: str) -> bool:
    """Whether `#` stands for no level at all, which NATS's `>` does not."""
    return pattern.endswith("/#") and pattern.count("/") == topic.count("/") + 1
