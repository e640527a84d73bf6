"""The names that selectors ask for, by number; and how the values of fields are compared."""

import gc
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchcore.compilation import _holds, _like_steps
from matchcore.fields import Attributes, Fields
from matchcore.kleene import Untyped, attribute_of, holds
from matchcore.selector import And, AtLeast, Attribute, Between, Compare, In, Like, Or, Present, Selector, Source
from matchcore.values import _number_of
from matchcore.where import parse_where
from tests.matchcore.selectors import ATTRIBUTES, FIELDS, SELECTORS

A = Attribute(Source.HEADER, ("a",))


def test_an_attribute_has_one_number_while_somebody_holds_it() -> None:
    attributes = Attributes()
    assert attributes.number(A) == -1
    number = attributes.acquire(A)
    assert attributes.acquire(A) == attributes.number(A) == number
    assert attributes.attribute(number) == A
    attributes.release(number)
    assert attributes.number(A) == number
    attributes.release(number)
    assert (attributes.number(A), attributes.count) == (-1, 0)


def test_numbers_are_used_again() -> None:
    attributes = Attributes()
    numbers = [attributes.acquire(Attribute(Source.HEADER, (f"name {i}",))) for i in range(100)]
    assert sorted(numbers) == list(range(100))
    for number in numbers[10:20]:
        attributes.release(number)
    again = [attributes.acquire(Attribute(Source.PAYLOAD, ("a", f"name {i}"))) for i in range(10)]
    assert sorted(again) == sorted(numbers[10:20])
    assert (attributes.count, attributes.room) == (100, 100)


def test_what_nobody_holds_any_more_takes_no_memory() -> None:
    attributes = Attributes()
    sizes = []
    for _ in range(3):
        numbers = [attributes.acquire(Attribute(Source.PAYLOAD, ("deep", f"{i}", "x" * 50))) for i in range(500)]
        sizes.append(attributes.nbytes)
        for number in numbers:
            attributes.release(number)
    assert sizes[0] == sizes[1] == sizes[2]
    assert attributes.nbytes < sizes[0] / 2


def test_names_of_other_sizes_take_the_place_of_those_that_are_gone() -> None:
    """Nobody can make the names that are free larger than those in use, by asking for longer and longer ones."""
    attributes = Attributes()
    kept = {attributes.acquire(Attribute(Source.HEADER, (f"kept {i}",))): f"kept {i}" for i in range(50)}
    sizes = []
    for size in range(30, 250, 4):
        numbers = [attributes.acquire(Attribute(Source.HEADER, (f"{i}" + "x" * size,))) for i in range(1_000)]
        for number in numbers:
            attributes.release(number)
        sizes.append(attributes.nbytes)
    assert max(sizes) < 900_000
    for number, name in kept.items():
        assert attributes.attribute(number) == Attribute(Source.HEADER, (name,))
        assert attributes.number(Attribute(Source.HEADER, (name,))) == number


@given(st.lists(ATTRIBUTES, max_size=20))
def test_a_number_says_which_attribute_it_is(wanted: list[Attribute]) -> None:
    attributes = Attributes()
    numbers = {attribute: attributes.acquire(attribute) for attribute in wanted}
    assert len(set(numbers.values())) == len(numbers) == attributes.count
    for attribute, number in numbers.items():
        assert attributes.number(attribute) == number
        assert attributes.attribute(number) == attribute


def test_a_number_that_nobody_holds_is_refused() -> None:
    attributes = Attributes()
    for number in (-1, 0, 2**31):
        with pytest.raises(ValueError, match="no attribute"):
            attributes.release(number)
    number = attributes.acquire(A)
    attributes.release(number)
    for refused in (attributes.release, attributes.attribute):
        with pytest.raises(ValueError, match="no attribute"):
            refused(number)
    with pytest.raises(ValueError, match="a name at least"):
        attributes.acquire(Attribute(Source.HEADER, ()))


def test_there_are_so_many_numbers_and_no_more() -> None:
    attributes = Attributes()
    for i in range(65_535):
        attributes.acquire(Attribute(Source.HEADER, (str(i),)))
    with pytest.raises(OverflowError, match="65,535"):
        attributes.acquire(A)
    assert attributes.number(A) == -1
    attributes.release(7)
    assert attributes.acquire(A) == 7


