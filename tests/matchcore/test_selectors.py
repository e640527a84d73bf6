"""What selectors mean: the tables of three-valued logic, the types, and the form without NOT."""

import pytest
from hypothesis import given

from matchcore import normal_form as normal
from matchcore.kleene import Untyped, attribute_of, holds
from matchcore.selector import Attribute, Selector
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS

T, F, U = "1 = one", "0 = one", "1 = nowhere"  # true, false, unknown of ONE
ONE = {"one": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (T, True), (F, False), (U, None),
        (f"NOT {T}", False), (f"NOT {F}", True), (f"NOT {U}", None),
        (f"{T} AND {T}", True), (f"{T} AND {F}", False), (f"{T} AND {U}", None),
        (f"{F} AND {U}", False), (f"{U} AND {U}", None),
        (f"{F} OR {F}", False), (f"{T} OR {F}", True), (f"{T} OR {U}", True),
        (f"{F} OR {U}", None), (f"{U} OR {U}", None),
        (f"AT LEAST 2 OF ({T}, {T}, {U})", True), (f"AT LEAST 2 OF ({T}, {U}, {F})", None),
        (f"AT LEAST 2 OF ({T}, {F}, {F})", False), (f"AT LEAST 2 OF ({F}, {F}, {U})", False),
    ],
)  # fmt: skip
def test_unknown_spreads_as_in_sql(text: str, expected: bool | None) -> None:
    assert holds(parse_where(text), ONE) is expected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a = 1", 1, True), ("a = 1", 1.0, True), ("a = 1.0", 1, True), ("a = 1", True, None), ("a = 1", "1", None),
        ("a = 9007199254740993", 9007199254740992.0, False), ("a > 9007199254740992.0", 9007199254740993, True),
        ("a = TRUE", True, True), ("a = TRUE", 1, None), ("a", False, False), ("a", "true", None),
        ("a = 'x'", "x", True), ("a < 'b'", "a", True), ("a < 'é'", "z", True), ("a = 'x'", b"x", None),
        ("a <> 'x'", 1, None), ("a <> 1", 2, True), ("a NOT IN (1, 'x')", "y", None), ("a IN (1, 'x')", "x", True),
        ("a BETWEEN 1 AND 2", 2, True), ("a BETWEEN 2 AND 1", 1, False), ("a BETWEEN 1 AND 2", "1", None),
        ("a = 1", Untyped("1"), True), ("a = 1", Untyped("1.0"), True), ("a = 1", Untyped("x"), None),
        ("a = '1'", Untyped("1"), True), ("a", Untyped("true"), True), ("a", Untyped("True"), None),
        ("a < 1", Untyped("-1e999"), None), ("a > 1", Untyped("9" * 20), None), ("a = 12", Untyped("١٢"), None),
        ("a IS NULL", None, True), ("a IS NULL", float("nan"), True), ("a = 1", float("nan"), None),
        ("a IS NOT NULL", b"", True), ("a IS NOT NULL", [1], True), ("a IS NOT NULL", {}, True),
        ("a LIKE '%'", "", True), ("a LIKE '_'", "é", True), ("a LIKE '_'", "", False), ("a LIKE 'x'", 1, None),
        ("a LIKE 'a%b%c'", "axxbyyc", True), ("a LIKE 'a%b%c'", "axxcyyb", False), ("a LIKE 'A'", "a", False),
        ("a LIKE '!%%' ESCAPE '!'", "%x", True), ("a LIKE '!%%' ESCAPE '!'", "x%", False),
    ],
)  # fmt: skip
def test_a_value_is_compared_by_its_type(text: str, value: object, expected: bool | None) -> None:
    assert holds(parse_where(text), {"a": value}) is expected


def test_the_keys_of_fields_are_attributes() -> None:
    fields = {"price": 1, "payload.a.b": 2, "$word[2]": "x", "$qos": 1, "x-y": 3}
    for text in ("price = 1", "payload.a.b = 2", "$word[2] = 'x'", "$qos = 1", '"x-y" = 3'):
        assert holds(parse_where(text), fields) is True
    # A header of such a name is no field of the payload.
    assert holds(parse_where('"payload.a.b" = 2'), fields) is None
    assert str(attribute_of("payload.a.b")) == "payload.a.b"


# iMatix, field matching: subscriptions 0 to 3, and the hits of three messages ("High-speed message matching", 2004)
CRITERIA = [
    ("currency = 'USD'", "urgent IS NOT NULL"),
    ("currency = 'EUR'",),
    ("market = 'forex'", "currency = 'EUR'"),
    ("urgent IS NOT NULL",),
]
MESSAGES: dict[str, tuple[dict[str, object], str, list[int]]] = {
    "A": ({"currency": "JPY", "market": "forex", "slow": ""}, "0010", []),
    "B": ({"currency": "JPY", "urgent": ""}, "1001", [3]),
    "C": ({"currency": "EUR", "market": "forex"}, "0120", [1, 2]),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_field_matching_of_imatix(name: str) -> None:
    fields, hits, all_of = MESSAGES[name]
    counted = [sum(holds(parse_where(text), fields) is True for text in criteria) for criteria in CRITERIA]
    assert "".join(map(str, counted)) == hits
    joined = [parse_where(" AND ".join(criteria)) for criteria in CRITERIA]
    assert [i for i, selector in enumerate(joined) if holds(selector, fields)] == all_of


@given(SELECTORS, FIELDS)
def test_the_form_without_not_holds_where_the_selector_is_true(
    selector: Selector, fields: dict[Attribute, object]
) -> None:
    def is_true(leaf: normal.Leaf) -> bool:
        return holds(leaf.test, fields) is not leaf.negated and holds(leaf.test, fields) is not None

    assert normal.holds(normal.normal_form(selector), is_true) is (holds(selector, fields) is True)


@given(SELECTORS, FIELDS)
def test_a_double_negation_changes_nothing(selector: Selector, fields: dict[Attribute, object]) -> None:
    assert holds(parse_where(f"NOT (NOT ({selector}))"), fields) is holds(selector, fields)
    assert normal.normal_form(parse_where(f"NOT (NOT ({selector}))")) == normal.normal_form(selector)
