"""Budgets of time: never more than so much in any window, however the holds are spread over it."""

from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core.budget import HoldTime

BUDGET, WINDOW = 0.1, 10.0


def test_what_was_spent_is_forgotten_when_nobody_was_held_for_a_whole_window() -> None:
    account = HoldTime()
    account.begin(0.0, WINDOW)
    assert account.left(0.04, BUDGET) == BUDGET - 0.04
    assert account.end(0.04) == 0.04
    assert not account.restored(10.03, WINDOW)
    account.begin(9.0, WINDOW)
    account.end(9.05)
    assert round(account.left(18.0, BUDGET), 9) == 0.01
    account.begin(19.06, WINDOW)
    assert account.left(19.06, BUDGET) == BUDGET
    account.end(19.07)
    assert round(account.total(20.0), 9) == 0.1


def test_a_hold_that_goes_on_is_counted_once_however_often_it_is_begun() -> None:
    account = HoldTime()
    for now in (0.0, 1.0, 2.0):
        account.begin(now, WINDOW)
    assert account.end(3.0) == 3.0
    assert account.end(4.0) == 0.0
    assert account.total(5.0) == 3.0


@given(st.lists(st.tuples(st.floats(0, 12), st.floats(0.001, 0.06)), max_size=60))
def test_no_span_as_long_as_the_window_has_more_than_the_budget(pauses: list[tuple[float, float]]) -> None:
    account, now, holds = HoldTime(), 0.0, []
    for gap, length in pauses:
        now += gap
        if not account.restored(now, WINDOW) and account.left(now, BUDGET) <= 0:
            continue
        account.begin(now, WINDOW)
        length = min(length, account.left(now, BUDGET))
        holds.append((now, now + length))
        now += length
        account.end(now)
    for _, end in holds:
        span = (end - WINDOW, end)
        held = sum(max(0.0, min(upto, span[1]) - max(since, span[0])) for since, upto in holds)
        assert held <= BUDGET + 1e-9
