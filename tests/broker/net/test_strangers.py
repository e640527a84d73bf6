"""Connections that end without a login: how many an address may make, and who is refused because of it."""

import pytest

from fanlight_broker.core.limits import Limits
from fanlight_broker.net import strangers as module
from fanlight_broker.net.admission import Admission
from fanlight_broker.net.strangers import BURST_SECONDS, LOG_SECONDS, OWED_SECONDS_MAX, Strangers

RATE = 10
LIMITS = Limits(connections_without_login_per_second_max=RATE)
ONE, OTHER = "192.0.2.1", "192.0.2.2"
FREE = int(RATE * BURST_SECONDS)


def after(count: int, address: str = ONE) -> Strangers:
    """So many connections of an address have ended at 0 s."""
    strangers = Strangers()
    for _ in range(count):
        strangers.note(address, LIMITS, 0)
    return strangers


def test_the_address_alone_is_refused_until_it_is_paid() -> None:
    strangers = after(FREE + 5)
    assert "connections_without_login_per_second_max" in (strangers.refusal(ONE, LIMITS, 0) or "")
    assert strangers.refusal(OTHER, LIMITS, 0) is None
    assert strangers.refusal(ONE, LIMITS, 0.59) is not None
    assert strangers.refusal(ONE, LIMITS, 0.61) is None
    assert strangers.refused == 2


def test_some_may_come_at_once() -> None:
    assert after(FREE - 1).refusal(ONE, LIMITS, 0) is None
    assert after(FREE).refusal(ONE, LIMITS, 0) is not None


def test_what_was_opened_at_once_is_owed_for_some_time_at_most() -> None:
    strangers = after(FREE + int(3 * OWED_SECONDS_MAX * RATE))
    assert strangers.refusal(ONE, LIMITS, OWED_SECONDS_MAX - 1) is not None
    assert strangers.refusal(ONE, LIMITS, OWED_SECONDS_MAX + 1) is None


def test_an_address_of_ipv6_is_its_network() -> None:
    strangers = after(FREE, "2001:db8::1")
    assert strangers.refusal("2001:db8::ffff", LIMITS, 0) is not None
    assert strangers.refusal("2001:db8:0:1::1", LIMITS, 0) is None


def test_a_connection_that_a_proxy_has_not_named_is_nobodys() -> None:
    strangers = after(FREE, "")
    assert strangers.refusal("", LIMITS, 0) is None
    assert len(strangers) == 0


def test_a_limit_of_0_and_another_limit_are_in_force_at_once() -> None:
    strangers = after(FREE + RATE)
    assert strangers.refusal(ONE, Limits(connections_without_login_per_second_max=0), 0) is None
    strangers.note(ONE, Limits(connections_without_login_per_second_max=1_000), 0)
    assert strangers.refusal(ONE, Limits(connections_without_login_per_second_max=1_000), 0.02) is None


def test_who_has_paid_is_forgotten_and_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    strangers = after(1)
    strangers.note(OTHER, LIMITS, 1)
    assert len(strangers) == 1
    monkeypatch.setattr(module, "ADDRESSES_MAX", 3)
    for number in range(10):
        strangers.note(f"198.51.100.{number}", LIMITS, 1)
    assert len(strangers) == 3


def test_the_log_has_a_line_an_address_and_period(caplog: pytest.LogCaptureFixture) -> None:
    strangers = after(FREE + int(LOG_SECONDS * RATE))

    def said(now: float) -> int:
        while strangers.refusal(ONE, LIMITS, now) is None:
            strangers.note(ONE, LIMITS, now)
        strangers.refusal(ONE, LIMITS, now)
        return sum("strangers_refused" in record.getMessage() for record in caplog.records)

    assert [said(0), said(LOG_SECONDS - 1), said(LOG_SECONDS + 1)] == [1, 1, 2]


def test_listeners_with_bounds_of_their_own_share_one_count() -> None:
    whole = Admission()
    assert whole.within(5, "five").strangers is whole.strangers
