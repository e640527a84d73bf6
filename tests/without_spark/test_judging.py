"""Both decisions about a message and a subscription, beside the plain interpreter of rules."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_permissions.decisions import Asker
from fanlight_spark.askers import Askers
from fanlight_spark.judging import INVALID, Decided, Judge, RuleFile, delivered, table_of
from fanlight_spark.snapshot import Subscription
from tests.broker.permitting.reference import sees
from tests.without_spark.dry_runs import published, readable, rules_of

CLIENTS = {
    "p7": Asker("pump7", frozenset({"devices"})), "p8": Asker("pump8", frozenset({"devices"})), "ops": Asker("ann"),
}  # fmt: skip
ASKERS = Askers(CLIENTS, {"ann": frozenset({"staff"})})
TOPICS = [
    ("site/pump7/t", "mqtt"), ("site/pump8/t", "mqtt"), ("site.pump7.t", "amqp"), ("site", "amqp"), ("$x/y", "mqtt"),
    ("$SYS/a", "mqtt"), ("a.b", "mqtt"),
]  # fmt: skip
FILTERS = ["site/%u/#", "site/#", "#", "site/+/t", "site.pump8.*", "%c.#", "mqtt:a.b", "$SYS/#"]
WHO = ['group = "devices"', 'user = "pump*"', 'user = "ann"', 'group = "anonymous"', 'protocol = "mqtt"', "", ""]
WHERE = ["price > 10", "$user = 'pump7'", "$word[1] = 'site'"]


@st.composite
def rule_texts(draw: st.DrawFn, where: bool = True) -> str:
    blocks = []
    for _ in range(draw(st.integers(0, 5))):
        lines = [draw(st.sampled_from(["[[allow]]", "[[deny]]"])), draw(st.sampled_from(WHO))]
        keys = draw(st.lists(st.sampled_from(["publish", "retain", "request", "subscribe", "connect"]), min_size=1,
                             max_size=2, unique=True))  # fmt: skip
        values = {key: "true" if key == "connect" else f'"{draw(st.sampled_from(FILTERS))}"' for key in keys}
        lines += [f"{key} = {value}" for key, value in values.items()]
        if where and not {"subscribe", "connect"} & set(keys) and draw(st.booleans()):
            lines.append(f'where = "{draw(st.sampled_from(WHERE))}"')
        blocks.append("\n".join(lines))
    if draw(st.booleans()):
        blocks.append('[default]\npublish = "allow"')
    return "\n\n".join(blocks)


messages = st.tuples(
    st.sampled_from([*CLIENTS, "stranger"]), st.sampled_from(["mqtt", "native"]), st.sampled_from(TOPICS),
    st.sampled_from([{}, {"price": 20}]),
)  # fmt: skip
WAYS = list(product([False, True], repeat=2))  # retained? with a topic for the reply?


@settings(max_examples=100)
@given(st.none() | rule_texts(), rule_texts(), st.lists(messages, min_size=1, max_size=4))
def test_messages_are_decided_as_by_the_list_of_rules(before: str | None, after: str, asked: list[Any]) -> None:
    judge = Judge(None if before is None else rules_of(before), rules_of(after), ASKERS)
    in_order = sorted(asked, key=lambda each: each[2])
    for (client, protocol, (topic, syntax), fields), (retain, replies) in product(in_order, WAYS):
        asker, known = ASKERS.publisher(client, protocol)
        has = {**fields, **({"$user": asker.user} if asker.user else {})}
        expected = [published(text, asker, topic, syntax, retain, replies, has) for text in (before, after)]
        found = judge.publish(client, protocol, topic, syntax, retain=retain, replies=replies)
        assert (found.asker, found.known) == (asker, known)
        with_fields = judge.publish(client, protocol, topic, syntax, retain=retain, replies=replies, fields=fields)
        for quick, slow, one in zip(found[2:], with_fields[2:], expected, strict=True):
            assert isinstance(slow, Decided)
            assert slow[:3] == one
            assert quick is None or (isinstance(quick, Decided) and quick[:3] == one)
    judge.close()
    assert [table.classes for table in judge.tables if table is not None][-1] == 0


def test_ways_of_publishing_on_one_topic_are_decided_apart() -> None:
    judge = Judge(None, rules_of('[[deny]]\nretain = "a"\nrequest = "a"\n\n[[allow]]\npublish = "#"\n'), ASKERS)
    said = {way: judge.publish("p7", "mqtt", "a", "mqtt", retain=way[0], replies=way[1]).after for way in WAYS}
    assert {way: each and each[:2] for way, each in said.items()} == {
        (False, False): (True, "publish"), (False, True): (False, "request"), (True, False): (False, "retain"),
        (True, True): (False, "retain"),
    }  # fmt: skip


@settings(max_examples=100)
@given(
    st.none() | rule_texts(False), rule_texts(False), st.sampled_from(FILTERS), st.sampled_from(["ann", "pump7", ""])
)
def test_what_a_subscription_gets_of_a_topic_is_what_may_be_read(
    before: str | None, after: str, filter: str, user: str
) -> None:
    filter = filter.replace("%u", "pump7").replace("%c", "*").removeprefix("mqtt:")
    syntax = "mqtt" if "/" in filter or "+" in filter else "amqp"
    judge = Judge(None if before is None else rules_of(before), rules_of(after), ASKERS)
    judged = judge.subscription(Subscription(filter, syntax, "c", user))
    grants = judge.grants(judged.asker)
    for decided, grant, text in zip((judged.before, judged.after), grants, (before, after), strict=True):
        may = {
            (topic, of): readable(text, judged.asker, topic, of)
            for topic, of in TOPICS
            if sees(filter, syntax, topic, of)
        }
        got = {each: delivered(grant, decided, each[0].encode(), each[1]).allowed for each in may}
        if decided.access == "none":  # as a whole: by no rule alone is all of it allowed
            assert not any(got.values())
        else:
            assert got == may
    judge.release(grants)


def test_what_is_allowed_in_part_is_refused_to_members_of_groups_and_where_that_is_set() -> None:
    text = '[[deny]]\nname = "no"\nsubscribe = "a/x"\n\n[[allow]]\nname = "yes"\nsubscribe = "a/#"\n'
    judge = Judge(None, rules_of(text), ASKERS)
    given = Subscription("a/+", "mqtt")
    assert judge.subscription(given).after == Decided(True, "subscribe", "yes", "partly", "no")
    for refused in (
        judge.subscription(given, refuse_partly=True), judge.subscription(Subscription("a/+", "mqtt", group="g")),
    ):  # fmt: skip
        assert (refused.before.access, refused.after) == ("all", Decided(False, "subscribe", "no", "none"))
    assert judge.subscription(Subscription("$inbox/c/#", "mqtt")).after.allowed  # its own
    closed = Judge(None, rules_of('[default]\nconnect = "deny"\nsubscribe = "allow"\n'), ASKERS)
    assert closed.subscription(given).after[:2] == (False, "connect")


def test_a_message_of_a_namespace_is_decided_as_its_client_spelled_it() -> None:
    judge = Judge(None, rules_of('[[deny]]\nnamespace = "acme"\npublish = "b"\n\n[[allow]]\npublish = "+"\n'), ASKERS)
    said = [
        judge.publish("p7", "mqtt", topic, "mqtt").after
        for topic in ("$namespace/acme/a", "$namespace/acme/b", "$namespace/other/b", "b", "$namespace/acme")
    ]
    assert [each and each.allowed for each in said] == [True, False, True, True, False]


def test_a_topic_that_is_none_is_denied() -> None:
    judge = Judge(None, rules_of('[[allow]]\npublish = "#"\n'), ASKERS)
    assert judge.publish("p7", "mqtt", "a/#", "mqtt").after == Decided(False, "publish", INVALID)


def test_more_clients_than_are_kept_are_decided_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanlight_spark.judging.KNOWN_MAX", 2)
    judge = Judge(None, rules_of('[[allow]]\npublish = "%c/#"\n'), Askers({}, {}))
    for _ in range(3):
        for client in ("a", "b", "c", "d"):
            said = judge.publish(client, "mqtt", "a/x", "mqtt").after
            assert said is not None
            assert said.allowed is (client == "a")
    assert judge.tables[1] is not None
    assert judge.tables[1].classes <= 2


def test_a_file_that_is_wrong_is_a_value_error_with_its_first_problem(tmp_path: Path) -> None:
    (path := tmp_path / "new.toml").write_text('[[allow]]\npublsh = "a"\n\n[[allow]]\nuser = "x"\n')
    with pytest.raises(ValueError, match=r"line 1: there is no 'publsh'.*, and 1 more: fanlightd permissions check"):
        RuleFile.read(path)
    path.write_text('[[allow]]\npublish = "a/#/b"\n')
    with pytest.raises(ValueError, match=r"new.toml, line 1: .*#"):
        RuleFile.read(path)
    with pytest.raises(ValueError, match="cannot be read"):
        RuleFile.read(tmp_path / "none")
    (csv := tmp_path / "new.csv").write_text("user,publish\nann,a/#\n")
    assert len(table_of(RuleFile.read(csv))) == 1
