"""Covers and intersects with selectors: what is proven is true, and what should be proven is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore import InvalidSelector, covers, intersects
from matchcore.implication import disjoint, example, implies
from matchcore.kleene import Untyped, holds
from matchcore.selector import And, Attribute, Or, Selector
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS

IMPLIED = [
    ("a = 1", "a = 1"), ("a = 1", "a = 1.0"), ("a = 1", "a IN (1, 2)"), ("a IN (1, 2)", "a IN (3, 2, 1)"),
    ("a = 5", "a > 4"), ("a > 5", "a > 4"), ("a > 5", "a >= 5"), ("a BETWEEN 2 AND 3", "a >= 2 AND a < 4"),
    ("a = 1", "a <> 2"), ("a < 1", "a <> 1"), ("a = 1", "a IS NOT NULL"), ("a NOT IN (1, 2)", "a <> 1"),
    ("a NOT IN (1, 2)", "a IS NOT NULL"), ("a LIKE 'ab%'", "a LIKE 'a%'"), ("a = 'ab'", "a LIKE 'a%'"),
    ("a LIKE 'ab%'", "a >= 'ab' AND a < 'ac'"), ("a LIKE 'a%b%c'", "a LIKE 'a%c'"), ("a LIKE '%xyz'", "a LIKE '%z'"),
    ("a MATCHES 'x/+/t'", "a MATCHES 'x/#'"), ("a = 'x.y'", "a MATCHES '*.*'"), ("a MATCHES 'x.y'", "a = 'x.y'"),
    ("a MATCHES 'x/+/t'", "a LIKE 'x/%t'"), ("a MATCHES 'x.#'", "a >= 'x' AND a < 'y'"),
    ("a LIKE 'x'", "a MATCHES '#'"), ("a MATCHES '#.*'", "a MATCHES '*.#'"),
    ("a MATCHES 'x.#.*.#.y'", "a MATCHES '*.*.#.y'"),
    ("a IN ('x/1/t', 'x/t')", "a NOT MATCHES 'x/+'  OR a MATCHES '+/t'"),
    ("a LIKE 'a_c'", "a LIKE 'a%'"), ("a = 'abc'", "a LIKE 'a_c'"), ("a IN ('abc', 'axc')", "a NOT LIKE 'b%'"),
    ("a = 1 AND b = 2", "b = 2"), ("a = 1 AND b = 2", "b = 2 AND a = 1"), ("a = 1", "a = 1 OR b = 2"),
    ("a = 1 OR a = 2", "a IN (1, 2)"), ("a IN (1, 2)", "a = 1 OR a = 2"), ("a = 1 AND (b = 1 OR c = 1)", "a = 1"),
    ("a = 1 AND (b = 1 OR c = 1)", "(a = 1 AND b = 1) OR (c = 1 AND a = 1)"),
    ("AT LEAST 2 OF (a = 1, b = 1, c = 1)", "a = 1 OR b = 1"),
    ("AT LEAST 2 OF (a = 1, b = 1, c = 1)", "AT LEAST 2 OF (a = 1, b = 1, c = 1, d = 1)"),
    ("AT LEAST 2 OF (a = 1, b = 1, c = 1)", "AT LEAST 1 OF (a > 0, b > 0, c > 5)"),
    ("a = 1 AND b = 1 AND c = 1", "AT LEAST 2 OF (a = 1, b = 1, c = 1)"),
    ("a AND NOT b", "NOT b"), ("NOT (a = 1 OR b = 1)", "a <> 1"), ("FALSE", "a = 1"), ("a = 1", "TRUE"),
    ("a > 5 AND a < 5", "b = 1"), ("a IN (1, 'x')", "a = 1 OR a = 'x'"), ("a NOT IN (1, 'x')", "a <> 1 AND a <> 'x'"),
    ("TRUE", "a IS NULL OR a IS NOT NULL"), ("a > 9007199254740993", "a > 9007199254740992.0"),
    ("payload.a.b = 1", "payload.a.b > 0"), ("$word[2] = 'x'", "$word[2] IN ('x', 'y')"),
]  # fmt: skip
NOT_IMPLIED = [
    ("a IN (1, 2)", "a = 1"), ("a > 4", "a > 5"), ("a >= 5", "a > 5"), ("b = 1", "a = 1"), ("TRUE", "a = 1"),
    ("a <> 1", "a > 1"), ("TRUE", "a = 1 OR a <> 1"), ("a IS NOT NULL", "a = 1 OR a <> 1"), ("a LIKE 'a%'", "a = 'a'"),
    ("a = 1 OR b = 1", "a = 1"), ("AT LEAST 2 OF (a = 1, b = 1, c = 1)", "a = 1"), ("a = '1'", "a = 1"),
    ("a = 1", "a = '1'"), ("a NOT IN (1, 2)", "a NOT IN (1, 2, 3)"), ("a IS NULL", "a <> 1"),
    ("payload.a = 1", "a = 1"), ("a > 9007199254740992", "a > 9007199254740993"), ("a LIKE '_%'", "a LIKE '__%'"),
    ("a MATCHES 'x/#'", "a MATCHES 'x/+/t'"), ("a MATCHES '+/t'", "a MATCHES 'x/t'"),
    ("a LIKE 'x.%'", "a MATCHES 'x.#'"),
    ("a MATCHES '*.t'", "a MATCHES '+/t'"), ("a = '$x/t'", "a MATCHES '+/t'"), ("a MATCHES '#'", "a LIKE '_%'"),
]  # fmt: skip
DISJOINT = [
    ("a = 1", "a = 2"), ("a < 5", "a > 5"), ("a <= 5", "a > 5"), ("a BETWEEN 1 AND 2", "a BETWEEN 3 AND 4"),
    ("a = 'x'", "a > 5"), ("a = TRUE", "a = FALSE"), ("a", "a = 1"), ("a IS NULL", "a = 1"), ("a IS NULL", "a <> 1"),
    ("a LIKE 'a%'", "a LIKE 'b%'"), ("a LIKE 'a%'", "a NOT LIKE 'a%'"), ("a IN ('x', 'y')", "a LIKE 'z%'"),
    ("a = 1 AND b = 1", "b = 2"), ("a = 1 OR a = 2", "a > 2"), ("a = 1", "NOT a = 1"), ("FALSE", "TRUE"),
    ("AT LEAST 2 OF (a = 1, b = 1, c = 1)", "a = 2 AND b = 2"), ("a LIKE 'a_c%'", "a NOT LIKE 'a%c%'"),
    ("a MATCHES 'x/+/t'", "a MATCHES '+/+/u'"), ("a MATCHES 'x/+/t'", "a NOT MATCHES '+/+/t'"),
    ("a MATCHES '#.x.#.y'", "a MATCHES '*.*.z'"), ("a MATCHES '*.*'", "a MATCHES '*.*.#.z'"),
    ("a MATCHES 'x.#'", "a LIKE 'y%'"), ("a = 'x/y'", "a MATCHES 'x/+/#' AND a MATCHES 'x/+/t'"),
    ("a = 'x' AND a <> 'x'", "b = 1"), ("a = 'abc'", "a LIKE '__'"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), IMPLIED)
def test_what_follows_is_proven(a: str, b: str) -> None:
    assert implies(parse_where(a), parse_where(b))
    assert covers("x.*", "x.*", where_a=b, where_b=a)


@pytest.mark.parametrize(("a", "b"), NOT_IMPLIED)
def test_what_does_not_follow_is_not(a: str, b: str) -> None:
    assert not implies(parse_where(a), parse_where(b))
    assert not covers("x.*", "x.*", where_a=b, where_b=a)


@pytest.mark.parametrize(("a", "b"), DISJOINT)
def test_what_excludes_each_other_is_proven(a: str, b: str) -> None:
    assert disjoint(parse_where(a), parse_where(b))
    assert disjoint(parse_where(b), parse_where(a))
    assert not intersects("x.*", "x.*", where_a=a, where_b=b)


def test_a_text_without_a_type_may_be_a_number_and_a_text() -> None:
    both = parse_where("a = 1 AND a = '1'")
    assert holds(both, {"a": Untyped("1")}) is True
    assert not disjoint(parse_where("a = 1"), parse_where("a = '1'"))
    assert not disjoint(parse_where("a"), parse_where("a = 'true'"))
    assert disjoint(parse_where("a = 1"), parse_where("a = 'x'"))
    assert disjoint(parse_where("a > 1"), parse_where("a = TRUE"))


def test_a_topic_and_a_selector_are_covered_together() -> None:
    assert covers("stock.#", "stock.*.ibm", where_a="price > 5", where_b="price > 6 AND urgent")
    assert not covers("stock.*.ibm", "stock.#", where_a="price > 5", where_b="price > 6")
    assert covers("a", "a", where_b="b = 1")
    assert not covers("a", "a", where_a="b = 1")
    assert covers("a", "a", where_a={"b": [{"exists": True}, None]})
    assert not intersects("a.*", "b.*", where_a="c = 1", where_b="c = 1")
    assert intersects("a.*", "*.b", where_a="c = 1", where_b="d = 1")
    assert not intersects("a", "a", where_a="c = 1 AND c = 2")
    with pytest.raises(InvalidSelector):
        covers("a", "a", where_a="b =")
    with pytest.raises(InvalidSelector):
        intersects("a", "b", where_b="b =")
    with pytest.raises(TypeError):
        intersects("a", "b", where_b=5)  # type: ignore[arg-type]


@settings(deadline=None, max_examples=60)
@given(SELECTORS, SELECTORS, FIELDS)
def test_what_is_proven_is_not_contradicted(a: Selector, b: Selector, fields: dict[Attribute, object]) -> None:
    if holds(a, fields) is True:
        if implies(a, b):
            assert holds(b, fields) is True
        if disjoint(a, b):
            assert holds(b, fields) is not True


@settings(deadline=None, max_examples=60)
@given(SELECTORS, SELECTORS, FIELDS)
def test_a_wider_selector_is_not_contradicted(a: Selector, b: Selector, fields: dict[Attribute, object]) -> None:
    """Selectors that do follow, so that many proofs are looked at."""
    for narrow, wide in [(And((a, b)), a), (a, Or((b, a))), (And((a, b)), Or((a, b)))]:
        if implies(wide, narrow) and holds(wide, fields) is True:
            assert holds(narrow, fields) is True
        assert implies(narrow, wide)


@settings(deadline=None, max_examples=60)
@given(st.lists(SELECTORS, min_size=1, max_size=3))
def test_an_example_is_one(selectors: list[Selector]) -> None:
    fields = example(*selectors)
    if fields is not None:
        assert all(holds(selector, fields) is True for selector in selectors)


@pytest.mark.parametrize(("a", "b"), [pair for pair in IMPLIED if pair[0] not in ("FALSE", "a > 5 AND a < 5")])
def test_an_example_is_found(a: str, b: str) -> None:
    fields = example(parse_where(a), parse_where(b))
    assert fields is not None
    assert holds(parse_where(a), fields) is True


def test_what_would_take_exponential_time_is_not_proven() -> None:
    """Eight pigeons in seven holes: there is no room, and no short proof of it."""
    pigeons, holes = range(8), range(7)
    placed = " AND ".join("(" + " OR ".join(f"h{p} = {h}" for h in holes) + ")" for p in pigeons)
    assert not disjoint(parse_where(placed), parse_where("TRUE"))  # each in some hole: possible
    crowded = [[parse_where(f"p{p}h{h} = 1") for h in holes] for p in pigeons]
    each = And(tuple(Or(tuple(row)) for row in crowded))
    alone = And(
        tuple(
            parse_where(f"NOT (p{p}h{h} = 1 AND p{q}h{h} = 1)") for h in holes for p in pigeons for q in range(p)
        )
    )
    assert not disjoint(each, alone)
    small = And((parse_where("a = 1 OR a = 2"), parse_where("b = 1 OR b = 2")))
    assert disjoint(small, parse_where("(a <> 1 AND a <> 2) OR (b <> 1 AND b <> 2)"))
