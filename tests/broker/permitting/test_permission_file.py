"""The file of permissions: what its keys mean, and what is said of one that cannot be put in force."""

from pathlib import Path

import pytest

from fanlight_broker.core.limits import TOPIC_WORDS_CEILING, Limits
from fanlight_broker.core.permissions import Access, Action, Asker
from fanlight_permissions.permission_file import (
    FILE_BYTES_MAX,
    PermissionFileError,
    compile_permissions,
    load,
    parse_permissions,
)
from fanlight_permissions.permission_rule import KEYS_OF_ACTIONS
from fanlight_permissions.reading import file_text
from fanlight_permissions.table import PermissionTable

LIMITS = Limits(permissions_max=20)
FIVE_LINES = """\
[[allow]]
group = "sensors"
publish = "site/%u/#"
subscribe = ["site/%u/cmd/+"]
"""
ALICE = Asker(user="alice", groups=frozenset({"sensors"}), client="c1", address="10.1.2.3", protocol="mqtt")


def table_of(text: str, *, is_csv: bool = False) -> PermissionTable:
    return compile_permissions(parse_permissions(text, "permissions", LIMITS, is_csv=is_csv), "permissions", LIMITS)


def problems(text: str, *, is_csv: bool = False) -> list[str]:
    with pytest.raises(PermissionFileError) as caught:
        table_of(text, is_csv=is_csv)
    return caught.value.problems


def allowed(table: PermissionTable, asker: Asker, action: Action, topic: str = "", syntax: str = "mqtt") -> str:
    """The rule that allows it; "" if it is denied."""
    verdict = table.grant_of(asker).decide(action, topic.encode(), syntax if topic else "")
    return verdict.rule if verdict.allowed else ""


def test_five_lines_do_what_they_say_and_nothing_more() -> None:
    table = table_of(FIVE_LINES)
    for action in (Action.PUBLISH, Action.RETAIN, Action.WILL, Action.REQUEST):
        assert allowed(table, ALICE, action, "site/alice/temp") == "line 1"
        assert allowed(table, ALICE, action, "site.alice.temp", "amqp") == "line 1"
        assert not allowed(table, ALICE, action, "site/bob/temp")
        assert not allowed(table, ALICE, action, "other/alice")
    for action in (Action.SUBSCRIBE, Action.REPLAY, Action.QUEUE):
        assert not allowed(table, ALICE, action, "site/alice/temp")
        assert bool(allowed(table, ALICE, action, "site/alice/cmd/1")) is (action is Action.SUBSCRIBE)
    grant = table.grant_of(ALICE)
    assert grant.decide_filter(Action.SUBSCRIBE, b"site/alice/cmd/+", "mqtt").access is Access.ALL
    assert grant.decide_filter(Action.SUBSCRIBE, b"site/+/cmd/+", "mqtt").access is Access.NONE
    assert allowed(table, ALICE, Action.CONNECT) == "default"
    assert not allowed(table, ALICE, Action.ADMIN_READ)
    assert not allowed(table, Asker(user="bob"), Action.PUBLISH, "site/bob/x")


def test_allow_and_deny_are_in_the_order_of_the_file() -> None:
    text = """\
[[allow]]
publish = "a/b/c"
[[deny]] # all else
name = "closed"
publish = "a/#"

[[ allow ]]
publish = "#"
  [[deny]]
salience = -1
publish = "x"
"""
    table = table_of(text)
    grant = table.grant_of(ALICE)
    decided = {topic: grant.decide(Action.PUBLISH, topic.encode(), "mqtt")[:2] for topic in ("a/b/c", "a/b", "b", "x")}
    assert decided == {
        "a/b/c": (True, "line 1"), "a/b": (False, "closed"), "b": (True, "line 7"), "x": (False, "line 9"),
    }


