"""A record index gives what a plain scan with the definition of selectors gives (kleene.py)."""

import math
from fractions import Fraction

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore import NotIndexed, RecordIndex
from matchcore.kleene import Untyped, holds, typed
from matchcore.records import ColumnOf, FrozenRecordIndex, NumberColumn, TextColumn, freeze_columns
from matchcore.selector import Attribute, Between, Matches, Selector, Source, leaves
from tests.matchcore.selectors import ATTRIBUTES, FIELDS, SELECTORS

COUNTRIES = [
    {"country": "GB", "sector": "Financials"}, {"country": "DE", "sector": "Manufacturing"},
    {"country": "FR", "sector": "Agriculturals"}, {"country": "FR", "sector": "Financials"},
    {"country": "GB", "sector": "Energies"},
]  # fmt: skip
BASES = [*((2,) * n for n in range(1, 10)), (3, 3), (10, 10, 10), (4, 3, 31), (31, 3, 4)]


def index_of(records: list[dict[str, object]] | list[dict[Attribute, object]], **options: object) -> RecordIndex:
    index = RecordIndex(**options)  # type: ignore[arg-type]
    for number, record in enumerate(records):
        assert index.append(record) == number
    return index


def scanned(selector: Selector, records: list[dict[Attribute, object]]) -> list[int]:
    return [number for number, fields in enumerate(records) if holds(selector, fields) is True]


def is_beyond_rows(selector: Selector) -> bool:
    """MATCHES, and BETWEEN a number and a text, which nobody writes: rows do not say."""
    return any(
        isinstance(test, Matches)
        or (isinstance(test, Between) and isinstance(test.low, str) is not isinstance(test.high, str))
        for test in leaves(selector)
    )


def test_the_records_of_the_literature_are_found_and_counted() -> None:
    index = index_of(COUNTRIES)  # type: ignore[arg-type]
    assert index.ids("country IN ('GB', 'FR')").tolist() == [0, 2, 3, 4]
    assert index.ids("country = 'GB' AND sector = 'Energies'").tolist() == [4]
    assert index.ids("NOT country = 'GB'").tolist() == [1, 2, 3]
    assert index.count_by("country") == {"GB": 2, "DE": 1, "FR": 2}
    assert index.count_by("country", "sector <> 'Financials'") == {"GB": 1, "DE": 1, "FR": 1}
    assert index.count() == len(index) == 5


@pytest.mark.parametrize("basis", BASES, ids=str)
@pytest.mark.parametrize("full", [True, False], ids=["full", "partial"])
def test_slices_of_every_basis_agree_with_a_scan_at_every_threshold(basis: tuple[int, ...], full: bool) -> None:
    top = math.prod(basis)
    records = [{"n": value} if full or value % 3 else {"other": 1} for value in [*range(top), *range(0, top, 7)]]
    index = index_of(records, bases={"n": basis})  # type: ignore[arg-type]
    here = [(number, record["n"]) for number, record in enumerate(records) if "n" in record]
    step = 1 if top < 100 else 13
    for threshold in {-1, *range(0, top, step), top - 1, top}:
        for operator, kept in {
            "<": lambda n, t: n < t, "<=": lambda n, t: n <= t, ">": lambda n, t: n > t, ">=": lambda n, t: n >= t,
            "=": lambda n, t: n == t, "<>": lambda n, t: n != t,
        }.items():  # fmt: skip
            wanted = [number for number, n in here if kept(n, threshold)]
            assert index.ids(f"n {operator} {threshold}").tolist() == wanted, (operator, threshold)
        for other in {0, threshold + 2, top - 1}:
            wanted = [number for number, n in here if threshold <= n <= other]
            assert index.ids(f"n BETWEEN {threshold} AND {other}").tolist() == wanted
    assert index.sum("n", "n > 0") == sum(n for _, n in here)


@given(st.lists(FIELDS, max_size=20), st.lists(SELECTORS, min_size=1, max_size=5))
def test_the_index_finds_what_a_scan_finds(records: list[dict[Attribute, object]], selectors: list[Selector]) -> None:
    index = index_of(records)
    for selector in selectors:
        wanted = scanned(selector, records)
        verified: list[int] = []

        def verify(number: int, selector: Selector = selector, verified: list[int] = verified) -> bool:
            verified.append(number)
            return holds(selector, records[number]) is True

        assert index.ids(selector, verify=verify).tolist() == wanted
        assert index.count(selector, verify=verify) == len(wanted)
        assert not verified or is_beyond_rows(selector)
        candidates = index.freeze().candidates(selector)
        assert set(wanted) <= set(candidates.ids.tolist())
        assert candidates.exact or is_beyond_rows(selector)
        assert not candidates.exact or candidates.ids.tolist() == wanted


