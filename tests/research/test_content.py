"""Every contender of fanlight_content against the interpreter: the same selectors and messages, the same answers."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_bench.micro import screens
from fanlight_content.registry import CONTENDERS, Asking
from fanlight_content.selections import CONJUNCTIONS_AT_MOST, Asked, Selections, conjunctions_of
from matchcore import normal_form
from matchcore.kleene import Untyped, holds
from matchcore.selector import Attribute, Selector, Source
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS

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


def contests_of(selections: Selections) -> dict[str, Asking]:
    """Filled, and without the shortcut for filters of few selectors, which all would answer alike."""
    return {entry.name: entry.make(selections, few_in_a_row=False) for entry in CONTENDERS.values()}


SLOTS = st.sampled_from([(), (0,), (2,), (1, 3), (0, 4), (7,)])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), SELECTORS), max_size=40),
    st.lists(st.tuples(SLOTS, FIELDS), min_size=1, max_size=5),
)
def test_all_answer_as_the_interpreter_does(held: Held, messages: list[tuple[tuple[int, ...], Message]]) -> None:
    selections = compiled(held)
    contests = contests_of(selections)
    for slots, message in messages:
        answer = expected(held, slots, message)
        for name, contest in contests.items():
            assert contest.match(Asked(selections, slots, message)) == answer, name


WORKLOADS = {"two conditions": screens.two_conditions, **screens.ADVERSARIAL}


@pytest.mark.parametrize("name", WORKLOADS)
def test_all_find_what_the_interpreter_finds_in_a_workload(name: str) -> None:
    """More selectors than hypothesis would make: directories that split, rows of several words."""
    dice = random.Random(3)
    count = 60 if name.startswith("64") else 900
    held = [(dice.choice((0, 0, 0, 1, 3)), WORKLOADS[name](dice)) for _ in range(count)]
    selections = compiled(held)
    contests = contests_of(selections)
    messages = [((0,), screens.message(dice)), ((0, 3), screens.message(dice)), ((1,), screens.message(dice))]
    asked = [Asked(selections, slots, message) for slots, message in messages]
    answers = [expected(held, slots, message) for slots, message in messages]
    for contender, contest in contests.items():
        assert [contest.match(one) for one in asked] == answers, contender
        assert contest.ask(asked, 2) == 2 * sum(map(len, answers)), contender
        assert contest.nbytes > 0


def test_numbers_at_the_edges_and_text_without_a_type() -> None:
    """Values that two criteria take for the same one, and values that are met by two hashes."""
    texts = [
        "a = 9007199254740993", "a = 9007199254740992.0", "a > 9007199254740992", "a <= 9007199254740992", "a = '12'",
        "a IN (12, '12')", "a IN (12, '12') AND b = 1", "a = 12 AND b = 1", "a BETWEEN 12 AND 12", "a < -0.0", "a = 0",
        "a IS NULL", "a IS NULL AND b = 1", "a = 12 AND a IS NOT NULL AND a <> 13", "a = TRUE", "a IN ('true', TRUE)",
        "TRUE", "FALSE", "AT LEAST 2 OF (a = 12, b = 1, c LIKE 'x%')", "a = 12 AND a = '12'", "b > 0 AND b < 2",
    ] * 2  # fmt: skip
    held = [(0, parse_where(text)) for text in texts]
    selections = compiled(held)
    contests = contests_of(selections)
    header = {name: Attribute(Source.HEADER, (name,)) for name in "abc"}
    values: list[object] = [
        2**53, 2**53 + 1, float(2**53), 12, 12.0, Untyped("12"), Untyped("true"), "12", "true", True, 0, -0.0, None,
        float("inf"), float("nan"), -(2**63), 2**64, b"12",
    ]  # fmt: skip
    for value in values:
        for message in ({header["a"]: value}, {header["a"]: value, header["b"]: 1, header["c"]: "xy"}):
            answer = expected(held, (0,), message)
            for name, contest in contests.items():
                assert contest.match(Asked(selections, (0,), message)) == answer, (name, value)


@settings(max_examples=200, deadline=None)
@given(SELECTORS, FIELDS)
def test_what_is_written_out_holds_where_the_selector_does(selector: Selector, message: Message) -> None:
    conjunctions = conjunctions_of(selector)
    if conjunctions is None:
        return
    assert len(conjunctions) <= CONJUNCTIONS_AT_MOST
    written = normal_form.AnyOf(tuple(normal_form.AllOf(tuple(leaves)) for leaves in conjunctions))

    def is_true(leaf: normal_form.Leaf) -> bool:
        return holds(leaf.test, message) is (not leaf.negated)

    assert normal_form.holds(written, is_true) is (holds(selector, message) is True)


def test_a_selector_of_too_many_conjunctions_is_not_written_out() -> None:
    pairs = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(7))
    assert conjunctions_of(parse_where(pairs)) is None
    selections = compiled([(0, parse_where(pairs))] * 40)
    message: Message = {Attribute(Source.HEADER, (f"a{i}",)): 1 for i in range(7)}
    for name, contest in contests_of(selections).items():
        assert contest.match(Asked(selections, (0,), message)) == tuple(range(0, 120, 3)), name


def test_filters_of_few_selectors_have_them_in_a_row_and_answer_the_same() -> None:
    held = [(at % 5, parse_where(f"a = {at % 3}")) for at in range(60)]
    selections = compiled(held)
    message: Message = {Attribute(Source.HEADER, ("a",)): 1}
    for entry in CONTENDERS.values():
        assert entry.make(selections).match(Asked(selections, (2, 4), message)) == expected(held, (2, 4), message)
