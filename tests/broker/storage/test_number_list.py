"""A list of numbers is a plain list of (number, slot, bytes), in a few bytes."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.storage.number_list import NumberList

GAPS = st.one_of(st.just(1), st.integers(1, 3), st.integers(1, 1 << 20), st.integers(1, 1 << 40))
ADDED = st.tuples(st.just("add"), GAPS, st.integers(1, 2))
REPEATED = st.tuples(st.just("run"), st.integers(1, 1_500), st.integers(1, 2))
TAKEN = st.tuples(st.just("take"), st.integers(1, 900), st.just(0))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(ADDED, ADDED, REPEATED, TAKEN), max_size=40))
def test_it_is_a_list(steps: list[tuple[str, int, int]]) -> None:
    numbers, plain, last = NumberList(), [], 0
    added = removed = 0
    for what, amount, slot in steps:
        if what == "take":
            assert numbers.first(amount) == [(number, slot) for number, slot in plain[:amount]]
            removed += numbers.remove_first(amount)
            del plain[:amount]
        else:
            for _ in range(amount if what == "run" else 1):
                last += amount if what == "add" else 1
                numbers.append(last, slot, last % 7)
                plain.append((last, slot))
                added += last % 7
        assert len(numbers) == len(plain)
        assert numbers.nbytes == added - removed
    assert numbers.first(1 << 30) == plain
    assert removed + numbers.remove_first(1 << 30) == added
    assert (len(numbers), numbers.nbytes, numbers.memory) == (0, 0, 0)


def test_numbers_rise() -> None:
    numbers = NumberList()
    numbers.append(5, 1, 10)
    for number in (0, 4, 5):
        with pytest.raises(ValueError, match=f"number {number} is not behind 5"):
            numbers.append(number, 1, 10)


def test_one_of_a_thousand_takes_three_bytes_and_a_run_none() -> None:
    spread, run = NumberList(), NumberList()
    for n in range(100_000):
        spread.append(1 + 1_000 * n, 1, 256)
        run.append(1 + n, 1, 256)
    assert spread.memory < 300_000
    assert run.memory < 20_000


def test_whole_blocks_expire() -> None:
    numbers = NumberList()
    for n in range(1, 2_049):
        numbers.append(n, 1, 1, 10.0 if n < 1_500 else 20.0)
    assert [numbers.expired(now) for now in (9.0, 10.0, 19.0, 20.0)] == [0, 1_024, 1_024, 2_048]
    numbers.append(5_000, 1, 1, inf)
    numbers.remove_first(1_024)
    assert numbers.expired(20.0) == 1_024