def test_memory_that_runs_out_leaves_the_attributes_as_they_were() -> None:
    attributes = Attributes()
    failures = 0
    for i in range(300):
        attribute = Attribute(Source.PAYLOAD, (f"map {i % 7}", f"field {i}"))
        for allowed in range(10):
            attributes._fail_after(allowed)
            try:
                attributes.acquire(attribute)
                break
            except MemoryError:
                failures += 1
                assert attributes.number(attribute) == -1
                assert attributes.count == i
    attributes._fail_after(0)
    for number in range(300):
        attributes.release(number)
    assert attributes.count == 0
    assert failures > 20


def test_fields_grow_with_the_attributes_and_keep_what_is_set() -> None:
    attributes = Attributes()
    several = [Fields(attributes) for _ in range(3)]
    sizes = [fields.nbytes for fields in several]
    del several[1]
    gc.collect()
    for i in range(1_000):
        attributes.acquire(Attribute(Source.HEADER, (str(i),)))
    assert all(fields.nbytes > sizes[0] for fields in several)
    assert len({fields.nbytes for fields in [*several, Fields(attributes)]}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "1", "-1", "+7", "007", "-0", "0.5", ".5", "5.", "1e3", "1E-3", "-1.5e+2", "9223372036854775807",
        "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "9" * 40, "0" * 50 + "1",
        "1e308", "1e309", "-1e400", "1e-400", "1e99999999999", "0.1", "123456789.123456789", "9007199254740993.0",
        "0." + "1" * 400, "1" * 400 + ".5", "4.35", "2.2250738585072014e-308", "8.41e21", "1e22", "1e23",
        "", "+", "-", ".", "e5", "1e", "1e+", "1 ", " 1", "1_0", "0x10", "inf", "nan", "1.2.3", "--1", "\u0661",
    ],
)  # fmt: skip
def test_a_text_without_a_type_is_the_number_that_the_definition_reads(text: str) -> None:
    number = _number_of(text.encode())
    for wanted in (0, 1.5, 2**62):
        for operator in ("<", "=", ">"):
            selector = Compare(A, operator, wanted)
            expected = holds(selector, {"a": Untyped(text)})
            assert _holds(selector, {"a": Untyped(text)}) is (expected is True)
            if expected is None:
                assert number is None
    if number is not None:
        assert holds(Compare(A, "=", number), {"a": Untyped(text)}) is True
        assert type(number) is (int if text.lstrip("+-").isdigit() else float)


@given(st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.decimals(allow_nan=False).map(str))
def test_a_spelled_float_is_the_nearest_one(text: str) -> None:
    number = _number_of(text.encode())
    if ("." in text or "e" in text) and math.isfinite(float(text)):
        assert number == float(text)


