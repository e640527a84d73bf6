"""EMQX's subscription filters: the text behind the `?`, against a plain reading of their description."""

import re
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matchcore.errors import InvalidSelector
from matchcore.kleene import Untyped, holds
from matchcore.suffix import parse_suffix, split_suffix
from matchcore.where import parse_where

READ = [
    ("location=roomA", "location = 'roomA'"),
    ("location=roomA&value>25", "location = 'roomA' AND value > 25"),
    (" location = roomA \t&\r\n value >= 25 ", "location = 'roomA' AND value >= 25"),
    ("value<=-1.5e3&value<.5", "value <= -1500.0 AND value < 0.5"),
    ("value=25", "value = '25'"),
    ("a=true", "a = 'true'"),
    ("payload.x=it's", "\"payload.x\" = 'it''s'"),
    ("$qos=1", "\"$qos\" = '1'"),
    ("in=é 日", "\"in\" = 'é 日'"),
    ("a=b?c#/+%26", "a = 'b?c#/+%26'"),
]


@pytest.mark.parametrize(("expression", "text"), READ)
def test_an_expression_is_the_selector_of_a_text(expression: str, text: str) -> None:
    assert str(parse_suffix(expression)) == str(parse_where(text))
    assert parse_suffix(expression.encode()) == parse_suffix(expression)


REFUSED = [
    ("", 0, "an empty clause"),
    ("  ", 2, "an empty clause"),
    ("location", 8, "without an operator"),
    ("=roomA", 0, "no key before ="),
    ("location=", 9, "no value behind ="),
    ("location= &a=b", 9, "no value behind ="),
    ("location=roomA&", 15, "an empty clause"),
    ("location=roomA&&value>25", 15, "an empty clause"),
    ("value>abc", 6, "compares numbers, found 'abc'"),
    ("é=1&value> ١", 12, "compares numbers"),
    ("value>0x10", 6, "compares numbers"),
    ("value>inf", 6, "compares numbers"),
    ("value>9223372036854775808", 6, "more than 64 bits"),
    ("value>1e999", 6, "beyond what a float holds"),
    ("value=1=2", 7, "a second ="),
    ("value=>1", 6, "a second >"),
    ("value>1<2", 7, "a second <"),
    ("é!=1", 2, "!= is no operator"),
    ("a != 1", 2, "!= is no operator"),
    ("&".join(["a=1"] * 65), 256, "more than 64 clauses"),
    (f"a={'x' * 4_095}", 4_096, "more than 4096"),
    (b"a=\xff", 2, "not UTF-8"),
    ("a=\ud800", 2, "not UTF-8"),
]


@pytest.mark.parametrize(("expression", "position", "reason"), REFUSED, ids=[str(each[0])[:20] for each in REFUSED])
def test_what_is_refused_has_the_byte(expression: str | bytes, position: int, reason: str) -> None:
    with pytest.raises(InvalidSelector) as caught:
        parse_suffix(expression)
    assert caught.value.position == position
    assert reason in caught.value.reason
    assert caught.value.advice


def test_the_text_that_a_selector_has_is_bounded_too() -> None:
    quotes = "a=" + "'" * 2_100  # each is two in the selector's text
    with pytest.raises(InvalidSelector, match="4096"):
        parse_suffix(quotes)


@pytest.mark.parametrize(
    ("filter", "parts"),
    [
        (b"a/b", (b"a/b", None)), (b"a/b?", (b"a/b", b"")), (b"a/+?x=1?y", (b"a/+", b"x=1?y")),
        (b"?a=1", (b"", b"a=1")), (b"$share/g/a/#?x=/#", (b"$share/g/a/#", b"x=/#")),
    ],
)  # fmt: skip
def test_a_filter_ends_at_the_first_question_mark(filter: bytes, parts: tuple[bytes, bytes | None]) -> None:
    assert split_suffix(filter) == parts


def number(text: str) -> Fraction | None:
    return Fraction(text) if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text) else None


COMPARE = {
    ">": lambda found, wanted: found > wanted, ">=": lambda found, wanted: found >= wanted,
    "<": lambda found, wanted: found < wanted, "<=": lambda found, wanted: found <= wanted,
}  # fmt: skip


def delivered(expression: str, headers: dict[str, str]) -> bool | None:
    """As EMQX describes it; None: refused."""
    verdict = True
    for clause in expression.split("&"):
        parts = re.split("(>=|<=|>|<|=)", clause)
        if len(parts) != 3:
            return None
        key, operator, value = (part.strip(" \t\r\n") for part in parts)
        if not key or not value or (operator == "=" and key.endswith("!")):
            return None
        found = headers.get(key)
        if operator == "=":
            verdict = verdict and found == value
            continue
        wanted = number(value)
        if wanted is None:
            return None
        has = number(found) if found is not None else None
        verdict = verdict and has is not None and COMPARE[operator](has, wanted)
    return verdict


KEYS = ("a", "é", "a.b")
WORDS = ("1", "2", "-1", "0.5", "1.0", "x", "'", "é")
PIECES = (*KEYS, *WORDS, "=", "=", ">", "<", ">=", "<=", "&", "&", " ", "\t", "!", "?")
CLAUSES = st.tuples(st.sampled_from(KEYS), st.sampled_from(["=", ">", "<", ">=", "<="]), st.sampled_from(WORDS))
SOUND = st.lists(CLAUSES.map("".join), min_size=1, max_size=3).map("&".join)
ANY = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


@given(st.one_of(SOUND, ANY), st.dictionaries(st.sampled_from(KEYS), st.sampled_from(WORDS)))
@example("a>1&é=1", {"a": "2", "é": "1"})
def test_it_is_true_where_the_description_says_so(expression: str, headers: dict[str, str]) -> None:
    expected = delivered(expression, headers)
    if expected is None:
        with pytest.raises(InvalidSelector):
            parse_suffix(expression)
    else:
        fields = {name: Untyped(value) for name, value in headers.items()}
        assert (holds(parse_suffix(expression), fields) is True) is expected


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_refused_with_a_byte_of_it(text: str) -> None:
    refused = None
    try:
        selector = parse_suffix(text)
    except InvalidSelector as error:
        refused = error.position
    if refused is None:
        assert parse_where(str(selector)) == selector
    else:
        assert 0 <= refused <= len(text.encode("utf-8", "surrogatepass"))
