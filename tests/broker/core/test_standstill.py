"""What a standstill does to times: those of peers stand still with it, and those of messages and sessions go on."""

from fanlight_broker.core.standstill import PUT_OFF_MOST, Standstills
from fanlight_broker.wire.ledger import Ledger


def noted(*times: float, period: float = 0.25) -> tuple[Ledger, Standstills]:
    ledger = Ledger(1 << 30, lambda: None)
    standstills = Standstills(ledger)
    for time in times:
        standstills.note(time, period)
    return ledger, standstills


def test_a_tick_that_comes_late_is_a_standstill_of_its_lateness() -> None:
    ledger, _ = noted(100.0, 100.25, 107.25)
    assert ledger.standstill == 6.75
    assert ledger.awake(107.25) == 100.5


def test_whoever_notes_the_time_between_two_ticks_counts_nothing_twice() -> None:
    ledger, _ = noted(100.0, 100.25, 107.25, 107.25, 107.3, 107.5)
    assert ledger.standstill == 6.75


def test_many_short_ones_add_up_as_in_a_throttled_cgroup() -> None:
    ledger, _ = noted(*(100.0 + n for n in range(11)))
    assert ledger.standstill == 7.5


def test_the_sweep_is_put_off_until_what_has_arrived_is_read() -> None:
    _, standstills = noted(100.0, 100.25, 107.25)
    assert standstills.just_over(107.25)
    assert standstills.just_over(107.3)
    assert not standstills.just_over(107.5)


def test_a_machine_that_is_always_late_sweeps_too() -> None:
    _, standstills = noted(100.0)
    swept = 0
    for n in range(1, 101):
        standstills.note(100.0 + n, 0.25)
        swept += not standstills.just_over(100.0 + n)
    assert swept == 100 // (PUT_OFF_MOST + 1)
