"""Plain TOML: what is read without tomllib means what tomllib says, and what is not plain is left to it."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.auth.plain_toml import PAUSE_EVERY, loads, plain

NAMES = st.sampled_from(["a", "b", "limits", '"x y"', '"a.b"', "a-1", '"#"', '""', "'q'", '"e\\u0041"'])
VALUES = st.sampled_from([
    '"t"', '""', '"a = b"', '"# no comment"', '"é"', '"\\t"', '"tab\there"', "'lit'", '["a", "b"]', '["a","b"]', "[]",
    '["a, b", "c"]', '["x", ]', "{ n = 1 }", "{ n = 01 }", "{ n = 1, m = 2 }", "{}", "1", "1979-05-27", '"""', "[",
    '"" # behind', '"a" "b"', '["a\\", "b"]', '[["x"], ["y"]]', '{ effect = "allow", publish = ["a/#"] }', "",
])  # fmt: skip
HEADERS = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
LINES = st.one_of(
    st.builds("{} = {}".format, NAMES, VALUES), st.builds("{}={}".format, NAMES, VALUES),
    st.builds("[{}]".format, HEADERS), st.builds("[{}] # behind".format, HEADERS), st.builds("[[{}]]".format, HEADERS),
    st.builds("{}.{} = {}".format, NAMES, NAMES, VALUES),
    st.sampled_from(["", "  ", "# a comment", "\t# é", "# \x01", "# \x7f", "]", "x", '"""', "'''", "a\r", "a = 1\r"]),
)  # fmt: skip


@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_what_is_read_is_what_tomllib_reads(lines: list[str], end: str) -> None:
    text = end.join(lines)
    found = plain(text)
    if found is not None:
        assert found == tomllib.loads(text)


@given(st.text("ab=[]{}\"'\\#.\n\r\t 1,é\x00\x7f", max_size=40))
def test_any_text_is_read_as_by_tomllib_or_not_at_all(text: str) -> None:
    found = plain(text)
    if found is not None:
        assert found == tomllib.loads(text)


def test_a_file_as_the_command_writes_it_is_plain() -> None:
    text = (
        '# Users\ndecoy_key = "a+/="\n\n[users.alice]\npassword = "$argon2id$v=19$m=8,t=1,p=1$a$b"\n'
        'groups = ["ops", "dev"]\nlimits = { connections = 3, sessions = 4 }\n\n[users."bob smith"]\ngroups = ["a b"]\n'
        'limits = { connections = 10 }\n'
        'permissions = [{ effect = "deny", publish = "a/#" }, { subscribe = ["b"] }]\n'
    )  # fmt: skip
    found: Any = plain(text)
    assert found == tomllib.loads(text)
    assert found["users"]["bob smith"]["limits"] == {"connections": 10}


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\na = 2",
        "[a]\n[a]",
        "[a.b]\n[a]\n[a]",
        "a = { b = 1 }\n[a.c]",
        'a = "x"\n[a]',
        "[a]\nb = 1\n[a.b]",
        'a = "',
    ],
)
def test_what_is_said_twice_and_what_is_broken_is_an_error_of_tomllib(text: str) -> None:
    assert plain(text) is None
    with pytest.raises(tomllib.TOMLDecodeError):
        loads(text)


def test_it_pauses_now_and_then() -> None:
    pauses: list[None] = []
    loads("a = 1\n" + "\n" * 3 * PAUSE_EVERY, lambda: pauses.append(None))
    assert len(pauses) == 3
