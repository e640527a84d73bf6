"""The users file: TOML with groups and limits, checked whole, changed line by line."""

import tomllib
from pathlib import Path

import argon2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.auth.files import PasswordFileError
from fanlight_broker.auth.scram_keys import ScramKeys
from fanlight_broker.auth.users_file import _changed, change, parse, read

HASHER = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
ONE, TWO = (HASHER.hash(word, salt=word.ljust(16).encode()) for word in ("one", "two"))
KEYS = ScramKeys.of("one", salt=bytes(16), iterations=4096).text()


def test_a_file_has_users_with_groups_limits_and_keys() -> None:
    users = parse(
        f'[users.alice]\npassword = "{ONE}"\nscram = "{KEYS}"\ngroups = ["ops"]\nlimits = {{ connections = 3 }}\n'
        f'[users."bob smith"]\npassword = "{TWO}"\n',
        "u",
    ).users
    alice, bob = users["alice"], users["bob smith"]
    assert alice.password == ONE
    assert alice.scram is not None
    assert alice.scram.text() == KEYS
    assert (alice.groups, alice.limits) == ({"ops"}, {"connections": 3})
    assert (bob.password, bob.scram, bob.groups, bob.limits) == (TWO, None, frozenset(), {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[users.alice", "is not TOML"),
        ("[user.alice]", "unknown key 'user'"),
        ("users = 1", "users must be tables"),
        ("users.alice = 1", "must be a table"),
        ("[users.alice]", "no password"),
        ('[users.alice]\npassword = "hunter2"', "no argon2 hash"),
        (f'[users.alice]\npassword = "{ONE}"\ngroup = ["a"]', "unknown key 'group'"),
        (f'[users.alice]\npassword = "{ONE}"\nscram = "hunter2"', "is not SCRAM-SHA-256"),
        (f'[users.alice]\npassword = "{ONE}"\nscram = "{KEYS.replace("4096", "4095")}"', "4096 to 1000000 iterations"),
        (f'[users.alice]\npassword = "{ONE}"\nscram = 1', "scram must be a text"),
        (f'[users.alice]\npassword = "{ONE}"\ngroups = "ops"', "groups must be a list"),
        (f'[users.alice]\npassword = "{ONE}"\ngroups = ["anonymous"]', "of clients without a user"),
        (f'[users.alice]\npassword = "{ONE}"\ngroups = [" a"]', "no name of a group"),
        (f'[users.alice]\npassword = "{ONE}"\nlimits = {{ connections = -1 }}', "a whole number from 0"),
        (f'[users.alice]\npassword = "{ONE}"\nlimits = {{ connections = true }}', "a whole number from 0"),
        (f'[users.alice]\npassword = "{ONE}"\nlimits = {{ "a b" = 1 }}', "there is no quota 'a b'"),
        (f'[users."a:b"]\npassword = "{ONE}"', "must not contain ':'"),
        (f'[users."$x\\u0001"]\npassword = "{ONE}"', "control characters"),
        ('decoy_key = "aGk="', "no decoy_key of 32 bytes"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place_and_without_a_secret(text: str, said: str) -> None:
    with pytest.raises(PasswordFileError) as caught:
        parse(text, "u")
    assert str(caught.value).startswith("u")
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "argon2id" not in str(caught.value)


def test_a_user_shows_no_secret() -> None:
    (alice,) = parse(f'[users.alice]\npassword = "{ONE}"\nscram = "{KEYS}"\n', "u").users.values()
    for secret in (ONE, *KEYS.replace("$", ":").split(":")[2:]):
        assert secret not in repr(alice)
        assert secret not in alice.fingerprint


def test_a_new_file_has_a_key_and_is_for_its_owner_only(tmp_path: Path) -> None:
    change(tmp_path / "u", {"alice": {"password": ONE}})
    assert len(read(tmp_path / "u").decoy_key) == 32
    assert (tmp_path / "u").stat().st_mode & 0o777 == 0o600


def test_a_change_leaves_comments_and_other_users_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "u"
    path.write_text(
        f'# mine\n[users.alice]  # the boss\ngroups = ["a"] # why\npassword = "{ONE}"\n\n# bob:\n'
        f'[users.bob]\npassword = "{ONE}"\n[users.bob.limits]\nconnections = 3\n'
    )
    change(path, {"alice": {"password": TWO}})
    assert path.read_text() == (
        f'# mine\n[users.alice]  # the boss\ngroups = ["a"] # why\npassword = "{TWO}"\n\n# bob:\n'
        f'[users.bob]\npassword = "{ONE}"\n[users.bob.limits]\nconnections = 3\n'
    )
    change(path, {"bob": None})
    assert set(read(path).users) == {"alice"}
    assert "# mine" in path.read_text()


@pytest.mark.parametrize(
    "text",
    [
        f'users = {{ alice = {{ password = "{ONE}" }} }}\n',
        f'users.alice.password = "{ONE}"\n',
        f'[users]\nalice = {{ password = "{ONE}" }}\n',
        f'[users.alice]\npassword = """\\\n{ONE}"""\n',
        f'[users.bob]\npassword = """{ONE}\\\n[users.alice]\n"""\n',
    ],
)
def test_a_file_in_another_form_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "u"
    path.write_text(text)
    with pytest.raises(PasswordFileError):
        change(path, {"alice": {"password": TWO}})
    assert path.read_text() == text


NAMES = st.text(max_size=6).filter(
    lambda name: bool(name) and name == name.strip() and name.isprintable() and ":" not in name and name[0] != "#"
)
ROWS = st.fixed_dictionaries(
    {"password": st.sampled_from([ONE, TWO])},
    optional={
        "groups": st.none() | st.lists(NAMES.filter(lambda name: name != "anonymous"), max_size=2),
        "limits": st.none()
        | st.dictionaries(st.sampled_from(["connections", "stored_bytes"]), st.integers(0, 9), max_size=2),
    },
)


@given(st.lists(st.dictionaries(NAMES, st.none() | ROWS, max_size=3), max_size=5))
def test_changes_do_what_a_dictionary_does(changes: list[dict[str, dict[str, object] | None]]) -> None:
    text, expected = "# users\n", dict[str, dict[str, object]]()
    for each in changes:
        text = _changed(text, each, "u")
        for user, row in each.items():
            if row is None:
                expected.pop(user, None)
            else:
                kept = {**expected.get(user, {}), **row}
                expected[user] = {key: value for key, value in kept.items() if value is not None}
        assert tomllib.loads(text).get("users", {}) == expected
        parse(text, "u")
