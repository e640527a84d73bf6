"""Logins by cookie: how long they last."""

import pytest

from fanlight_broker.admin.api.logins import IDLE_SECONDS, Logins
from fanlight_broker.core.identity import Identity


class Clocks:
    """now: of the loop; wall: seconds since 1970."""

    now = 5.0
    wall = 1_800_000_000.0

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def logins(clocks: Clocks) -> Logins:
    return Logins(lambda identity: True, lambda: clocks.now, lambda: clocks.wall)


def test_a_login_ends_when_its_token_expires(logins: Logins, clocks: Clocks) -> None:
    secret, login = logins.begin(Identity("anna", expires=clocks.wall + 60))
    assert logins.seconds_left(login) == 60
    clocks.pass_by(59)
    assert logins.find(secret) is login
    assert logins.seconds_left(login) == 1
    clocks.pass_by(1)
    assert logins.find(secret) is None
    assert len(logins) == 0


def test_expired_logins_make_room_for_others(logins: Logins, clocks: Clocks) -> None:
    logins.begin(Identity("anna", expires=clocks.wall + 60))
    clocks.pass_by(60)
    logins.begin(Identity("bert"))
    assert len(logins) == 1


def test_without_an_end_of_its_credentials_a_login_ends_when_nobody_uses_it(logins: Logins, clocks: Clocks) -> None:
    secret, login = logins.begin(Identity("anna", expires=clocks.wall + 10 * IDLE_SECONDS))
    assert logins.seconds_left(login) == IDLE_SECONDS
    clocks.pass_by(IDLE_SECONDS - 1)
    assert logins.find(secret) is login
    clocks.pass_by(IDLE_SECONDS)
    assert logins.find(secret) is None
