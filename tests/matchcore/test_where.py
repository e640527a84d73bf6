"""The text of selectors: what each reads as, what is refused and at which byte, and the way back."""

import pytest
from hypothesis import given

from matchcore.errors import InvalidSelector
from matchcore.selector import (
    And,
    AtLeast,
    Attribute,
    Between,
    Compare,
    Constant,
    In,
    Like,
    Matches,
    Not,
    Or,
    Present,
    Selector,
    Source,
    leaves,
)
from matchcore.where import MAX_DEPTH, MAX_LEAVES, MAX_TEXT_BYTES, MAX_VALUES, parse_where
from tests.matchcore.selectors import SELECTORS


def header(name: str) -> Attribute:
    return Attribute(Source.HEADER, (name,))


A, B, C = header("a"), header("b"), header("c")
IS_A, IS_B, IS_C = (Compare(attribute, "=", 1) for attribute in (A, B, C))

READ: list[tuple[str, Selector]] = [
    ("a = 1", IS_A),
    ("a=1", IS_A),
    ("1 = a", IS_A),
    ("\n a\t= 1 ", IS_A),
    ("a != 1", Compare(A, "<>", 1)),
    ("5 < a", Compare(A, ">", 5)),
    ("5 >= a", Compare(A, "<=", 5)),
    ("a = -1", Compare(A, "=", -1)),
    ("a = +1.5e1", Compare(A, "=", 15.0)),
    ("a = .5", Compare(A, "=", 0.5)),
    ("a = 1.", Compare(A, "=", 1.0)),
    ("a = 9223372036854775807", Compare(A, "=", 2**63 - 1)),
    ("a = 'it''s'", Compare(A, "=", "it's")),
    ("a = ''", Compare(A, "=", "")),
    ("a = true", Compare(A, "=", True)),
    ("FALSE <> a", Compare(A, "<>", False)),
    ("a", Compare(A, "=", True)),
    ("NOT a", Not(Compare(A, "=", True))),
    ("a BETWEEN 1 AND 2.5 AND b = 1", And((Between(A, 1, 2.5), IS_B))),
    ("a NOT between 'a' and 'b'", Not(Between(A, "a", "b"))),
    ("a IN (1, 'x', TRUE, 1.0)", In(A, (1, "x", True))),
    ("a NOT IN (1)", Not(In(A, (1,)))),
    ("a LIKE 'x%'", Like(A, "x%")),
    ("a NOT LIKE 'x!_' ESCAPE '!'", Not(Like(A, "x!_", "!"))),
    ("a matches 'site/+/temp'", Matches(A, "site/+/temp")),
    ("a NOT MATCHES 'it''s.#'", Not(Matches(A, "it's.#"))),
    ("matches MATCHES ''", Matches(Attribute(Source.HEADER, ("matches",)), "")),
    ("a IS NULL", Not(Present(A))),
    ("a IS NOT NULL", Present(A)),
    ("a = 1 OR b = 1 AND c = 1", Or((IS_A, And((IS_B, IS_C))))),
    ("(a = 1 OR b = 1) AND c = 1", And((Or((IS_A, IS_B)), IS_C))),
    ("NOT a = 1 AND b = 1", And((Not(IS_A), IS_B))),
    ("AT LEAST 2 OF (a = 1, b = 1, c = 1 OR a)", AtLeast(2, (IS_A, IS_B, Or((IS_C, Compare(A, "=", True)))))),
    ("TRUE", Constant(True)),
    ("a.b = 1", Compare(header("a.b"), "=", 1)),
    ('"x-y" = 1', Compare(header("x-y"), "=", 1)),
    ('"say ""hi""" = 1', Compare(header('say "hi"'), "=", 1)),
    ('"payload" = 1', Compare(header("payload"), "=", 1)),
    ('"NOT" = 1', Compare(header("NOT"), "=", 1)),
    ('payload.a."b c" = 1', Compare(Attribute(Source.PAYLOAD, ("a", "b c")), "=", 1)),
    ("$qos > 0", Compare(Attribute(Source.MESSAGE, ("qos",)), ">", 0)),
    ("$word[2] = 'eur'", Compare(Attribute(Source.MESSAGE, ("word", "2")), "=", "eur")),
]


@pytest.mark.parametrize(("text", "selector"), READ, ids=[text for text, _ in READ])
def test_a_text_is_read(text: str, selector: Selector) -> None:
    assert parse_where(text) == parse_where(text.encode()) == selector


@given(SELECTORS)
def test_the_text_of_a_selector_is_read_into_an_equal_one(selector: Selector) -> None:
    again = parse_where(str(selector))
    assert again == selector
    assert list(map(repr, leaves(again))) == list(map(repr, leaves(selector)))  # 1 is not 1.0, nor TRUE