def test_every_condition_on_the_asker() -> None:
    for condition, met, unmet in [
        ('user = "alice"', ALICE, Asker(user="alic")),
        ('user = "al*"', ALICE, Asker(user="a")),
        ('user = "*"', ALICE, Asker(client="x")),
        ('group = ["x", "sensors"]', ALICE, Asker(user="a", groups=frozenset({"y"}))),
        ('group = "anonymous"', Asker(client="x"), ALICE),
        ('client = "c*"', ALICE, Asker(client="d1")),
        ('certificate = "CN=pump*"', Asker(certificate="CN=pump-1"), ALICE),
        ('address = "10.1.0.0/16"', ALICE, Asker(address="10.2.0.1")),
        ('address = "10.1.0.0/16"', Asker(address="::ffff:10.1.0.9"), Asker(address="::1")),
        ('address = ["::1", "2001:db8::/33"]', Asker(address="2001:db8::5"), Asker(address="2001:db8:8000::")),
        ('address = "fe80::/10"', Asker(address="fe80::1%eth0"), Asker(address="")),
        ('protocol = "mqtt"', ALICE, Asker(protocol="native")),
        ('listener = "tls"', Asker(listener="tls"), ALICE),
        ('user = "a*"\naddress = "10.0.0.0/8"', ALICE, Asker(user="alice", address="11.0.0.1")),
        ('group = "sen*"\nclient = ["c1", "x%*"]', ALICE, Asker(groups=frozenset({"sensors"}), client="x_")),
    ]:
        table = table_of(f"[[allow]]\n{condition}\nconnect = true\n[default]\nconnect = \"deny\"\n")
        assert allowed(table, met, Action.CONNECT), condition
        assert not allowed(table, unmet, Action.CONNECT), condition


def test_the_keys_of_actions() -> None:
    table = table_of("""\
[[allow]]
admin = "read"
everything = "all/#"
[[allow]]
group = "sensors"
admin = ["read", "write"]
replay = "old/#"
queue = "jobs"
will = "w"
[default]
subscribe = "allow"
""")
    assert allowed(table, Asker(), Action.ADMIN_READ) == "line 1"
    assert not allowed(table, Asker(), Action.ADMIN_WRITE)
    assert allowed(table, ALICE, Action.ADMIN_WRITE) == "line 4"
    for action in (Action.PUBLISH, Action.SUBSCRIBE, Action.REPLAY, Action.QUEUE, Action.WILL, Action.RETAIN):
        assert allowed(table, Asker(), action, "all/x") == "line 1"
    for action, topic in [(Action.REPLAY, "old/1"), (Action.QUEUE, "jobs"), (Action.WILL, "w")]:
        assert allowed(table, ALICE, action, topic) == "line 4"
    assert not allowed(table, ALICE, Action.PUBLISH, "w")
    assert allowed(table, Asker(), Action.SUBSCRIBE, "any") == "default"
    assert not allowed(table, Asker(), Action.SUBSCRIBE, "$SYS/any")


def test_either_spelling() -> None:
    table = table_of('[[allow]]\npublish = ["a.*.c", "mqtt:d.e", "amqp:f/g", "h"]')
    for topic, syntax, expected in [
        ("a/x/c", "mqtt", True), ("d.e", "mqtt", True), ("d.e", "amqp", False), ("f/g", "amqp", True),
        ("f/g", "mqtt", False), ("h", "mqtt", True), ("h", "amqp", True), ("$SYS/x", "mqtt", False),
    ]:
        assert bool(allowed(table, ALICE, Action.PUBLISH, topic, syntax)) is expected, topic


def test_conditions_on_messages() -> None:
    table = table_of("""\
[[deny]]
name = "too hot"
publish = "t/#"
where = "value > 100"
[[allow]]
publish = "#"
""")
    grant = table.grant_of(ALICE)
    assert grant.decide(Action.PUBLISH, b"t/1", "mqtt") == (False, "too hot", True)
    assert grant.decide(Action.PUBLISH, b"t/1", "mqtt", {"value": 101}) == (False, "too hot", True)
    assert grant.decide(Action.PUBLISH, b"t/1", "mqtt", {"value": 99}) == (True, "line 5", True)
    assert grant.decide(Action.PUBLISH, b"u", "mqtt") == (True, "line 5", False)
    assert [str(attribute) for attribute in table.attributes] == ["value"]


def test_csv() -> None:
    table = table_of("""\
effect, user,  address,     publish,   subscribe, connect, name
allow,  alice, ,            a/%u/#,    b/#,
,       al*,   10.0.0.0/8,  c,
deny,   ,      ,            ,          ,          yes,     closed
""", is_csv=True)
    assert allowed(table, ALICE, Action.PUBLISH, "a/alice/1") == "line 2"
    assert allowed(table, ALICE, Action.SUBSCRIBE, "b") == "line 2"
    assert allowed(table, ALICE, Action.PUBLISH, "c") == "line 3"
    assert table.grant_of(ALICE).decide(Action.CONNECT) == (False, "closed", False)


