"""Selectors as dicts: each reads as the text beside it, and what is refused names its key."""

import pytest

from matchcore.errors import InvalidSelector
from matchcore.kleene import holds
from matchcore.patterns import parse_pattern
from matchcore.where import parse_where

READ: list[tuple[dict[str, object], str]] = [
    ({"region": ["eu"]}, "region = 'eu'"),
    ({"region": ["eu", "us", 1]}, "region IN ('eu', 'us', 1)"),
    ({"urgent": [True]}, "urgent"),
    ({"region": ["eu"], "price": [{"numeric": [">", 1, "<=", 2]}]}, "region = 'eu' AND price > 1 AND price <= 2"),
    ({"price": [{"numeric": ["=", 1.5]}, 7]}, "price = 7 OR price = 1.5"),
    ({"price": [{"numeric": ["!=", 1]}]}, "price <> 1"),
    ({"price": [None]}, "price IS NULL"),
    ({"price": [{"exists": True}]}, "price IS NOT NULL"),
    ({"price": [{"exists": False}]}, "price IS NULL"),
    ({"name": [{"prefix": "50%_!"}]}, "name LIKE '50!%!_!!%' ESCAPE '!'"),
    ({"name": [{"suffix": ".jpg"}]}, "name LIKE '%.jpg' ESCAPE '!'"),
    ({"name": [{"wildcard": "a*b\\*\\\\"}]}, "name LIKE 'a%b*\\' ESCAPE '!'"),
    ({"name": [{"anything-but": "x"}]}, "NOT name = 'x'"),
    ({"name": [{"anything-but": ["x", "y"]}]}, "name NOT IN ('x', 'y')"),
    ({"name": [{"anything-but": {"prefix": "x"}}]}, "name NOT LIKE 'x%' ESCAPE '!'"),
    ({"payload": {"order": {"id": [1]}, "b": [2]}}, "payload.order.id = 1 AND payload.b = 2"),
    ({"payload.order.id": [1]}, "payload.order.id = 1"),
    ({"payload": [1]}, '"payload" = 1'),
    ({"$word[2]": ["eur"], "$qos": [1]}, "$word[2] = 'eur' AND $qos = 1"),
    ({"x-y": ["it's"]}, "\"x-y\" = 'it''s'"),
    ({"$or": [{"a": [1]}, {"b": [2], "c": [3]}]}, "a = 1 OR b = 2 AND c = 3"),
    ({"payload": {"$or": [{"a": [1]}, {"b": [2]}]}, "c": [3]}, "(payload.a = 1 OR payload.b = 2) AND c = 3"),
]


@pytest.mark.parametrize(("pattern", "text"), READ, ids=[text for _, text in READ])
def test_a_pattern_is_read_as_a_text_is(pattern: dict[str, object], text: str) -> None:
    assert str(parse_pattern(pattern)) == str(parse_where(text))


def _deep(depth: int) -> dict[str, object]:
    return {"a": [1]} if depth == 0 else {"payload": {"$or": [_deep(depth - 1), {"b": [1]}]}}


REFUSED: list[tuple[dict[str, object], str, str]] = [
    ({}, "", "an empty dict"),
    ({"a": 1}, "a", "not in a list"),
    ({"a": []}, "a", "an empty list"),
    ({"a": {}}, "a", "an empty dict"),
    ({"a": [[1]]}, "a", "is no value"),
    ({"a": [{"numeric": [">"]}]}, "a", "numeric"),
    ({"a": [{"numeric": [">", "1"]}]}, "a", "numeric"),
    ({"a": [{"numeric": [">", True]}]}, "a", "numeric"),
    ({"a": [{"numeric": ["like", 1]}]}, "a", "numeric"),
    ({"a": [{"cidr": "10.0.0.0/24"}]}, "a", "is not known"),
    ({"a": [{"exists": 1}]}, "a", "is not known"),
    ({"a": [{"prefix": 1}]}, "a", "is not known"),
    ({"a": [{"anything-but": []}]}, "a", "anything-but"),
    ({"a": {"b": [1]}}, "a.b", "only the payload"),
    ({"$or": [], "a": [1]}, "$or", "$or without"),
    ({"$or": [1]}, "$or", "$or without"),
    ({"$foo": [1]}, "$foo IS NOT NULL", "$foo is not known"),
    ({"a": [float("nan")]}, "a", "is no value"),
    ({"a": [{"numeric": [">", float("inf")]}]}, "a", "numeric"),
    ({"a": [2**63]}, "a = 9223372036854775808", "64 bits"),
    ({"payload": {letter: [1] for letter in map(str, range(65))}}, "", "65 tests"),
    (_deep(20), "", "inside"),
    ({1: [1]}, "", "not text"),  # type: ignore[dict-item]
]


@pytest.mark.parametrize(("pattern", "text", "reason"), REFUSED, ids=[str(pattern)[:30] for pattern, *_ in REFUSED])
def test_what_is_refused_names_its_key(pattern: dict[str, object], text: str, reason: str) -> None:
    with pytest.raises(InvalidSelector) as caught:
        parse_pattern(pattern)
    assert reason in str(caught.value)
    assert text.encode() in caught.value.text
    assert caught.value.advice


def test_a_pattern_that_refuses_a_value_needs_one_that_it_can_compare() -> None:
    selector = parse_pattern({"name": [{"anything-but": "x"}]})
    assert [holds(selector, fields) for fields in ({"name": "y"}, {"name": "x"}, {"name": 1}, {})] == [
        True, False, None, None,
    ]  # fmt: skip