@given(st.lists(FIELDS, max_size=20), SELECTORS, ATTRIBUTES)
def test_groups_and_sums_are_those_of_a_scan(
    records: list[dict[Attribute, object]], selector: Selector, attribute: Attribute
) -> None:
    index = index_of(records)
    found = [records[number].get(attribute) for number in scanned(selector, records)]
    groups: dict[object, int] = {}
    for value in found:
        if isinstance(value, (str, bool, int, float)) and value == value:  # NaN is absent
            key = str(value) if isinstance(value, str) else value
            groups[type(key) is bool, key] = groups.get((type(key) is bool, key), 0) + 1

    def verify(number: int) -> bool:
        return holds(selector, records[number]) is True

    counted = index.count_by(attribute, selector, verify=verify)
    if {True, False}.isdisjoint(key[1] for key in groups if key[0]):
        assert {(type(key) is bool, key): count for key, count in counted.items()} == groups
    numbers = [typed(value, 0) if isinstance(value, Untyped) else value for value in found]
    exact = [n for n in numbers if isinstance(n, (int, float)) and not isinstance(n, bool) and n == n]
    wanted = sum((Fraction(n) for n in exact), Fraction(0))
    assert index.sum(attribute, selector, verify=verify) == pytest.approx(float(wanted))


@given(st.data())
@settings(max_examples=15)
def test_rows_of_all_densities_agree_across_chunks(data: st.DataObject) -> None:
    """Arrays, bits, runs and lists, at the ends of chunks of 2^16 records."""
    records = data.draw(st.sampled_from([65_535, 65_536, 65_537, 140_000]))
    seed = numpy.random.default_rng(data.draw(st.integers(0, 1_000)))
    share = data.draw(st.sampled_from([0.00001, 0.001, 0.05, 0.5, 0.999]))
    some = seed.random(records) < share
    run = numpy.zeros(records, bool)
    first = data.draw(st.integers(0, records - 1))
    run[first : data.draw(st.integers(first, records))] = True
    numbers = seed.integers(-5, 1_000, records)
    columns = {
        Attribute(Source.HEADER, ("a",)): ColumnOf(texts=TextColumn(numpy.where(some, 0, -1), [b"x"]), present=some),
        Attribute(Source.HEADER, ("b",)): ColumnOf(booleans=run.astype(numpy.int8), present=numpy.ones(records, bool)),
        Attribute(Source.HEADER, ("n",)): ColumnOf(numbers=NumberColumn(numbers, some | run), present=some | run),
    }
    index = FrozenRecordIndex(freeze_columns(records, columns, is_complete=True))
    for where, wanted in {
        "a = 'x'": some, "a IS NULL": ~some, "b": run, "NOT b": ~run, "b OR a = 'x'": run | some,
        "b AND a = 'x'": run & some, "n < 300 AND n >= 0": (some | run) & (numbers < 300) & (numbers >= 0),
        "AT LEAST 2 OF (a = 'x', b, n > 500)": some.astype(int) + run + ((some | run) & (numbers > 500)) >= 2,
        "NOT (n <> -5)": (some | run) & (numbers == -5),
    }.items():  # fmt: skip
        assert index.ids(where).tolist() == numpy.flatnonzero(wanted).tolist(), where
        assert index.count(where) == wanted.sum(), where
        assert index.sum("n", where) == numbers[wanted & (some | run)].sum()
        assert sum(index.count_by("n", where).values()) == (wanted & (some | run)).sum()


def test_a_test_that_rows_cannot_answer_is_refused_or_verified() -> None:
    records: list[dict[str, object]] = [{"id": f"order-{number}", "price": number} for number in range(20)]
    index = index_of(records, texts_max=10)
    with pytest.raises(NotIndexed, match="id LIKE 'order-1%': the index has no rows that answer this; pass verify="):
        index.ids("price > 3 AND id LIKE 'order-1%'")
    asked: list[int] = []

    def verify(number: int) -> bool:
        asked.append(number)
        return str(records[number]["id"]).startswith("order-1")

    assert index.ids("price > 15 AND id LIKE 'order-1%'", verify=verify).tolist() == [16, 17, 18, 19]
    assert asked == [16, 17, 18, 19]  # and no record that the rows had ruled out
    assert index.count("price > 5 AND id LIKE 'order-1%'", verify=verify) == 10
    assert index.sum("price", "price > 17 AND id LIKE 'order-1%'", verify=verify) == 37
    with pytest.raises(NotIndexed):
        index.count_by("id")
    assert index.count("id IS NOT NULL") == 20


def test_a_value_outside_of_its_basis_is_refused() -> None:
    index = index_of([{"n": 9}], bases={"n": (3, 3)})
    with pytest.raises(ValueError, match="no integer from 0 to 8"):
        index.count()
    with pytest.raises(ValueError, match="each at least 2"):
        RecordIndex(bases={"n": (1,)})


def test_numbers_are_compared_exactly_and_summed_without_rounding_between() -> None:
    index = index_of([{"n": 2**53}, {"n": 2**53 + 1}, {"n": float(2**53)}, {"n": 0.1}, {"n": -(2**63)}, {"n": 2**70}])
    assert index.ids(f"n = {2**53 + 1}").tolist() == [1]
    assert index.ids(f"n <= {2**53}").tolist() == [0, 2, 3, 4]
    prices = index_of([{"n": 0.1}, {"n": 0.2}, {"n": 1}, {"n": 2.55}])
    assert prices.sum("n") == 3.85
    assert prices.ids("n > 0.1 AND n < 2.550001").tolist() == [1, 2, 3]
    assert prices.ids("n = 0.2").tolist() == [1]