@pytest.mark.parametrize(("text", "said"), [
    ("[[allow]]\npublich = 'a'", "permissions, line 1: there is no 'publich' in a rule; did you mean publish?"),
    ("\n[[deny]]\nname='x'\n", "permissions, line 2, rule 'x': it denies nothing; give it one of connect"),
    ("[[allow]]\npublish='a/#/b'", "permissions, line 1: invalid mqtt filter 'a/#/b', byte 2"),
    ("[[allow]]\npublish='dev-%c/x'", "%c stands for a whole word, and here it is a part of 'dev-%c'"),
    ("[[allow]]\npublish='#.%u.#'", "%u stands between two #"),
    ("[[allow]]\npublish='%g/%g'", "%g stands at most once"),
    ("[[allow]]\npublish=3", "publish: write a text in quotes, or a list of texts"),
    ("[[allow]]\nconnect='x'", "connect: "),
    ("[[allow]]\nadmin='all'", "admin: 'all' is not read or write"),
    ("[[allow]]\nconnect=true\naddress='10.0.0.1/8'", "write 10.0.0.0/8 for the network, or 10.0.0.1 for one host"),
    ("[[allow]]\nconnect=true\naddress='here'", "is no address and no network"),
    ("[[allow]]\nconnect=true\nuser='a*b'", "a * stands at the end alone"),
    ("[[allow]]\nconnect=true\nprotocol='m*'", "a * stands at the end alone"),
    ("[[allow]]\nconnect=true\nprotocol='mqtt 5.0'", "without a version: mqtt"),
    ("[[allow]]\nconnect=true\nuser='%u'", "stand in filters alone"),
    ("[[allow]]\nconnect=true\nuser=[]", "user: write a text in quotes"),
    ("[[allow]]\nsubscribe='a'\nwhere='x=1'", "where: is about messages that somebody publishes"),
    ("[[allow]]\npublish='a'\nwhere='x='", "where: invalid selector"),
    ("[[allow]]\nconnect=true\nsalience='x'", "salience: is a number"),
    ("[[allow]]\nconnect=true\nname=''", "a name is printable text"),
    ("[[allow]]\nconnect=true\nname='a'\n[[deny]]\nconnect=true\nname='a'", "the rule of line 1 has the same name"),
    ("[[allow]]\nconnect=true\nname='line 7'", "the name 'line 7' is that of another rule"),
    ("[[allow]]\nconnect=true\nname='default'", "the name 'default' is that of another rule, or of the default"),
    ("[[rule]]\nconnect=true", "there is no [[rule]]"),
    ("[allow]\nconnect=true", "begin each rule with a line [[allow]]"),
    ("[[\"allow\"]]\nconnect=true", "begin each rule with a line [[allow]]"),
    ("[[allow]]\nconnect=true\nname='''\n[[deny]]\n'''", "have no such line inside of a text"),
    ("[default]\nconnect='no'", "[default]: connect is \"allow\" or \"deny\""),
    ("[default]\nconect='deny'", "[default]: there is no 'conect'; did you mean connect?"),
    ("x=1", "there is no 'x' in a file of permissions"),
    ("[[allow]]\nconnect=", "permissions: Invalid value (at "),
    ("".join("[[allow]]\npublish=['a','b','c']\n" for _ in range(7)), "7 rules with 21 filters; at most 20"),
])  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    found = problems(text)
    assert any(said in problem for problem in found), found


def test_all_problems_are_found() -> None:
    assert len(problems("[[allow]]\nx=1\n[[deny]]\ny=1\n[[allow]]\nconnect=true")) == 2
    assert len(problems("[[allow]]\npublish='a/#/b'\n[[deny]]\npublish='a+/b'")) == 2


def test_all_cells_of_csv_are_read_as_in_toml() -> None:
    """The rules of a large table are read in a shorter way, which finds the same."""
    text = """\
effect, user, group,  address,  publish, subscribe, salience, name, where
allow,  a,    ,       ,         t/%u,    ,          ,         ,
deny,   a,    ,       ,         t/%u/x,  t/y,       ,         ,
,       b*,   ,       ,         t/z,     ,          ,         ,
,       ,     g,      10.0.0.0/8, t/v,   ,          ,         ,
,       ,     ,       ,         t/w,     ,          3,        last, n > 1
,       a
"""
    rows = [line for line in text.splitlines() if line != ",       a"]
    rules = parse_permissions("\n".join(rows), "p", LIMITS, is_csv=True).rules
    assert [(rule.effect, rule.who, rule.line, rule.name, rule.salience) for rule in rules] == [
        ("allow", (("user", ("a",)),), 2, None, 0), ("deny", (("user", ("a",)),), 3, None, 0),
        ("allow", (("user", ("b*",)),), 4, None, 0),
        ("allow", (("group", ("g",)), ("address", ("10.0.0.0/8",))), 5, None, 0), ("allow", (), 6, "last", 3),
    ]
    assert [rule.number for rule in rules] == [0, 1, 2, 3, 4]
    assert [[str(pattern) for _, pattern in rule.patterns] for rule in rules] == [
        ["t/%u"], ["t/%u/x", "t/y"], ["t/z"], ["t/v"], ["t/w"]
    ]
    assert problems(text, is_csv=True) == ["permissions, line 7: it allows nothing; give it one of " + ", ".join(
        KEYS_OF_ACTIONS
    )]
    for cells, said in [("%u,a", "stand in filters alone"), ("a,x%u", "a part of"), ("a*b,a", "at the end alone")]:
        assert any(said in each for each in problems(f"user,publish\n{cells}\n", is_csv=True))


