"""Permissions of mosquitto and RabbitMQ: what is converted allows nothing that was not allowed."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Access, Action, Asker
from fanlight_broker.permitting.import_mosquitto import import_acl
from fanlight_broker.permitting.import_rabbitmq import NotMadeOfWords, filters_of, import_definitions
from fanlight_broker.permitting.importing import Imported, WrongImport
from fanlight_permissions.permission_file import compile_permissions, parse_permissions
from fanlight_permissions.table import PermissionTable
from tests.broker.permitting import reference
from tests.broker.permitting.test_permission_command import run

LIMITS = Limits()
ACL = """\
# anonymous
topic read $SYS/#
topic readwrite open/#
topic deny open/door

user alice
topic read plain
topic write a.b
user bob smith
topic #
topic deny secret/+
pattern write dev/%c/state
pattern readwrite home/%u/#
"""


def table_of(made: Imported) -> PermissionTable:
    file = parse_permissions(made.toml(), "imported", LIMITS)
    return compile_permissions(file, "imported", LIMITS)


def may(table: PermissionTable, asker: Asker, action: Action, topic: str, syntax: str = "mqtt") -> bool:
    grant = table.grant_of(asker)
    allowed = grant.decide(action, topic.encode(), syntax).allowed
    table.release(grant)
    return allowed


def test_an_acl_file() -> None:
    made = import_acl(ACL.split("\n"), "acl")
    assert made.left_out == []
    table = table_of(made)
    nobody, alice, bob = Asker(client="c"), Asker(user="alice", client="c"), Asker(user="bob smith", client="c")
    for asker, action, topic, expected in [
        (nobody, Action.SUBSCRIBE, "$SYS/x", True), (nobody, Action.PUBLISH, "$SYS/x", False),
        (nobody, Action.PUBLISH, "open/x", True), (nobody, Action.PUBLISH, "open/door", False),
        (alice, Action.PUBLISH, "open/x", False), (alice, Action.SUBSCRIBE, "plain", True),
        (alice, Action.PUBLISH, "a.b", True), (alice, Action.PUBLISH, "a/b", False),
        (alice, Action.PUBLISH, "dev/c/state", True), (alice, Action.PUBLISH, "dev/d/state", False),
        (alice, Action.SUBSCRIBE, "home/alice/x", True), (alice, Action.SUBSCRIBE, "home/bob/x", False),
        (bob, Action.SUBSCRIBE, "any", True), (bob, Action.SUBSCRIBE, "secret/x", False),
        (bob, Action.SUBSCRIBE, "$SYS/x", False),
    ]:  # fmt: skip
        assert may(table, asker, action, topic) is expected, (asker, action, topic)


@pytest.mark.parametrize(("line", "why"), [
    ("topic read a/#/b", "'#' must be the last level"), ("topic my topic", "my is not read, write"),
    ("topic a/%u", "%u and %c would be names"), ("pattern dev-%c/x", "a whole word"), ("pattern a/%g", "%g is a group"),
    ("acl x", "it is not user, topic or pattern"), ("user", "it is not user, topic or pattern"),
])  # fmt: skip
def test_what_cannot_be_converted_is_reported(line: str, why: str) -> None:
    made = import_acl(["user a", line], "acl")
    assert "acl, line 2" in made.left_out[0]
    assert why in made.left_out[0]


def test_a_denial_that_cannot_be_converted_denies_all_of_its_list() -> None:
    made = import_acl(["user a", "topic #", "topic deny x/%u", "user b", "topic #"], "acl")
    table = table_of(made)
    assert not may(table, Asker(user="a"), Action.PUBLISH, "y")
    assert may(table, Asker(user="b"), Action.PUBLISH, "y")


def mosquitto_allows(lines: list[str], user: str, client: str, access: str, topic: str) -> bool:
    """As mosquitto's security_default.c: the user's list, what denies first; then the patterns."""
    own: list[tuple[str, str]] = []
    patterns: list[tuple[str, str]] = []
    now = ""
    for line in lines:
        word, *rest = line.split(" ")
        if word == "user":
            now = rest[0]
        elif word == "topic" and now == user:
            own.append((rest[0], rest[1]))
        elif word == "pattern":
            patterns.append((rest[0], rest[1]))
    for rules, filled in ((own, False), (patterns, True)):
        for kind, filter in sorted(rules, key=lambda each: each[0] != "deny"):
            text = filter
            if filled:
                if ("%u" in filter and not user) or ("%c" in filter and "+" in client):
                    continue
                text = filter.replace("%u", user).replace("%c", client)
            if topic.startswith("$") and text[0] in "#+":
                continue
            if reference.matches(text.split("/"), topic.split("/"), "+"):
                if kind == "deny":
                    return False
                if access in kind:
                    return True
    return False


acl_filters = st.lists(st.sampled_from(["a", "b", "+", "#", "$SYS"]), min_size=1, max_size=3).map(
    lambda words: "/".join(words[: words.index("#") + 1] if "#" in words else words)
)
acl_lines = st.lists(st.one_of(
    st.sampled_from(["user a", "user b"]),
    st.builds("topic {} {}".format, st.sampled_from(["read", "write", "readwrite", "deny"]), acl_filters),
    st.builds("pattern {} {}".format, st.sampled_from(["read", "write", "deny"]), acl_filters),
    st.sampled_from(["pattern write a/%u", "pattern read %c/#", "pattern deny a/%c", "topic deny %u/#"]),
), max_size=8)  # fmt: skip


@settings(max_examples=140, deadline=None)
@given(
    acl_lines, st.sampled_from(["", "a", "b"]), st.sampled_from(["a", "b", "a+"]), st.sampled_from(["read", "write"]),
    st.sampled_from(["a", "b", "a/b", "a/a", "b/a/a", "$SYS/a", "$SYS"]),
)
def test_nothing_is_allowed_that_mosquitto_denies(
    lines: list[str], user: str, client: str, access: str, topic: str
) -> None:
    table = table_of(import_acl(lines, "acl"))
    action = Action.SUBSCRIBE if access == "read" else Action.PUBLISH
    allowed = may(table, Asker(user=user, client=client), action, topic)
    expected = mosquitto_allows(lines, user, client, access, topic)
    if allowed:
        assert expected
    elif expected:  # it may be narrower for what denies $SYS with a wildcard, and for denials that are not converted
        assert topic.startswith("$SYS") or "topic deny %u/#" in lines or "+" in client


DEFINITIONS = {
    "users": [
        {"name": "root", "tags": ["administrator"]}, {"name": "eye", "tags": "monitoring"},
        {"name": "x*", "tags": ["administrator"]},
    ],
    "permissions": [
        {"user": "all", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
        {"user": "sensor", "vhost": "/", "configure": "^mqtt-subscription-.*", "write": "^(amq\\.topic|mqtt-.*)$",
         "read": "^(amq\\.topic|mqtt-.*)$"},
        {"user": "writer", "vhost": "/", "configure": "", "write": "amq\\.topic", "read": ".*"},
        {"user": "other", "vhost": "v", "configure": ".*", "write": ".*", "read": ".*"},
    ],
    "topic_permissions": [
        {"user": "sensor", "vhost": "/", "exchange": "amq.topic", "write": "^site\\.{username}\\..*",
         "read": "^cmd.{client_id}$"},
    ],
}  # fmt: skip


def test_definitions_of_rabbitmq() -> None:
    made = import_definitions(DEFINITIONS, "/", "definitions.json")
    table = table_of(made)
    sensor = Asker(user="sensor", client="c")
    assert may(table, Asker(user="all"), Action.SUBSCRIBE, "a.b", "amqp")
    assert may(table, sensor, Action.PUBLISH, "site/sensor/temp")
    assert not may(table, sensor, Action.PUBLISH, "site/sensor")
    assert not may(table, sensor, Action.PUBLISH, "site/all/temp")
    assert not may(table, sensor, Action.SUBSCRIBE, "cmd/c")
    assert may(table, Asker(user="writer"), Action.PUBLISH, "any")
    assert not may(table, Asker(user="writer"), Action.SUBSCRIBE, "any")
    assert not may(table, Asker(user="other"), Action.PUBLISH, "any")
    assert table.grant_of(Asker(user="root")).decide(Action.ADMIN_WRITE).allowed
    assert table.grant_of(Asker(user="eye")).decide(Action.ADMIN_READ).allowed
    assert not table.grant_of(Asker(user="eye")).decide(Action.ADMIN_WRITE).allowed
    assert table.grant_of(Asker(user="all")).decide_filter(Action.SUBSCRIBE, b"#", "amqp").access is Access.ALL
    assert [each.split(":")[0] for each in made.left_out if "exchanges: " not in each and "queues: " not in each] == [
        "user 'sensor'", "user 'writer'", "virtual host 'v'", "user 'x*'"
    ]
    assert not may(table, sensor, Action.PUBLISH, "$exchange/other/k")  # its topics are no exchanges
    assert not may(table, sensor, Action.SUBSCRIBE, "$queue/other")


REGEXES = {
    r"^site\.temp$": ["site.temp"], r"^site\.[^.]*$": ["site.*"], r"^site\..*": ["site.*.#"],
    r"^site\..*$": ["site.*.#"],
    ".*": ["#"], "": [], "^$": [], r"^(a|b)\.x$": ["a.x", "b.x"], r"^{username}\.[^.]*\.x$": ["%u.*.x"],
    "^a$": ["a"], r"^a\-b\..*": ["a-b.*.#"],
}  # fmt: skip


@pytest.mark.parametrize("regex", REGEXES)
def test_regular_expressions_made_of_words(regex: str) -> None:
    assert filters_of(regex) == REGEXES[regex]


@pytest.mark.parametrize("regex", [
    "site", r"^site", r"^site.*", r"^site.temp$", r"site\.temp$", r"^a\.(b|c\.d)$", r"^a|b$", r"^a\..*\.b$", r"^a+$",
    r"^\d$", r"^a\.\*$", r"^\.a$", r"^dev-{username}$", r"^[ab]$", "^" + "(a|b)" * 10 + "$",
])  # fmt: skip
def test_other_regular_expressions_are_refused(regex: str) -> None:
    with pytest.raises(NotMadeOfWords):
        filters_of(regex)


pieces = st.sampled_from(["a", "b", r"\.", ".", ".*", "[^.]*", "(a|b)", "$", "^", "|", "a?", r"\w", "#", r"\*"])


@settings(max_examples=200, deadline=None)
@given(st.lists(pieces, max_size=6).map("".join), st.lists(st.sampled_from(["a", "b", "", "ab", "*", "#"]), max_size=4))
def test_a_converted_expression_matches_no_more(regex: str, words: list[str]) -> None:
    topic = ".".join(words)
    try:
        compiled = re.compile("^" + regex)
        filters = filters_of("^" + regex)
    except (NotMadeOfWords, re.error):
        return
    made = Imported("x")
    for filter in filters:
        made.add("allow", "", {"publish": filter})
    if may(table_of(made), Asker(), Action.PUBLISH, topic, "amqp"):
        assert compiled.search(topic)


@pytest.mark.parametrize("definitions", [[], {}, {"permissions": [1]}, {"permissions": [{"vhost": "/"}]}])
def test_definitions_that_are_none(definitions: object) -> None:
    with pytest.raises(WrongImport):
        import_definitions(definitions, "/", "x")


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "acl").write_text(ACL)
    code, said, errors = run("import", "mosquitto", tmp_path / "acl")
    assert (code, errors) == (0, "")
    (tmp_path / "made.toml").write_text(said)
    assert run("check", tmp_path / "made.toml")[0] == 0
    (tmp_path / "definitions.json").write_text(json.dumps(DEFINITIONS))
    code, said, errors = run("import", "rabbitmq", tmp_path / "definitions.json", "--vhost", "v")
    assert code == 1
    assert 'user = "other"' in said
    assert "not converted: virtual host '/': permissions of 3 users" in errors
    for words, reason in [
        (("rabbitmq", tmp_path / "acl"), "is not JSON"), (("mosquitto", tmp_path / "no"), "No such file"),
        (("emqx", tmp_path / "acl"), "is one of mosquitto, rabbitmq"),
    ]:
        code, _, errors = run("import", *words)
        assert code == 2
        assert reason in errors


def test_texts_are_escaped() -> None:
    made = Imported("a\nb")
    made.add("allow", "x\n[[allow]]", {"user": 'a"\\\t\x7f\U0001f600', "publish": ["a", "b"]})
    rules = parse_permissions(made.toml(), "x", LIMITS).rules
    assert [rule.who for rule in rules] == [(("user", ('a"\\\t\x7f\U0001f600',)),)]
