"""The histogram of latencies: quantiles to 0.8 %, and two are one when they are merged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.load.histogram import Histogram

TIMES = st.lists(st.integers(0, 2**40 - 1), min_size=1)


def histogram(times: list[int]) -> Histogram:
    made = Histogram()
    for ns in times:
        made.record(ns)
    return made


@given(TIMES, st.floats(0, 0.999))
def test_a_quantile_is_exact_to_a_step(times: list[int], share: float) -> None:
    exact = sorted(times)[int(share * len(times))]
    found = histogram(times).quantile(share)
    assert exact <= found <= exact * (1 + 1 / 128) + 1


@given(TIMES, TIMES)
def test_merging_is_recording_both(first: list[int], second: list[int]) -> None:
    merged = histogram(first)
    merged.merge(histogram(second))
    both = histogram(first + second)
    assert (merged.steps(), merged.total, merged.highest) == (both.steps(), both.total, both.highest)


@given(TIMES)
def test_a_histogram_is_made_again_from_its_steps(times: list[int]) -> None:
    made = histogram(times)
    again = Histogram.of(made.steps(), made.highest)
    assert (again.steps(), again.total, again.highest) == (made.steps(), made.total, made.highest)


def test_a_time_beyond_all_steps_is_counted_in_the_last_and_is_the_highest() -> None:
    made = histogram([2**62])
    assert made.total == 1
    assert made.highest == 2**62
    assert made.quantile(0.5) >= 2**40 - 1


def test_an_empty_histogram_has_no_quantile() -> None:
    made = histogram([5])
    made.clear()
    assert (made.total, made.highest, made.steps(), made.quantile(0.99)) == (0, 0, [], 0)


def test_a_step_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="step 4352"):
        Histogram.of([(4352, 1)], 1)
