"""Why a selector is not true of a message: the sentences."""

import pytest
from hypothesis import given, settings

from matchcore.kleene import Untyped, holds
from matchcore.reasons import true_tests, why_not_true
from matchcore.selector import Attribute, Selector
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS

FACT = {"price": 80, "region": "eu", "urgent": True, "raw": b"x", "code": Untyped("x7"), "long": "a" * 100}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("price > 100", "price is 80; the selector wants > 100"),
        ("region IN ('us', 'asia')", "region is 'eu'; the selector wants IN ('us', 'asia')"),
        ("region NOT IN ('eu', 'asia')", "region is 'eu'; the selector wants NOT IN ('eu', 'asia')"),
        ("region LIKE 'us%'", "region is 'eu'; the selector wants LIKE 'us%'"),
        ("NOT price < 100", "price is 80; the selector wants >= 100"),
        ("price BETWEEN 90 AND 100", "price is 80; the selector wants BETWEEN 90 AND 100"),
        ("size > 100", "size is absent; the selector wants > 100"),
        ("size IS NOT NULL", "size is absent; the selector wants IS NOT NULL"),
        ("price IS NULL", "price is 80; the selector wants IS NULL"),
        ("NOT urgent", "urgent is TRUE; the selector wants <> TRUE"),
        ("price = '80'", "price is 80 (a number, not compared); the selector wants = '80'"),
        ("region > 5", "region is 'eu' (text, not compared); the selector wants > 5"),
        ("raw = 'x'", "raw is b'x' (no plain value, not compared); the selector wants = 'x'"),
        ("code = 7", "code is 'x7' (text, not compared); the selector wants = 7"),
        ("price > 50 AND region = 'us' AND size = 1", "region is 'eu'; the selector wants = 'us'"),
        (
            "price > 100 OR region = 'us'",
            "0 of 2 alternatives are true, 1 must be: (1) price is 80; the selector wants > 100 "
            "(2) region is 'eu'; the selector wants = 'us'",
        ),
        (
            "AT LEAST 2 OF (price = 80, region = 'us', size = 1)",
            "1 of 3 alternatives are true, 2 must be: (1) region is 'eu'; the selector wants = 'us' "
            "(2) size is absent; the selector wants = 1",
        ),
        ("FALSE", "the selector is never true"),
        ("long = 'b'", f"long is '{'a' * 59}...; the selector wants = 'b'"),
        ("price = 80 AND urgent", None),
        ("TRUE", None),
    ],
)
def test_the_sentences(text: str, reason: str | None) -> None:
    assert why_not_true(parse_where(text), FACT) == reason


def test_of_many_alternatives_three_are_shown() -> None:
    reason = why_not_true(parse_where(" OR ".join(f"a{i} = 1" for i in range(20))), {})
    assert reason is not None
    assert reason.endswith("(3) a2 is absent; the selector wants = 1, and 17 more")


def test_the_tests_that_are_true() -> None:
    selector = parse_where("price = 80 AND (region = 'us' OR urgent) AND price = 80")
    assert true_tests(selector, FACT) == ("price = 80", "urgent = TRUE")


@settings(deadline=None, max_examples=50)
@given(SELECTORS, FIELDS)
def test_there_is_a_reason_where_the_selector_is_not_true(
    selector: Selector, fields: dict[Attribute, object]
) -> None:
    assert (why_not_true(selector, fields) is None) is (holds(selector, fields) is True)
