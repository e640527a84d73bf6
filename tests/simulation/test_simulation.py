"""Promises hold whatever happens to connections and time: 20 seeds here, `make simulate` for more."""

import pytest

from fanlight_broker.core.sessions import Sessions
from fanlight_broker.core.subscriber import Client, Session
from fanlight_broker.wire.tag_set import TagSet
from tests.simulation.history import Violation
from tests.simulation.simulation import Simulation


@pytest.mark.parametrize("seed", range(20))
def test_what_is_acknowledged_arrives_in_order_and_with_qos_2_once(seed: int) -> None:
    Simulation(seed).run()


def test_a_seed_happens_again_in_the_same_way() -> None:
    first, second = Simulation(7), Simulation(7)
    assert first.run() == second.run()
    assert (first.events, first.cuts) == (second.events, second.cuts)
    assert first.history.sent == second.history.sent
    assert first.history.followed == second.history.followed


def broken_promise() -> str:
    """Of the first seed that finds one."""
    for seed in range(200):
        try:
            Simulation(seed).run()
        except Violation as violation:
            return str(violation)
    return "none"


def test_it_notices_a_broker_that_forgets_identifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    def receive(self: Session, identifier: int) -> bool:
        return identifier not in TagSet(self.pot)

    monkeypatch.setattr(Session, "receive", receive)
    assert "2 times with QoS 2" in broken_promise()


def test_it_notices_a_broker_that_forgets_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    leave = Sessions.leave

    def end(self: Sessions, client: Client, now: float, *, will: bool, expiry: float | None = None) -> None:
        leave(self, client, now, will=will, expiry=0.0)

    monkeypatch.setattr(Sessions, "leave", end)
    assert "has forgotten the session" in broken_promise()


def test_it_notices_a_broker_that_drops_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.process.LIMITS", {"queue_messages_max": 2, "queue_policy": "drop_oldest"})
    assert "never got" in broken_promise()
