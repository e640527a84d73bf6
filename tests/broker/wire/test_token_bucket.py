"""How fast one principal may go (wire/token_bucket.pyx), against two buckets in fractions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.wire.token_bucket import TokenBucket

NUMBERS = st.integers(1, 1_000)
STEPS = st.lists(st.tuples(st.integers(0, 64), st.integers(0, 2_000)), max_size=40)  # eighths of a second, octets


class Buckets:
    """The oracle: tokens as fractions, filled at each look."""

    def __init__(self, messages: int, octets: int, burst: Fraction) -> None:
        self.rates = (Fraction(messages), Fraction(octets))
        self.bursts = tuple(max(Fraction(1), rate * burst) for rate in self.rates)
        self.tokens = list(self.bursts)

    def pass_time(self, seconds: Fraction) -> None:
        self.tokens = [
            min(tokens + seconds * rate, burst)
            for tokens, rate, burst in zip(self.tokens, self.rates, self.bursts, strict=True)
        ]

    def owes(self) -> bool:
        return self.tokens[0] < 1 or self.tokens[1] < 1

    def take(self, octets: int) -> None:
        self.tokens[0] -= 1
        self.tokens[1] -= octets


@given(NUMBERS, NUMBERS, st.sampled_from([1, 2, 8]), STEPS)
def test_a_pace_is_two_buckets_that_may_owe(
    messages: int, octets: int, burst: int, steps: list[tuple[int, int]]
) -> None:
    # Powers of two in time, so that both sides are exact.
    pace, oracle, now = TokenBucket(messages, octets, burst=burst), Buckets(messages, octets, Fraction(burst)), 0.0
    for eighths, size in steps:
        now += eighths / 8
        oracle.pass_time(Fraction(eighths, 8))
        assert pace.owes_now(now) == oracle.owes()
        assert (pace.seconds(now) == 0) == (not oracle.owes())
        assert pace.owed(now) == tuple(max(0, -tokens) for tokens in oracle.tokens)
        if not oracle.owes():
            assert pace.room(now) == int(oracle.tokens[0])
            pace.take(1, size, now)
            oracle.take(size)
    assert pace.refused == 0


@given(NUMBERS, NUMBERS, st.lists(st.integers(0, 5_000), min_size=1, max_size=40))
def test_what_is_owed_is_paid_when_it_says_and_not_before(messages: int, octets: int, sizes: list[int]) -> None:
    pace, now = TokenBucket(messages, octets), 0.0
    for size in sizes:
        wait = pace.seconds(now)
        if wait > 1e-6:
            assert pace.owes_now(now + wait * 0.999)
        now += wait * 1.000_001 + 1e-9
        assert not pace.owes_now(now)
        pace.take(1, size, now)
    assert pace.spent == len(sizes)
    now += pace.full_in(now) * 1.000_001
    assert pace.full_in(now) == pytest.approx(0, abs=1e-6)


def test_without_a_rate_nothing_is_ever_owed() -> None:
    pace = TokenBucket()
    pace.take(10**9, 10**15, 0.0)
    assert not pace.owes_now(0.0)
    assert pace.seconds(0.0) == pace.full_in(0.0) == 0
    assert pace.room(0.0) == 1_000_000


def test_other_rates_hold_from_then_on_and_what_is_owed_stays_owed() -> None:
    pace = TokenBucket(messages=10)
    pace.take(30, 0, 0.0)
    pace.limit(100, 0)
    assert pace.seconds(0.0) == pytest.approx(0.21)
    pace.limit(0, 0)
    assert not pace.owes_now(0.0)
    pace.limit(10, 0)
    assert pace.room(0.0) == 10


def test_only_a_pace_that_refuses_counts_refusals() -> None:
    for refusing in (False, True):
        pace = TokenBucket(1, refusing=refusing)
        pace.take(1, 0, 0.0)
        assert pace.owes_now(0.0)
        assert pace.refused == refusing


@pytest.mark.parametrize(("messages", "octets", "burst"), [(-1, 0, 1), (0, -1, 1), (1, 1, 0), (float("nan"), 0, 1)])
def test_rates_that_are_none_are_refused(messages: float, octets: float, burst: float) -> None:
    with pytest.raises(ValueError, match="a second"):
        TokenBucket(messages, octets, burst=burst)
