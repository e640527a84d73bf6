"""Selectors as columns of bits: a screen with a pool answers as the definition does, and as one without a pool."""

import random
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from matchcore.fields import Attributes
from matchcore.kleene import Untyped
from matchcore.pooling import _pool_from
from matchcore.reached import found_by
from matchcore.screen import Screen
from matchcore.selector import And, Attribute, Selector
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS, TESTS
from tests.matchcore.test_screens import Changing, expected, some_message, some_selector

NEVER = 2**31
SEVERAL = 20  # more than a screen of few selectors has


@pytest.fixture(params=[1, 5, NEVER], ids=["pool", "pool from 5", "no pool"], autouse=True)
def pool_from(request: pytest.FixtureRequest) -> Iterator[int]:
    before = _pool_from(request.param)
    yield request.param
    _pool_from(before)


def screen_of(texts: Sequence[str], copies: int = 1) -> Screen:
    """The selectors under ids from 0; then copies of them."""
    screen = Screen(Attributes())
    for copy in range(copies):
        for id, text in enumerate(texts):
            screen.insert(len(texts) * copy + id, parse_where(text))
    return screen


def found(texts: Sequence[str], fields: Mapping[str, object], copies: int = SEVERAL) -> list[str]:
    """The texts that are true of the fields, by a large screen of copies of them."""
    screen = screen_of(texts, copies)
    ids = screen.match(fields)
    true = {id % len(texts) for id in ids}
    assert len(ids) == copies * len(true)
    assert ids == expected(dict(enumerate([parse_where(text) for text in texts] * copies)), fields)
    return [texts[id] for id in sorted(true)]


# Against the definition

CONJUNCTIONS = st.one_of(TESTS, st.lists(TESTS, min_size=2, max_size=4).map(tuple).map(And), SELECTORS)


