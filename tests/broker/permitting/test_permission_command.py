"""`fanlightd permissions check` and `test`, as an operator runs them."""

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from fanlight_broker.cli import main

FILE = """\
[[deny]]
name = "kitchen"
subscribe = "site/+/kitchen"

[[allow]]
name = "sensors"
group = "sensors"
publish = "site/%u/#"
subscribe = "site/%u/#"

[[allow]]
publish = "open/#"

[[allow]]
user = "eve"
publish = "open/door"
where = "n > 1"

[[allow]]
name = "hot"
publish = "t"
where = "n > 100"
"""


def run(*words: object) -> tuple[int, str, str]:
    """Exit code, standard output and error."""
    with redirect_stdout(StringIO()) as stdout, redirect_stderr(StringIO()) as stderr:
        try:
            code = main(["permissions", *map(str, words)])
        except SystemExit as end:
            code = int(end.code or 0)
    return code, stdout.getvalue(), stderr.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "permissions.toml"
    path.write_text(FILE)
    return path


def ask(file: Path, *words: object) -> tuple[int, list[str]]:
    code, said, errors = run("test", file, *words)
    assert errors == ""
    return code, said.splitlines()


def test_check(file: Path) -> None:
    code, said, errors = run("check", file)
    assert (code, errors) == (0, "")
    assert said.splitlines() == [
        f"{file}: 5 rules, sound",
        "  never decides: the rule of line 14: the rule of line 11 decides before it",
        "  both may apply: rule 'kitchen' (line 1) denies, before rule 'sensors' (line 5) allows: subscribe on "
        "site/+/kitchen",
    ]
    assert run("check", "--strict", file)[0] == 1
    view = json.loads(run("check", "--json", file)[1])
    assert (view["rules"], view["shadowed"]) == (5, [{"rule": "line 14", "by": ["line 11"]}])
    assert view["conflicts"][0]["topic"] == "site/+/kitchen"


def test_check_of_a_wrong_file(file: Path) -> None:
    file.write_text("[[allow]]\npublich = 'a'\n")
    assert run("check", file) == (
        1, "", f"fanlightd: {file}, line 1: there is no 'publich' in a rule; did you mean publish?\n"
    )
    assert "publich" in json.loads(run("check", "--json", file)[1])["problems"][0]
    assert run("test", file, "--action", "connect")[0] == 2


def test_the_rule_that_decides_and_why_others_do_not(file: Path) -> None:
    sensor = ("--user", "alice", "--group", "sensors")
    assert ask(file, *sensor, "--action", "publish", "--topic", "site/alice/temp") == (0, [
        "allowed: by rule 'sensors' (line 5)",
        "more salient, and do not apply:",
        "  kitchen (deny): it is not about publish",
    ])
    assert ask(file, *sensor, "--action", "subscribe", "--topic", "site/alice/#") == (1, [
        "partly allowed: by rule 'sensors' (line 5)",
        "  some of it is denied by kitchen; see subscribe_partly",
    ])
    code, said = ask(file, *sensor, "--action", "publish", "--topic", "site/bob/temp")
    assert (code, said[0]) == (1, "denied: no rule allows it")
    assert "  sensors (allow): 'bob' stands where %u is, 'alice'" in said
    asked = ("--user", "a+", "--group", "sensors", "--action", "publish", "--topic", "amqp:site.a+")
    assert "  sensors (allow): %u is 'a+', which is not put into a filter" in ask(file, *asked)[1]
    assert ask(file, "--action", "connect", "--address", "10.0.0.1")[1][0] == "allowed: by default"


def test_content(file: Path) -> None:
    asked = ("--action", "publish", "--topic", "t")
    assert ask(file, *asked)[1][0] == "depends on the content: by rule 'hot' (line 19), first of all; give --fields"
    assert ask(file, *asked, "--fields", '{"n": 101}')[1][0] == "allowed: by rule 'hot' (line 19)"
    code, said = ask(file, *asked, "--fields", '{"n": 99}')
    assert (code, said[0]) == (1, "denied: no rule allows it")
    assert "  hot (allow): n is 99; the selector wants > 100" in said


def test_rules_that_the_client_brings_along(file: Path, tmp_path: Path) -> None:
    own = tmp_path / "claim.json"
    own.write_text('[{"publish": ["mine/%u", "site/secret/x"]}]')
    words = ("--user", "eve", "--action", "publish", "--own", own, "--topic")
    assert ask(file, *words, "mine/eve") == (0, ["allowed: by own rule 1", *ask(file, *words, "mine/eve")[1][1:]])
    assert ask(file, *words, "mine/bob")[0] == 1
    own.write_text('[{"publich": "a"}]')
    code, _, said = run("test", file, *words, "mine/eve")
    assert (code, said) == (2, "fanlightd: --own: permission 1: there is no 'publich'; did you mean publish?\n")


