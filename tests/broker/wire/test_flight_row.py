"""A row of flights against a deque, which it is used like."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.wire.allocator import blocks_in_use
from fanlight_broker.wire.flight import Flight
from fanlight_broker.wire.flight_row import FlightRow

STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "append", "appendleft", "popleft", "rotate"]), st.integers(-300, 300)),
    max_size=60,
)


@settings(max_examples=140, deadline=None)
@given(STEPS)
def test_a_row_is_a_deque(steps: list[tuple[str, int]]) -> None:
    before = blocks_in_use()
    row, oracle = FlightRow(), deque[Flight]()
    for what, count in steps:
        if what == "rotate":
            row.rotate(count)
            oracle.rotate(count)
        for _ in range(abs(count) // 4 + 1):
            if what in ("append", "appendleft"):
                flight = Flight()
                getattr(row, what)(flight)
                getattr(oracle, what)(flight)
            elif what == "popleft" and oracle:
                assert row.popleft() is oracle.popleft()
        assert len(row) == len(oracle)
        assert list(row) == list(oracle)
        assert not oracle or (row[0], row[len(oracle) - 1]) == (oracle[0], oracle[-1])
    del row
    assert blocks_in_use() == before


def test_an_empty_row_has_nothing() -> None:
    row = FlightRow()
    row.rotate(1)
    with pytest.raises(IndexError):
        row.popleft()
    with pytest.raises(IndexError):
        row[0]
    assert list(row) == []
