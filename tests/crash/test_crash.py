"""What is promised holds over kills of the broker: 12 here, `make crash-test KILLS=1000` for more."""

from pathlib import Path

import pytest

from tests.crash.harness import CrashRun
from tests.crash.history import CrashHistory
from tests.simulation.history import Followed, Violation


async def test_what_is_promised_holds_over_kills(tmp_path: Path) -> None:
    run = CrashRun(tmp_path / "data", 12, seed=1)
    history = await run.run()
    assert run.complaints == []
    assert history.kills == 12
    assert run.rounds > 0
    assert history.deliveries >= len(history.sent) > 0
    assert run.network.queues.deliveries >= len(run.network.queues.put) > 0


def published(history: CrashHistory, number: int, topic: str = "a/1") -> bytes:
    payload = history.publish("publisher", number, topic, 1)
    history.wrote(payload)
    return payload


@pytest.fixture
def history() -> CrashHistory:
    history = CrashHistory()
    history.followed["reader"] = Followed("#", 1)
    history.subscribed("reader")
    return history


def test_it_notices_a_message_that_is_sent_again_though_its_acknowledgement_was_synced(history: CrashHistory) -> None:
    first = published(history, 1)
    history.delivered("reader", first, "a/1", 1, dup=False)
    history.settle("reader", first)
    history.accepted(published(history, 2))
    history.killed()
    with pytest.raises(Violation, match="synced before a kill"):
        history.delivered("reader", first, "a/1", 1, dup=True)


def test_what_was_not_synced_before_the_kill_may_come_again(history: CrashHistory) -> None:
    first, second = published(history, 1), published(history, 2)
    history.delivered("reader", first, "a/1", 1, dup=False)
    history.accepted(second)  # written before the acknowledgement was processed: it says nothing about that
    history.settle("reader", first)
    history.killed()
    history.delivered("reader", first, "a/1", 1, dup=True)
    history.accepted(published(history, 3))  # after the acknowledgement that was lost, before the next one
    history.killed()
    history.delivered("reader", first, "a/1", 1, dup=True)


def test_it_notices_an_old_retained_value(history: CrashHistory) -> None:
    first, second, third = (published(history, number, "kept/x") for number in (1, 2, 3))
    history.accepted(first)
    history.accepted(second)
    history.check_value("kept/x", third, history.latest["kept/x"])
    with pytest.raises(Violation, match="retained value"):
        history.check_value("kept/x", first, history.latest["kept/x"])


def test_it_knows_what_is_missing(history: CrashHistory) -> None:
    first, second = published(history, 1), published(history, 2)
    history.accepted(first)
    assert history.missing() == [("reader", first)]
    history.delivered("reader", first, "a/1", 1, dup=False)
    history.delivered("reader", second, "a/1", 1, dup=False)
    assert history.missing() == []