def test_json(file: Path) -> None:
    view = json.loads(run("test", file, "--json", "--action", "publish", "--topic", "open.x")[1])
    assert (view["decision"], view["rule"], view["place"]) == ("allowed", "line 11", "line 11")
    assert view["not"][1] == {
        "rule": "sensors", "effect": "allow",
        "why": ["group is anonymous, and the rule is for sensors", "%u is '', which is not put into a filter"],
    }


@pytest.mark.parametrize(("words", "said"), [
    (["--action", "publsh"], "did you mean publish?"),
    (["--action", "publish"], "--action publish needs --topic"),
    (["--action", "connect", "--topic", "a"], "--action connect has no --topic"),
    (["--action", "publish", "--topic", "a/#"], "invalid mqtt topic"),
    (["--action", "subscribe", "--topic", "a/#/b"], "invalid mqtt filter"),
    (["--action", "publish", "--topic", "a", "--fields", "x"], "--fields is not JSON"),
    (["--action", "publish", "--topic", "a", "--fields", "1"], "--fields is a JSON object"),
    (["--action", "connect", "--address", "x"], "--address: 'x' does not appear"),
])  # fmt: skip
def test_wrong_arguments(file: Path, words: list[str], said: str) -> None:
    code, _, errors = run("test", file, *words)
    assert code == 2
    assert said in errors


def test_help_teaches() -> None:
    for words, said in [
        (["--help"], 'publish = "site/%u/#"'), (["check", "--help"], "exit codes: 0"),
        (["test", "--help"], "anonymous"), (["import", "--help"], "mosquitto"),
    ]:
        code, text, _ = run(*words)
        assert code == 0
        assert said in text


NAMESPACES = """\
[[namespace]]
user = "boss"
name = ""

[[namespace]]
name = "%g"

[[deny]]
namespace = "acme"
publish = "t/#"

[[allow]]
everything = "#"
admin = "read"
"""


@pytest.mark.parametrize(("words", "code", "first", "within"), [
    (["--user", "ann", "--group", "acme", "--action", "publish", "--topic", "t/a"], 1, "denied", "acme"),
    (["--user", "bob", "--group", "beta", "--action", "publish", "--topic", "t/a"], 0, "allowed", "beta"),
    (["--user", "bob", "--group", "beta", "--namespace", "acme", "--action", "publish", "--topic", "t/a"], 1, "denied",
     "acme"),
    (["--user", "boss", "--action", "publish", "--topic", "t/a"], 0, "allowed", None),
    (["--user", "boss", "--action", "admin:read"], 0, "allowed", None),
    (["--user", "bob", "--group", "beta", "--action", "admin:read"], 1, "denied: views and actions are", None),
    (["--user", "carol", "--action", "connect"], 1, "denied: no permission: the client has no only group", None),
])  # fmt: skip
def test_the_namespace_of_who_asks(
    tmp_path: Path, words: list[str], code: int, first: str, within: str | None
) -> None:
    path = tmp_path / "permissions.toml"
    path.write_text(NAMESPACES)
    found, lines = ask(path, *words)
    assert (found, lines[0].startswith(first)) == (code, True), lines
    assert [line for line in lines if "namespace" in line and line.startswith("  in")] == (
        [f"  in the namespace {within}"] if within else []
    )


@pytest.mark.parametrize(("entry", "said"), [
    ('name = "a/b"', "is no name of a namespace"), ('name = "a.b"', "is no name of a namespace"),
    ('name = "%c"', "is no name of a namespace"), ("", "give it a name"), ("name = 1", "give it a name"),
    ('name = "a"\nclient = "x"', "there is no 'client'"), ('name = "a"\nnamespace = "x"', "there is no 'namespace'"),
    ('name = "a"\naddress = "nowhere"', "is no address"), ('name = "a"\nusr = "x"', "there is no 'usr'"),
])  # fmt: skip
def test_an_entry_that_cannot_be_put_in_force(tmp_path: Path, entry: str, said: str) -> None:
    path = tmp_path / "permissions.toml"
    path.write_text(f"[[namespace]]\n{entry}\n")
    code, _, errors = run("check", path)
    assert code == 1
    assert "[[namespace]] 1: " in errors
    assert said in errors
