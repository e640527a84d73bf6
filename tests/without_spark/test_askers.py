"""Who a client of an archive is: what files, a snapshot and the command line say of it, in this order."""

from pathlib import Path

import pytest

from fanlight_permissions.decisions import Action, Asker
from fanlight_spark.askers import Askers, AskersError, askers_of, read_clients, read_users, users_of
from fanlight_spark.judging import Judge, RuleFile
from fanlight_spark.snapshot import Snapshot, Subscription

SNAPSHOT = Snapshot(
    (
        Subscription("a", client="display", user="ann"), Subscription("b", client="display", user="ann"),
        Subscription("a", client="shared", user="ann"), Subscription("a", client="shared", user="bob"),
        Subscription("a", client="nobody"), Subscription("a"),
    )
)  # fmt: skip


def written(folder: Path, text: str) -> Path:
    path = folder / "file"
    path.write_text(text)
    return path


def test_a_snapshot_says_the_users_of_clients_whose_names_are_their_own() -> None:
    assert users_of(SNAPSHOT) == {"display": "ann", "nobody": ""}


def test_a_file_of_clients_comes_before_the_snapshot_and_both_before_all_others(tmp_path: Path) -> None:
    (clients := tmp_path / "clients").write_text(
        '{"client": "display", "user": "eve", "groups": ["x"], "address": "10.0.0.1"}\n\n'
        '{"client": "pump", "user": "%c", "listener": "mqtt_tls", "certificate": "CN=p"}\n'
    )
    (users := tmp_path / "users").write_text('decoy_key = "x"\n[users.eve]\npassword = "h"\ngroups = ["y"]\n')
    found = askers_of(clients, users, SNAPSHOT, "%c", frozenset({"devices"}))
    eve = Asker("eve", frozenset("xy"), "display", "", "10.0.0.1", "mqtt")
    assert found.publisher("display", "mqtt") == (eve, True)
    pump = Asker("%c", frozenset(), "pump", "CN=p", "", "native", "mqtt_tls")  # a name like any other, here
    assert found.publisher("pump", "native") == (pump, True)
    assert found.publisher("nobody", "mqtt") == (Asker(client="nobody", protocol="mqtt"), True)
    other = Asker("shared", frozenset({"devices"}), "shared", protocol="mqtt")
    assert found.publisher("shared", "mqtt") == (other, True)


def test_a_client_that_nothing_names_is_anonymous_and_unknown() -> None:
    assert askers_of(snapshot=SNAPSHOT).publisher("shared", "mqtt") == (Asker(client="shared", protocol="mqtt"), False)
    assert askers_of(user="").publisher("c", "mqtt") == (Asker(client="c", protocol="mqtt"), True)
    assert askers_of(user="bob").publisher("c", "mqtt")[0].user == "bob"


def test_a_subscriber_is_the_user_of_the_snapshot() -> None:
    askers = Askers(
        {"display": Asker("ann", address="10.0.0.1"), "shared": Asker("eve", address="10.0.0.2")},
        {"ann": frozenset({"staff"})}, Asker("%c"),
    )  # fmt: skip
    staff = frozenset({"staff"})
    (display, _, shared, *_) = SNAPSHOT.subscriptions
    assert askers.subscriber(display) == Asker("ann", staff, "display", "", "10.0.0.1")
    assert askers.subscriber(shared) == Asker("ann", staff, "shared")  # not the client that the file means
    session = Subscription("a", "mqtt", client="c", session=True)
    assert askers.subscriber(session) == Asker(client="c", protocol="mqtt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "line 1: a JSON object is wanted"),
        ("[1]", "line 1: a JSON object is wanted"),
        ('{"client": "a"}\n{"client": "a"}', "line 2: the client 'a' is there twice"),
        ("{", "line 1: no line of JSON"),
        ('{"client": "a", "name": "b"}', "there is no 'name' of a client"),
        ('{"client": 1}', "client is a text"),
        ('{"client": "a", "groups": "g"}', "groups are a list of texts"),
        ('{"client": "a", "groups": [1]}', "groups are a list of texts"),
    ],
)
def test_what_is_wrong_with_a_file_of_clients_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(AskersError, match=said):
        read_clients(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("users = 1", "a section .users.NAME. for each user"),
        ("[users]\na = 1", "a section"),
        ("[", "file: "),
        ('[users.ann]\ngroups = "g"', "user 'ann': groups are a list of texts"),
    ],
)
def test_what_is_wrong_with_a_users_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(AskersError, match=said):
        read_users(written(tmp_path, text))


def test_a_users_file_of_the_broker_is_read_for_its_groups(tmp_path: Path) -> None:
    text = '[users.ann]\npassword = "$argon2id$x"\ngroups = ["ops", "staff"]\nlimits = { connections = 1 }\n'
    text += '[users."b c"]\n'
    assert read_users(written(tmp_path, text)) == {
        "ann": (frozenset({"ops", "staff"}), ""), "b c": (frozenset(), ""),
    }  # fmt: skip
    assert read_users(written(tmp_path, "")) == {}


def test_rules_of_a_users_own_decide_beside_the_file(tmp_path: Path) -> None:
    """Of the users file, and of --clients, which is more: it may be a token's."""
    users, clients, rules = (tmp_path / name for name in ("users.toml", "clients.jsonl", "rules.toml"))
    users.write_text('[users.alice]\npermissions = [{ publish = "own/%u/#" }]\n[users.bob]\n')
    own = '[{"publish": "token/#"}]'
    clients.write_text(
        f'{{"client": "c1", "user": "alice"}}\n{{"client": "c2", "user": "alice", "permissions": {own}}}\n'
        '{"client": "c3", "user": "bob"}\n'
    )
    rules.write_text('[[deny]]\npublish = "+/alice/locked"\n')
    judge = Judge(None, RuleFile.read(rules), askers_of(clients, users))
    for client, topic, allowed in [
        ("c1", b"own/alice/t", True), ("c1", b"own/bob/t", False), ("c1", b"own/alice/locked", False),
        ("c1", b"token/t", False), ("c2", b"token/t", True), ("c2", b"own/alice/t", False), ("c3", b"own/bob/t", False),
    ]:  # fmt: skip
        grants = judge.grants(judge._askers.publisher(client, "mqtt")[0])
        assert grants[1] is not None
        assert grants[1].decide(Action.PUBLISH, topic, "mqtt").allowed is allowed, (client, topic)
        judge.release(grants)


def test_own_rules_that_are_not_sound_are_said_with_their_place(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text('[users.alice]\npermissions = [{ publsh = "a" }]\n')
    with pytest.raises(AskersError, match="user 'alice'"):
        askers_of(None, users)