@pytest.mark.parametrize(("text", "said"), [
    ("usr,publish\na,b", "there is no column 'usr'; did you mean user?"),
    ("user,user\na,b", "two columns have the same name"),
    ("effect,publish\nno,b", "line 2: the effect is allow or deny, not 'no'"),
    ("user\na,b", "line 2 has 2 cells, and the header 1"),
    ('user\n"a', "unexpected end of data"),
])  # fmt: skip
def test_what_is_wrong_with_csv(text: str, said: str) -> None:
    assert any(said in problem for problem in problems(text, is_csv=True))


def test_lines_of_csv_end_as_they_may() -> None:
    for end in ("\n", "\r\n"):
        text = end.join(["user,publish,name", 'alice,"a/b","one', 'two"', "", "bob,c"])
        assert any("line 3" in each and "printable" in each for each in problems(text, is_csv=True))
        rules = parse_permissions(text.replace(f"one{end}two", "one"), "p", LIMITS, is_csv=True).rules
        assert [(rule.line, rule.name, str(rule.patterns[0][1])) for rule in rules] == [
            (2, "one", "a/b"), (4, None, "c")
        ]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "permissions.toml"
    path.write_text(FIVE_LINES)
    assert len(load(path, LIMITS)) == 1
    (tmp_path / "p.csv").write_text("user,publish\nalice,a\n")
    assert allowed(load(tmp_path / "p.csv", LIMITS), ALICE, Action.PUBLISH, "a") == "line 2"
    path.write_bytes(b"\n\xff")
    with pytest.raises(PermissionFileError, match="line 2: is not UTF-8"):
        load(path, LIMITS)
    path.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(PermissionFileError, match="is longer than"):
        load(path, LIMITS)
    with pytest.raises(PermissionFileError, match="cannot be read: No such file"):
        load(tmp_path / "none", LIMITS)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_a_file_is_read_in_pieces_and_its_errors_are_those_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("fanlight_permissions.reading.PIECE_BYTES", size)
    file, paused = tmp_path / "p", list[None]()
    file.write_bytes("erste\nzweite ä€\n".encode())
    assert file_text(file, 100, lambda: paused.append(None)) == "erste\nzweite ä€\n"
    assert len(paused) == -(-19 // size)
    with pytest.raises(ValueError, match="longer than 18 bytes"):
        file_text(file, 18)
    for octets, line, at in ((b"a\n\xc3\xa4\xff\n", 2, 4), (b"\n\n\xe2\x82", 3, 2), (b"\xff", 1, 0)):
        file.write_bytes(octets)
        with pytest.raises(ValueError, match=rf"line {line}: is not UTF-8 \(at byte {at}\)"):
            file_text(file, 100)


def test_a_broker_may_allow_topics_as_long_as_the_matcher_does() -> None:
    """Behind a key word there is no room for the last word: that topic is denied, and the rules are in force."""
    limits = Limits(topic_words_max=TOPIC_WORDS_CEILING)
    table = compile_permissions(parse_permissions('[[allow]]\npublish = "#"\n', "p", limits), "p", limits)
    grant = table.grant_of(ALICE)
    longest = [b".".join([b"a"] * words) for words in (TOPIC_WORDS_CEILING - 1, TOPIC_WORDS_CEILING)]
    assert [grant.decide(Action.PUBLISH, topic, "amqp").allowed for topic in longest] == [True, False]


def test_a_pause_comes_now_and_then() -> None:
    paused: list[None] = []
    limits = Limits()
    file = parse_permissions("user,publish\n" + "a,b\n" * 600, "p", limits, lambda: paused.append(None), is_csv=True)
    read = len(paused)
    compile_permissions(file, "p", limits, lambda: paused.append(None))
    assert (read, len(paused) - read) == (2, 8)
