"""Promises hold whatever happens to connections and time: 20 seeds here, `make simulate` for more."""

from pathlib import Path

import pytest

from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.sessions import Sessions
from fanlight_broker.core.subscriber import Client, Session
from fanlight_broker.storage import recovery
from fanlight_broker.wire.tag_set import TagSet
from tests.simulation.history import Violation
from tests.simulation.selecting import NEVER
from tests.simulation.simulation import Simulation


@pytest.mark.parametrize("seed", range(20))
def test_what_is_acknowledged_arrives_in_order_and_with_qos_2_once(seed: int, tmp_path: Path) -> None:
    Simulation(seed, tmp_path).run()


def test_a_seed_happens_again_in_the_same_way(tmp_path: Path) -> None:
    first, second = Simulation(7, tmp_path / "1"), Simulation(7, tmp_path / "2")
    assert first.run() == second.run()
    assert (first.events, first.cuts) == (second.events, second.cuts)
    assert first.history.sent == second.history.sent
    assert first.history.followed == second.history.followed


def broken_promise(folder: Path, words: str = "") -> str:
    """Of the first seed that finds one, with these words in it: what is broken breaks other promises, too."""
    for seed in range(200):
        try:
            Simulation(seed, folder / str(seed)).run()
        except Violation as violation:
            if words in str(violation):
                return str(violation)
    return "none"


def test_it_notices_a_broker_that_forgets_identifiers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def receive(self: Session, identifier: int) -> bool:
        return identifier not in TagSet(self.pot)

    monkeypatch.setattr(Session, "receive", receive)
    assert "2 times with QoS 2" in broken_promise(tmp_path)


def test_it_notices_a_broker_that_forgets_sessions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    leave = Sessions.leave

    def end(self: Sessions, client: Client, now: float, *, will: bool, expiry: float | None = None) -> None:
        leave(self, client, now, will=will, expiry=0.0)

    monkeypatch.setattr(Sessions, "leave", end)
    assert "has forgotten the session" in broken_promise(tmp_path)


def test_it_notices_a_broker_that_drops_messages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tests.simulation.process.LIMITS", {"queue_messages_max": 2, "queue_policy": "drop_oldest"})
    assert "never got" in broken_promise(tmp_path)


@pytest.mark.parametrize(("restored", "broken"), [("TRUE", "denies"), (NEVER, "never got")])
def test_it_notices_a_broker_that_forgets_selectors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, restored: str, broken: str
) -> None:
    """With a restart, those of sessions; a queue is declared with its selector again, and refused with another one."""
    monkeypatch.setattr(recovery, "restored_condition", lambda where: condition_of(restored))
    monkeypatch.setattr(Simulation, "_add_native_clients", lambda self: setattr(self, "due", {}))
    assert broken in broken_promise(tmp_path)