@given(
    st.lists(CONJUNCTIONS, min_size=1, max_size=24), st.lists(FIELDS, min_size=1, max_size=4), st.booleans(),
    st.randoms(use_true_random=False),
)  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_the_ids_are_those_that_the_definition_calls_true(
    selectors: Sequence[Selector], messages: Sequence[dict[Attribute, object]], removing: bool, dice: random.Random
) -> None:
    known: dict[int, Selector] = {}
    screen = Screen(Attributes())
    for copy in range(1 + SEVERAL // len(selectors)):
        for id, selector in enumerate(selectors):
            known[100 * copy + id] = selector
            screen.insert(100 * copy + id, selector)
    for fields in messages:
        assert screen.match(fields) == expected(known, fields)
    if removing:
        for id in dice.sample(sorted(known), len(known) // 2):
            assert screen.remove(id)
            del known[id]
        for id in dice.sample(range(1_000, 1_100), 10):
            known[id] = dice.choice(selectors)
            screen.insert(id, known[id])
        for fields in messages:
            assert screen.match(fields) == expected(known, fields)


def test_inserts_and_removals_in_any_order() -> None:
    run_state_machine_as_test(Changing, settings=settings(max_examples=25, stateful_step_count=8, deadline=None))


def test_hundreds_of_selectors_that_come_and_go(pool_from: int) -> None:
    """More than a block; columns and slots are used again, and the pool is made anew meanwhile."""
    dice = random.Random(6)
    screen = Screen(Attributes())
    known: dict[int, Selector] = {}
    most = 0
    for round in range(3):
        for _ in range(1_500):
            id = dice.randrange(4_000)
            known[id] = parse_where(some_selector(dice))
            screen.insert(id, known[id])
        most = max(most, screen._shape()["pool"])
        for _ in range(5):
            fields = some_message(dice)
            assert screen.match(fields) == expected(known, fields)
        for id in dice.sample(sorted(known), len(known) // 2 if round < 2 else len(known)):
            del known[id]
            assert screen.remove(id)
        fields = some_message(dice)
        assert screen.match(fields) == expected(known, fields)
    assert (most > 512) is (pool_from != NEVER)
    assert len(screen) == screen.attributes.count == 0
    assert screen.nbytes < 10_000


def test_what_came_and_went_leaves_no_memory_behind() -> None:
    dice = random.Random(7)
    selectors = [parse_where(some_selector(dice)) for _ in range(800)]
    screen = Screen(Attributes())
    sizes = []
    for _ in range(4):
        for id, selector in enumerate(selectors):
            screen.insert(id, selector)
        sizes.append(screen.nbytes)
        for id in dice.sample(range(800), 700):
            screen.remove(id)
    assert max(sizes) <= 1.2 * min(sizes)


def test_memory_that_runs_out_leaves_the_screen_as_it_was() -> None:
    """A pool takes nothing that there is no memory for; no insert fails because of it alone."""
    dice = random.Random(8)
    screen = Screen(Attributes())
    known: dict[int, Selector] = {}
    failures = 0
    for id in range(120):
        selector = parse_where(some_selector(dice))
        for allowed in range(80):
            screen._fail_after(allowed)
            try:
                screen.insert(id, selector)
                break
            except MemoryError:
                failures += 1
        screen._fail_after(-1)
        known[id] = selector
        fields = some_message(dice)
        assert screen.match(fields) == expected(known, fields)
    assert failures > 20
    screen._fail_after(0)
    for id in known:
        assert screen.remove(id)
    assert screen.attributes.count == 0


# Kinds of values


def test_a_text_without_a_type_is_a_number_for_one_test_and_a_text_for_another() -> None:
    texts = ["a > 5 AND a <> 'x'", "a > 5", "a <> 'x'", "a = '7'", "a = 7", "a = TRUE", "a IN (7, 'x', TRUE)"]
    texts.append("a IS NULL")
    assert found(texts, {"a": Untyped("7")}) == [texts[i] for i in (0, 1, 2, 3, 4, 6)]
    assert found(texts, {"a": 7}) == [texts[i] for i in (1, 4, 6)]
    assert found(texts, {"a": "7"}) == [texts[i] for i in (2, 3)]
    assert found(texts, {"a": Untyped("true")}) == [texts[i] for i in (2, 5, 6)]
    assert found(texts, {}) == ["a IS NULL"]


def test_each_kind_of_value_is_apart() -> None:
    texts = ["a IS NOT NULL", "a IS NULL", "a <> 'x'", "a <> 1", "a = FALSE", "NOT a", "a NOT IN ('x', 'y')", "a < 'y'"]
    assert found(texts, {"a": b"bytes"}) == ["a IS NOT NULL"]
    assert found(texts, {"a": [1]}) == ["a IS NOT NULL"]
    assert found(texts, {"a": float("nan")}) == ["a IS NULL"]
    assert found(texts, {"a": False}) == ["a IS NOT NULL", "a = FALSE", "NOT a"]
    assert found(texts, {"a": "x"}) == ["a IS NOT NULL", "a < 'y'"]
    assert found(texts, {"a": "w"}) == ["a IS NOT NULL", "a <> 'x'", "a NOT IN ('x', 'y')", "a < 'y'"]


@pytest.mark.parametrize("value", [2**53 - 1, 2**53, 2**53 + 1, float(2**53), -(2**53) - 1, -(2**63), 2**63 - 1, 0.0])
def test_numbers_that_floats_leave_out_are_compared_exactly(value: float) -> None:
    ends = (2**53 - 1, 2**53, 2**53 + 1, -(2**53), -(2**53) - 1, -(2**63), 2**63 - 1, 0)
    found([f"a {operator} {end}" for end in ends for operator in ("=", "<>", "<", "<=", ">", ">=")], {"a": value}, 2)


def test_ends_that_many_ranges_share_leave_no_doubt() -> None:
    texts = [f"price {operator} {end}" for end in (10, 20, 30) for operator in ("<", "<=", ">", ">=", "=", "<>")]
    for price in (9, 10, 10.5, 20, 25, 30, 31):
        found(texts, {"price": price})


# Limits


def test_more_texts_than_are_listed(pool_from: int) -> None:
    texts = [f"a = 'value {number}' AND b > {number}" for number in range(100)]
    texts += [f"a <> 'value {number}'" for number in range(100)]
    screen = screen_of(texts)
    known = dict(enumerate(map(parse_where, texts)))
    for value in ("value 0", "value 50", "value 99", "other", "x" * 100):
        assert screen.match({"a": value, "b": 60}) == expected(known, {"a": value, "b": 60})
    if pool_from != NEVER:
        assert screen._shape()["rows"] < 64 + 40


def test_texts_that_are_gone_make_room_for_others(pool_from: int) -> None:
    """Rows do not grow with the values that were there once."""
    attributes = Attributes()
    screen = Screen(attributes)
    for id in range(40):
        screen.insert(id, parse_where(f"stays <> {id}"))
    rows = []
    for round in range(8):
        known = {}
        for number in range(50):
            text = f"a <> 'round {round} value {number}' AND b <> 'same'"
            known[1_000 + number] = parse_where(text)
            screen.insert(1_000 + number, known[1_000 + number])
        for value in (f"round {round} value 7", "round 0 value 7", "other"):
            fields = {"a": value, "b": "b"}
            assert screen.match(fields) == expected(known, fields)
        rows.append(screen._shape()["rows"])
        for id in known:
            screen.remove(id)
    if pool_from != NEVER:
        assert max(rows) <= 64 + 64 + 20


def test_more_attributes_than_a_pool_has() -> None:
    texts = [f"a{number} <> 'x' AND b{number // 2} > {number}" for number in range(90)]
    screen = screen_of(texts)
    known = dict(enumerate(map(parse_where, texts)))
    for dice in map(random.Random, range(6)):
        fields: dict[str, object] = {f"a{number}": dice.choice("xy") for number in range(90) if dice.random() < 0.7}
        fields |= {f"b{number}": dice.randrange(100) for number in range(45)}
        assert screen.match(fields) == expected(known, fields)


def test_a_number_of_an_attribute_that_another_one_has_now() -> None:
    """Rows of an attribute stay when its selectors are gone; its number may be another attribute's."""
    screen = screen_of([f"stays <> '{number}'" for number in range(30)])
    for round in range(4):
        known = {}
        for number in range(40):
            known[1_000 + number] = parse_where(f"name{round} <> '{number}' AND other{round} > {number}")
            screen.insert(1_000 + number, known[1_000 + number])
        fields = {f"name{round}": "7", f"other{round}": 30, f"name{round - 1}": "5"}
        assert screen.match(fields) == expected(known, fields)
        for id in known:
            screen.remove(id)


# What is pooled


@pytest.mark.parametrize(
    ("text", "pooled"),
    [
        ("id <> {}", True), ("price > {}", True), ("note IS NULL AND id <> {}", True), ("id NOT IN ({}, 3)", True),
        ("price > {} AND (a <> 1 OR b <> 1)", True), ("(a <> 1 OR b <> 1) AND price > {}", True),
        ("flag = TRUE", True), ("name LIKE '%m{}%'", False), ("price <> {} OR a <> 3", False), ("id = {}", None),
        ("AT LEAST 2 OF (id <> {}, city <> 'Rome', price <> 1)", False),
        ("id <> {} AND AT LEAST 2 OF (id <> 1, city <> 'Rome', price <> 1)", True),
    ],
)  # fmt: skip
def test_what_has_no_selective_key_is_in_the_pool(text: str, pooled: bool | None, pool_from: int) -> None:
    """None: the first few, before it is known how many values there are."""
    screen = screen_of([text.format(number) for number in range(400)])
    shape = screen._shape()
    if pooled is False or pool_from == NEVER:
        assert shape["pool"] == 0
    elif pooled is None:
        assert 0 < shape["pool"] <= 40
    else:
        assert shape["pool"] >= 400 - 16
        # Those of the time when it was a list are in the row.
        assert shape["row"] == 400 - shape["pool"]


def test_an_explanation_names_the_pool(pool_from: int) -> None:
    screen = screen_of([f"id <> {number}" for number in range(300)])
    assert found_by(screen, [0, 299], {"id": 5}) == [
        ("row of 300",) if pool_from == NEVER else ("row of 16",),
        ("row of 300",) if pool_from == NEVER else ("pool of 284",),
    ]


def test_without_a_message_s_attributes_only_what_asks_for_none_is_true() -> None:
    texts = ["a <> 'x'", "a IS NULL", "b > 3", "b IS NULL AND a IS NULL", "NOT c", "a IS NOT NULL"]
    assert found(texts, {}) == ["a IS NULL", "b IS NULL AND a IS NULL"]