@given(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
def test_integers_and_floats_are_compared_exactly(integer: int, number: float, operator: str) -> None:
    near = float(integer)
    for one in (number, near):
        if abs(one) != float("inf"):
            assert _holds(Compare(A, operator, one), {"a": integer}) is holds(Compare(A, operator, one), {"a": integer})
            assert _holds(In(A, (one,)), {"a": integer}) is holds(In(A, (one,)), {"a": integer})
        assert _holds(Compare(A, operator, integer), {"a": one}) is holds(Compare(A, operator, integer), {"a": one})


def test_an_integer_beyond_64_bits_is_the_nearest_float() -> None:
    assert _holds(parse_where("a > 9223372036854775807"), {"a": 2**64})
    assert _holds(parse_where("a = 18446744073709551616.0"), {"a": 2**64})
    assert _holds(parse_where("a > 1e308"), {"a": 10**400})
    assert _holds(parse_where("a < -1e308"), {"a": -(10**400)})


# Programs

@given(SELECTORS, FIELDS)
def test_a_program_holds_where_the_definition_says_true(selector: Selector, fields: dict[Attribute, object]) -> None:
    assert _holds(selector, fields) is (holds(selector, fields) is True)


MANY = [attribute_of(name) for name in "abcdefg"]


@given(st.data())
def test_hits_are_counted(data: st.DataObject) -> None:
    """AT LEAST inside AT LEAST: each counts for itself."""
    def hits(depth: int) -> Selector:
        if depth == 0:
            return Present(data.draw(st.sampled_from(MANY)))
        parts = tuple(hits(depth - 1) for _ in range(data.draw(st.integers(3, 4))))
        return AtLeast(data.draw(st.integers(1, len(parts))), parts)

    selector = hits(data.draw(st.integers(1, 2)))
    fields = dict.fromkeys(data.draw(st.sets(st.sampled_from("abcdefg"))), 1)
    assert _holds(selector, fields) is (holds(selector, fields) is True)


@pytest.mark.parametrize(
    "values",
    [(1, 2.5, "x", True), (1, 2, 3, 4, 5), tuple("abcdefgh"), (0.5, 1e300, -3.0), (True, False), (2.0**53, 2**53 + 1)],
)
@pytest.mark.parametrize("negated", [False, True])
def test_in_finds_each_of_its_values(values: tuple[bool | int | float | str, ...], negated: bool) -> None:
    selector = parse_where(f"{'NOT ' if negated else ''}({In(A, values)})")
    found = [*values, 0, 6, 2.5, 1e301, "", "ab", "zz", True, False, b"x", None, 2**53, Untyped("1"), Untyped("true")]
    for value in found:
        assert _holds(selector, {"a": value}) is (holds(selector, {"a": value}) is True), value


def test_64_tests_are_compiled_and_not_65() -> None:
    parts = tuple(Compare(A, "=", i) for i in range(65))
    assert _holds(Or(parts[:64]), {"a": 63})
    assert not _holds(And(parts[:64]), {"a": 63})
    assert _holds(And(tuple(Between(A, 0, i) for i in range(64))), {"a": 0})
    assert _holds(parse_where(f"NOT ({Or(tuple(Between(A, 1, i) for i in range(64)))})"), {"a": 0})
    with pytest.raises(ValueError, match="65 tests"):
        _holds(Or(parts), {"a": 1})


@pytest.mark.parametrize("value", [2**63, float("inf"), float("nan"), None, b"x"])
def test_a_value_that_no_attribute_can_have_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"a selector compares|more than 64 bits"):
        _holds(Compare(A, "=", value), {"a": 1})  # type: ignore[arg-type]


# LIKE

TEXT = st.text("abé%_", max_size=12)


@given(TEXT, st.text("abé%_", max_size=8))
def test_like_is_what_the_definition_says(text: str, pattern: str) -> None:
    like = Like(A, pattern)
    assert _like_steps(text.encode(), like)[0] is holds(like, {"a": text})
    assert _holds(like, {"a": text}) is holds(like, {"a": text})


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("%a%b%", "a" * 5_000), ("%a_b%", "a" * 5_000), ("%" + "a%" * 40 + "b", "a" * 5_000),
        ("%" + "a" * 30 + "b%", "a" * 5_000), ("_%" * 30 + "b", "a" * 5_000), ("%é_b%", "é" * 3_000),
        ("%_a", "b" * 5_000), ("%" + "_" * 40 + "x", "y" * 5_000), ("%" + "ab" * 20 + "c", "ab" * 2_000),
    ],
)  # fmt: skip
def test_like_takes_no_more_steps_than_characters_times_pattern(pattern: str, text: str) -> None:
    held, steps = _like_steps(text.encode(), Like(A, pattern))
    assert not held
    assert 0 < steps <= (len(text.encode()) + 1) * (len(pattern.encode()) + 1)


def test_like_of_several_wildcards_does_not_go_back_to_the_first() -> None:
    """Twice the text is twice the steps, however many `%` there are: backtracking would be the 20th power."""
    pattern = Like(A, "%a" * 20 + "%b")
    steps = [_like_steps(b"a" * size, pattern)[1] for size in (2_000, 4_000, 8_000)]
    assert steps[1] <= 2.1 * steps[0]
    assert steps[2] <= 2.1 * steps[1]


def test_like_of_bytes_that_are_no_text_ends() -> None:
    for text in (b"\x80\x80", b"a\xff", b"\xc3", b"\xf0\x9f"):
        for pattern in ("_", "__", "%_", "_%", "a_", "%a%"):
            held, steps = _like_steps(text, Like(A, pattern))
            assert isinstance(held, bool)
            assert steps < 100