@pytest.mark.parametrize("test", [
    "a", "a = 1", "a IS NULL", "a NOT IN (1, 2)", "a NOT LIKE 'x%'", "a NOT MATCHES 'b.#'", "a NOT BETWEEN 1 AND 2",
    "(a = 1 OR b = 1)", "AT LEAST 1 OF (a = 1, NOT b = 1)",
])  # fmt: skip
def test_a_selector_at_the_bound_of_depth_has_a_text_that_is_read(test: str) -> None:
    """A session that is stored has the text, and would not come back."""
    inside = 2 if "AT" in test else 1 if test.startswith("(") else 0
    selector = parse_where("NOT " * (MAX_DEPTH - inside) + test)
    assert parse_where(str(selector)) == selector


REFUSED = [
    ("", 0, "attribute is missing"),
    ("a = ", 4, "the text ends"),
    ("a = 1 AND", 9, "the text ends"),
    ("a = 1 b = 1", 6, "AND, OR or the end"),
    ("(a = 1", 6, ") is missing"),
    ("a = 1)", 5, "AND, OR or the end"),
    ("a = b", 4, "two attributes"),
    ("1 = 1", 0, "two values"),
    ("1", 1, "an operator is missing"),
    ("a + 1 = 2", 2, "arithmetic"),
    ("a -1 = 2", 2, "arithmetic"),
    ("a = 1 * 2", 6, "arithmetic"),
    ("upper(a) = 'X'", 5, "a function"),
    ("a > TRUE", 4, "no order"),
    ("FALSE < a", 0, "no order"),
    ("a BETWEEN 1 AND 'x'", 10, "two numbers or two texts"),
    ("a BETWEEN FALSE AND TRUE", 10, "two numbers or two texts"),
    ("a IN ()", 6, "is missing, found ')'"),
    ("a IN (1,)", 8, "is missing, found ')'"),
    ("a NOT 1", 6, "BETWEEN, IN, LIKE or MATCHES"),
    ("a LIKE 1", 7, "text between"),
    ("a MATCHES b", 10, "text between"),
    ("a MATCHES 'x/#/y'", 13, "the filter"),
    ("a MATCHES 'it''s/é+/y'", 19, "the filter"),
    ("a LIKE 'x!' ESCAPE '!'", 19, "stands before"),
    ("a LIKE 'x!y' ESCAPE '!'", 20, "stands before"),
    ("a LIKE 'x' ESCAPE '!!'", 18, "one character"),
    ("a IS 1", 5, "NULL is missing"),
    ("a = 9223372036854775808", 4, "64 bits"),
    ("a = 1e999", 4, "beyond what a float holds"),
    ("a = 'x", 4, "not closed"),
    ('"a = 1', 0, "not closed"),
    ('"" = 1', 0, "not closed"),
    ("é = 1", 0, "has no meaning"),
    ("'é' = é", 7, "has no meaning"),
    ("a = ;", 4, "has no meaning"),
    ("payload = 1", 8, "payload alone"),
    ("payload.a.b.c.d.e.f.g.h.i = 1", 7, "a path of 9 names"),
    ("$foo = 1", 0, "$foo is not known"),
    ("$word = 1", 6, "[ is missing"),
    ("$word[0] = 1", 6, "counted from 1"),
    ("$word[1.0] = 1", 6, "counted from 1"),
    ("AT LEAST 3 OF (a, b)", 9, "AT LEAST 3 of 2"),
    ("AT LEAST 0 OF (a)", 9, "AT LEAST 0 of 1"),
    ("AND = 1", 0, "attribute is missing"),
    ("NOT " * (MAX_DEPTH + 1) + "a", 4 * MAX_DEPTH, "inside each other"),
    (" OR ".join(["a"] * (MAX_LEAVES + 1)), 0, f"{MAX_LEAVES + 1} tests"),
    ("a = '" + "x" * MAX_TEXT_BYTES + "'", MAX_TEXT_BYTES, "bytes, more than"),
    (f"a IN ({','.join(map(str, range(MAX_VALUES + 1)))})", 6 + 3_890, "values"),
]


@pytest.mark.parametrize(("text", "position", "reason"), REFUSED, ids=[text[:30] for text, *_ in REFUSED])
def test_what_is_refused_is_refused_at_its_byte(text: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidSelector) as caught:
        parse_where(text)
    assert caught.value.position == position
    assert reason in str(caught.value)
    assert f"byte {position} " in str(caught.value)
    assert caught.value.advice


def test_bytes_that_are_not_utf_8_are_refused_at_their_byte() -> None:
    with pytest.raises(InvalidSelector, match=r"byte 5 .*not UTF-8"):
        parse_where(b"a = '\xff'")
