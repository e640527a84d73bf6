"""Every contender of fanlight_content against the interpreter: the same selectors and messages, the same answers."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_bench.micro import screens
from fanlight_content.registry import CONTENDERS, ContentEntry
from fanlight_content.selections import CONJUNCTIONS_AT_MOST, Asked, Selections, conjunctions_of
from matchcore import normal_form
from matchcore.kleene import Untyped, holds
from matchcore.selector import Attribute, Selector, Source
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS

ENTRIES = [pytest.param(entry, id=entry.name) for entry in CONTENDERS.values()]
WIDE = 3  # filters below it are wide ones
Held = Sequence[tuple[int, Selector]]  # slot and selector; the id is the index, times three
Message = dict[Attribute, object]


def expected(held: Held, slots: Sequence[int], message: Message) -> tuple[int, ...]:
    return tuple(3 * at for at, (slot, one) in enumerate(held) if slot in slots and holds(one, message) is True)


def compiled(held: Held) -> Selections:
    selections = Selections(WIDE)
    for at, (slot, selector) in enumerate(held):
        selections.insert(slot, 3 * at, selector)
    return selections


SLOTS = st.sampled_from([(), (0,), (2,), (1, 3), (0, 4), (7,)])


@pytest.mark.parametrize("entry", ENTRIES)
def test_it_answers_as_the_interpreter_does(entry: ContentEntry) -> None:
    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.tuples(st.integers(0, 4), SELECTORS), max_size=40),
        st.lists(st.tuples(SLOTS, FIELDS), min_size=1, max_size=5),
    )
    def check(held: Held, messages: list[tuple[tuple[int, ...], Message]]) -> None:
        selections = compiled(held)
        contest = entry.make(selections)
        for slots, message in messages:
            assert contest.match(Asked(selections, slots, message)) == expected(held, slots, message)

    check()


WORKLOADS = {"two conditions": screens.two_conditions, **screens.ADVERSARIAL}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_it_finds_what_the_interpreter_finds_in_a_workload(entry: ContentEntry, name: str) -> None:
    """More selectors than hypothesis would make: directories that split, rows of several words."""
    dice = random.Random(3)
    count = 60 if name.startswith("64") else 900 if entry.compiled else 300
    held = [(dice.choice((0, 0, 0, 1, 3)), WORKLOADS[name](dice)) for _ in range(count)]
    selections = compiled(held)
    contest = entry.make(selections)
    asked = [((0,), screens.message(dice)), ((0, 3), screens.message(dice)), ((1,), screens.message(dice))]
    found = 0
    for slots, message in asked:
        answer = contest.match(Asked(selections, slots, message))
        assert answer == expected(held, slots, message)
        found += len(answer)
    assert contest.ask([Asked(selections, slots, message) for slots, message in asked], 2) == 2 * found
    assert contest.nbytes > 0


@pytest.mark.parametrize("entry", ENTRIES)
def test_numbers_at_the_edges_and_text_without_a_type(entry: ContentEntry) -> None:
    """Values that two criteria take for the same one, and values that are met by two hashes."""
    texts = [
        "a = 9007199254740993", "a = 9007199254740992.0", "a > 9007199254740992", "a <= 9007199254740992", "a = '12'",
        "a IN (12, '12')", "a IN (12, '12') AND b = 1", "a = 12 AND b = 1", "a BETWEEN 12 AND 12", "a < -0.0", "a = 0",
        "a IS NULL", "a IS NULL AND b = 1", "a = 12 AND a IS NOT NULL AND a <> 13", "a = TRUE", "a IN ('true', TRUE)",
        "TRUE", "FALSE", "AT LEAST 2 OF (a = 12, b = 1, c LIKE 'x%')", "a = 12 AND a = '12'", "b > 0 AND b < 2",
    ] * 2  # fmt: skip
    held = [(0, parse_where(text)) for text in texts]
    selections = compiled(held)
    contest = entry.make(selections)
    header = {name: Attribute(Source.HEADER, (name,)) for name in "abc"}
    values: list[object] = [
        2**53, 2**53 + 1, float(2**53), 12, 12.0, Untyped("12"), Untyped("true"), "12", "true", True, 0, -0.0, None,
        float("inf"), float("nan"), -(2**63), 2**64, b"12",
    ]  # fmt: skip
    for value in values:
        for message in ({header["a"]: value}, {header["a"]: value, header["b"]: 1, header["c"]: "xy"}):
            asked = Asked(selections, (0,), message)
            assert contest.match(asked) == expected(held, (0,), message), (value, message)


def test_what_is_written_out_holds_where_the_selector_does() -> None:
    @settings(max_examples=200, deadline=None)
    @given(SELECTORS, FIELDS)
    def check(selector: Selector, message: Message) -> None:
        conjunctions = conjunctions_of(selector)
        if conjunctions is not None:
            assert len(conjunctions) <= CONJUNCTIONS_AT_MOST
            leaves = [normal_form.AllOf(tuple(leaves)) for leaves in conjunctions]
            written = normal_form.AnyOf(tuple(leaves))

            def is_true(leaf: normal_form.Leaf) -> bool:
                return holds(leaf.test, message) is (not leaf.negated)

            assert normal_form.holds(written, is_true) is (holds(selector, message) is True)

    check()


def test_a_selector_of_too_many_conjunctions_is_not_written_out() -> None:
    pairs = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(7))
    assert conjunctions_of(parse_where(pairs)) is None
    selections = compiled([(0, parse_where(pairs))] * 40)
    message: Message = {Attribute(Source.HEADER, (f"a{i}",)): 1 for i in range(7)}
    for entry in CONTENDERS.values():
        found = entry.make(selections).match(Asked(selections, (0,), message))
        assert found == tuple(range(0, 120, 3)), entry.name
