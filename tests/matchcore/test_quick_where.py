"""What is read in C is what where.py reads, and all that it leaves is left to where.py."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from matchcore.errors import InvalidSelector
from matchcore.quick_where import read_quickly
from matchcore.selector import Selector
from matchcore.where import _Reading, parse_where
from tests.matchcore.selectors import SELECTORS
from tests.matchcore.test_screens import some_selector


def defined(text: str) -> Selector | None:
    """As where.py reads it; None: it refuses it."""
    try:
        return _Reading(text).whole()
    except InvalidSelector:
        return None


def check(text: str) -> bool:
    """Whether it is read in C. `repr` tells 1 from 1.0 and from TRUE, which are equal."""
    quickly = read_quickly(text)
    if quickly is not None:
        assert repr(quickly) == repr(defined(text))
    return quickly is not None


@given(SELECTORS)
@settings(max_examples=200)
def test_a_canonical_text_is_read_as_the_definition_reads_it(selector: Selector) -> None:
    check(str(selector))


PIECES = (
    "a", "price", "payload", "payload.a.b", "$qos", "$word[2]", "$word[", "]", "AND", "or", "Not", "IN", "(", ")", ",",
    "=", "<>", "!=", "<", "<=", ">", "1", "-2", "+3", "1.5", ".5", "1e3", "1e", "2.e1", "9" * 18, "9" * 19, "'x'", "'",
    "''", "'a''b'", '"q"', "TRUE", "false", "IS", "NULL", "BETWEEN", "LIKE", "ESCAPE", "MATCHES", "AT", "LEAST", "2",
    "OF", ".", "+", "-", "*", "é", "\x1c", "\0", "\v", "a.", ".b", "NOTE", "index", "1e999", "0x", "_",
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["", " ", " ", "\n"])), max_size=12))
@example([("a", " "), ("=", " "), ("5", ""), ("AND", " "), ("b", "")])
@example([("payload", " "), (".b", "")])
@settings(max_examples=400)
def test_pieces_in_any_order_are_read_as_the_definition_reads_them(pieces: list[tuple[str, str]]) -> None:
    check("".join(piece + space for piece, space in pieces))


def test_a_changed_character_changes_what_both_read() -> None:
    dice = random.Random(6)
    read = 0
    for _ in range(3_000):
        text = some_selector(dice)
        at = dice.randrange(len(text) + 1)
        changed = text[:at] + dice.choice(["", " ", "'", "(", ")", "=", "<", ".", "1", "e", "x", "\0", "é"])
        changed += text[at + dice.randrange(2) :]
        read += check(text) + check(changed)
    assert read > 2_000


@pytest.mark.parametrize(
    "text",
    [
        "price > 100 AND region IN ('eu', 'us')", "urgent", "NOT urgent", "payload.order.id <> 1", "a.b.c = 'x''y'",
        "(a = 1 OR b = 2) AND NOT (c BETWEEN 1 AND 2.5)", "$word[2] LIKE 'temp%'", "$qos = 1",
        "a NOT IN (1, 1.0, TRUE)",
        "a IS NULL or b is not null", "TRUE", "a=1AND b=2", "((((a = 1))))", "\t a\n=\r1 ",
    ],
)  # fmt: skip
def test_what_subscribers_write_is_read_in_c(text: str) -> None:
    assert check(text)


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("(" * 16 + "a = 1" + ")" * 16, True), ("(" * 17 + "a = 1" + ")" * 17, False), ("NOT " * 16 + "a", True),
        ("NOT " * 17 + "a", False), (" OR ".join(["a = 1"] * 64), True), (" OR ".join(["a = 1"] * 65), False),
        (f"a IN ({', '.join(map(str, range(700)))})", True), ("a" * 4_096, True), ("a" * 4_097, False),
        ("payload" + ".a" * 8, True), ("payload" + ".a" * 9, False), ("$word[128]", True), ("$word[129]", False),
        ("a = 1\0", False), ("a = 1e999", False), ("a LIKE 'x' ESCAPE '!'", False), ("1 < a", False), ("", False),
        ("a < TRUE", False), ("a BETWEEN 1 AND 'x'", False), ("$price", False), ("f(x)", False), ("a = b", False),
    ],
)  # fmt: skip
def test_the_bounds_are_those_of_the_definition(text: str, is_read: bool) -> None:
    assert check(text) is is_read
    if defined(text) is None:
        with pytest.raises(InvalidSelector):
            parse_where(text)
