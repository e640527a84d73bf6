"""What rules make of a message: the plan of a RuleSet, against an oracle that reads the rules one after the other."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.content import Content
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.rule_actions import ActionKind, RoutingRule, TopicTemplate
from fanlight_broker.core.rule_set import PLANNED_BYTES_MAX, PLANS_MAX, REWRITES_MAX, RuleSet
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.protocols.mqtt.format import MQTT_5_0
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.message import Format, Message
from matchcore.body_reader import BODY_FORMATS
from matchcore.kleene import holds, topic_fields
from matchcore.where import parse_where

LIMITS = Limits(topic_words_max=5)
WHERES = ["TRUE", "x = 1", "x > 1", "x IS NULL", "y = 'b'", "$word[1] = 'a'", "$words < 3", "NOT x = 1", "priority > 3"]

topics = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4)
messages = st.dictionaries(st.sampled_from("xy"), st.sampled_from([1, 2, "b"]))
filters = st.lists(st.sampled_from(["a", "b", "*", "*", "#"]), min_size=1, max_size=4).map(".".join)
templates = st.lists(st.sampled_from(["a", "b", "$0", "$1", "$2", "$3", "z"]), min_size=1, max_size=3).map(".".join)
headers = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([1, 2, "b", True]), min_size=1, max_size=2)


@st.composite
def rules(draw: st.DrawFn) -> list[RoutingRule]:
    return [_rule(draw, number) for number in range(draw(st.integers(1, 6)))]


def _rule(draw: st.DrawFn, number: int) -> RoutingRule:
    kind = draw(st.sampled_from(ActionKind))
    template, seconds = None, 0.0
    said: tuple[tuple[str, Any], ...] = ()
    if kind in (ActionKind.COPY, ActionKind.REPLACE):
        template = TopicTemplate(draw(templates).encode(), "amqp")
    elif kind is ActionKind.SET:
        said = tuple(draw(headers).items())
    elif kind is ActionKind.PRIORITY:
        said = (("priority", draw(st.integers(0, 9))),)
    elif kind is ActionKind.DELAY:
        seconds = 5.0
    return RoutingRule(
        number, f"line {number}", None, draw(filters).encode(), "amqp", parse_where(draw(st.sampled_from(WHERES))),
        draw(st.integers(0, 3)), kind, template, said, seconds,
    )


def matches(filter: Sequence[str], topic: Sequence[str]) -> bool:
    if not filter:
        return not topic
    if filter[0] == "#":
        return any(matches(filter[1:], topic[count:]) for count in range(len(topic) + 1))
    return bool(topic) and filter[0] in ("*", topic[0]) and matches(filter[1:], topic[1:])


class Oracle:
    """The definition, as docs/rules.md has it."""

    def __init__(self, rules: list[RoutingRule], fields: dict[str, Any], due: bool) -> None:
        self.rules = sorted(rules, key=lambda rule: (rule.salience, rule.number))
        self.fields, self.due = fields, due
        self.outputs: list[tuple[str, dict[str, Any], bool, float | None]] = []
        self.steps: list[tuple[int, str, bool]] = []
        self.left = REWRITES_MAX
        self.waiting: list[tuple[str, dict[str, Any], bool]] = []

    def acting(self, topic: str, headers: dict[str, Any]) -> list[RoutingRule]:
        words = topic.split(".")
        known = {**self.fields, **headers, **topic_fields([word.encode() for word in words])}
        return [
            rule for rule in self.rules
            if matches(rule.filter.decode().split("."), words) and holds(rule.selector, known) is True
        ]

    def run(self, topic: str) -> None:
        self.waiting.append((topic, {}, False))
        while self.waiting:
            self.visit(*self.waiting.pop(0))

    def visit(self, topic: str, headers: dict[str, Any], archive: bool) -> None:
        found = self.acting(topic, headers)
        for rule in found:
            if rule.kind in (ActionKind.DROP, ActionKind.REPLACE):
                break
            if rule.kind is ActionKind.DELAY and not self.due:
                self.steps.append((rule.number, topic, False))
                self.outputs.append((topic, headers, archive, rule.seconds))
                return
        for rule in found:
            target = None
            if rule.template is not None:
                target = self.target(str(rule.template), topic.split("."))
                if target is None or self.left == 0:
                    self.steps.append((rule.number, topic, True))
                    continue
                self.left -= 1
            if rule.kind is not ActionKind.DELAY:
                self.steps.append((rule.number, topic, False))
            if rule.kind is ActionKind.DROP:
                return
            if rule.kind is ActionKind.REPLACE:
                assert target is not None
                self.waiting.append((target, headers, archive))
                return
            if rule.kind is ActionKind.COPY:
                assert target is not None
                self.waiting.append((target, dict(headers), False))
            archive = archive or rule.kind is ActionKind.ARCHIVE
            headers = {**headers, **dict(rule.headers)}
        self.outputs.append((topic, headers, archive, None))

    @staticmethod
    def target(template: str, words: list[str]) -> str | None:
        made: list[str] = []
        for part in template.split("."):
            if part == "$0":
                made += words
            elif part.startswith("$"):
                if int(part[1:]) > len(words):
                    return None
                made.append(words[int(part[1:]) - 1])
            else:
                made.append(part)
        return ".".join(made) if len(made) <= LIMITS.topic_words_max else None


@settings(max_examples=200)
@given(rules(), topics, messages, st.booleans())
def test_a_plan_is_what_the_oracle_says(
    rules: list[RoutingRule], topic: list[str], fields: dict[str, Any], due: bool
) -> None:
    oracle = Oracle(rules, fields, due)
    oracle.run(".".join(topic))
    plan = RuleSet(rules, LIMITS).planned(".".join(topic).encode(), "amqp", fields, due=due)
    assert [(step.number, step.topic.decode(), step.fails) for step in plan.steps] == oracle.steps
    assert [(each.topic.decode(), each.headers, each.archive, each.delay) for each in plan.outputs] == oracle.outputs
    assert len(plan.outputs) <= 1 + REWRITES_MAX


@given(rules(), topics, messages, st.sampled_from([FORMAT, MQTT_5_0]))
def test_a_message_is_planned_as_its_fields_are(
    rules: list[RoutingRule], topic: list[str], fields: dict[str, Any], format: Format
) -> None:
    syntax = SYNTAXES[1]
    octets = "/".join(topic).encode()
    message = format.write(Content(octets, 1, b"", tuple(fields.items())))
    assert isinstance(message, Message)
    found = RuleSet(rules, LIMITS)
    plan = found.plan(message, None, 0, due=False)
    planned = found.planned(octets, syntax, fields)
    assert (plan or planned) == planned
    assert plan is not None or not planned.steps


@settings(max_examples=200)
@given(rules(), topics, st.lists(st.tuples(messages, st.booleans()), min_size=2, max_size=5))
def test_plans_that_are_kept_are_those_that_would_be_made(
    rules: list[RoutingRule], topic: list[str], published: list[tuple[dict[str, Any], bool]]
) -> None:
    found, octets = RuleSet(rules, LIMITS), ".".join(topic).encode()
    for fields, due in published * 2:
        expected = RuleSet(rules, LIMITS).planned(octets, "amqp", fields, due=due)
        assert found.plan(with_headers(octets, fields), None, 0, due=due) == (expected if expected.steps else None)


def with_headers(topic: bytes, fields: dict[str, Any]) -> Message:
    message = FORMAT.write(Content(topic, 0, b"", tuple(fields.items())))
    assert isinstance(message, Message)
    return message


def test_a_kept_plan_is_for_messages_that_meet_the_same_rules_on_the_topic_and_on_those_of_the_copies() -> None:
    asking = parse_where("x = 1")
    copying = only(kind=ActionKind.COPY, filter=b"a", template=TopicTemplate(b"b", "amqp"))
    for rules in (
        [copying, only(number=1, kind=ActionKind.DROP, selector=asking)],
        [copying, only(number=1, kind=ActionKind.DROP, filter=b"b", selector=asking)],
        [only(kind=ActionKind.SET, headers=(("y", 1),)), only(number=1, kind=ActionKind.DROP, selector=asking)],
    ):
        found = RuleSet(rules, Limits())
        for x in (1, 2, 1, 2):
            plan = found.plan(with_headers(b"a", {"x": x}), None, 0, due=False)
            assert plan == RuleSet(rules, Limits()).planned(b"a", "amqp", {"x": x})
            assert plan is not None


def test_kept_plans_are_few_and_of_short_topics() -> None:
    found = RuleSet([only(kind=ActionKind.DROP)], Limits())
    for topic in [b"b" * (PLANNED_BYTES_MAX + 1), *(b"%d" % number for number in range(PLANS_MAX + 5)), b"0"]:
        plan = found.plan(Message(FORMAT, topic, 0, b""), None, 0, due=False)
        assert plan is not None
        assert [step.topic for step in plan.steps] == [topic]
    assert len(found._plans) == PLANS_MAX


def test_a_copy_has_what_was_set_before_it_and_nothing_else() -> None:
    rules = [
        only(kind=ActionKind.SET, headers=(("x", 1),)),
        only(number=1, kind=ActionKind.COPY, filter=b"a", template=TopicTemplate(b"b", "amqp")),
        only(number=2, kind=ActionKind.SET, filter=b"a", headers=(("y", 2),)),
        only(number=3, kind=ActionKind.COPY, filter=b"a", template=TopicTemplate(b"c", "amqp")),
    ]
    found = RuleSet(rules, LIMITS).planned(b"a", "amqp", {}).outputs
    assert [(each.topic, each.headers) for each in found] == [
        (b"a", {"x": 1, "y": 2}), (b"b", {"x": 1}), (b"c", {"x": 1, "y": 2}),
    ]


def only(**keys: Any) -> RoutingRule:
    given = {"filter": b"#", "syntax": "amqp", "selector": parse_where("TRUE"), "salience": 0, **keys}
    return RoutingRule(given.pop("number", 0), "line 1", given.pop("name", None), **given)


@pytest.mark.parametrize(
    "where",
    [
        "price > 5", "payload.a.b = 1", "$bytes = 15", "$qos = 1", "$retain", "$content_type LIKE '%json'",
        "$client = 'c'", "$user = 'u'", "$time > 100", "$word[2] = 'b'", "$words = 2",
    ],
)  # fmt: skip
def test_every_attribute_of_a_selector_is_known(where: str) -> None:
    class Publisher:
        name, user = "c", "u"

    content = Content(b"a/b", 1, b'{"a": {"b": 1}}', (("price", "6"),), "application/json")
    written = MQTT_5_0.write(content)
    assert written is not None
    message = Message(
        MQTT_5_0, b"a/b", 1, written.payload, fields=written.fields, qos=1, retain=True,
    )
    rules = RuleSet([only(kind=ActionKind.DROP, selector=parse_where(where))], LIMITS, lambda: 1e3)
    plan = rules.plan(message, Publisher(), 0, due=False)  # type: ignore[arg-type]
    assert plan is not None
    assert plan.outputs == []


def test_a_body_without_a_content_type_is_read_as_the_broker_says() -> None:
    rules = RuleSet([only(kind=ActionKind.DROP, selector=parse_where("payload.a = 1"))], LIMITS)
    message = Message(MQTT_5_0, b"a", 1, b'{"a": 1}')
    assert rules.plan(message, None, 0, due=False) is None
    assert rules.plan(message, None, BODY_FORMATS["json"], due=False) is not None


def test_a_topic_that_begins_with_a_dollar_concerns_no_rule() -> None:
    rules = RuleSet([only(kind=ActionKind.DROP)], LIMITS)
    assert rules.concern(b"a", 0)
    assert not rules.concern(b"$a", 0)
    assert not rules.concern(b"$SYS/x", 1)


def test_rules_of_the_same_name_go_on_counting() -> None:
    before = RuleSet([only(name="a", kind=ActionKind.DROP)], LIMITS)
    before.count(before.planned(b"x", "amqp", {}))
    after = RuleSet([
        only(name="b", kind=ActionKind.ARCHIVE), only(number=1, name="a", kind=ActionKind.DROP)
    ], LIMITS)  # fmt: skip
    after.count_from(before)
    after.count(after.planned(b"x", "amqp", {}))
    assert after.families()[0].samples == [({"rule": "b"}, 1.0), ({"rule": "a"}, 2.0)]
    assert after.counters()["rules_dropped"] == 2


@pytest.mark.parametrize(
    ("template", "why"),
    [("", "no words"), ("a.b$1", "whole word"), ("$x", "whole word"), ("a.*", "wildcard"), ("a.#", "wildcard"),
     ("a.b/c", "separator"), ("a.+", "wildcard"), ("$999", "that many"), ("$", "whole word"), ("$SYS.a", "whole word")],
)  # fmt: skip
def test_what_is_no_topic_for_a_rule_is_refused(template: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        TopicTemplate(template.encode(), "amqp")


def test_a_template_is_spelled_in_either_syntax_and_made_in_the_messages_own() -> None:
    for text, syntax in ((b"x.$2.$0", "amqp"), (b"x/$2/$0", "mqtt")):
        template = TopicTemplate(text, syntax)
        assert template.made_of((b"a", b"b"), "mqtt") == b"x/b/a/b"
        assert template.made_of((b"a", b"b"), "amqp") == b"x.b.a.b"
        assert template.made_of((b"a",), "amqp") is None
