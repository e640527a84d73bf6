"""A message for an absent session goes to the backlog without a flight, and is counted as if it had one."""

from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.storage.stored_backlog import StoredBacklog
from fanlight_broker.wire.restoring import restore_to_window
from tests.broker.storage.stored_world import StoredWorld


class Two:
    """A broker with two absent sessions."""

    def __init__(self, folder: Path, limits: dict[str, Any]) -> None:
        folder.mkdir()
        self.world = StoredWorld(folder, **limits)
        self.subscriptions = []
        for name in ("a", "b"):
            peer = self.world.connect(name, expiry=60.0, clean_start=False, user=name)
            self.subscriptions.append(peer.subscribe("t", qos=1)[0])
            peer.leave()
        self.world.turn()

    def enter(self, payload: str) -> None:
        """What the fan-out does."""
        self.world.publish("t", payload, 1)

    def put(self, payload: str) -> None:
        """The plain way: each has a flight, which the queue puts where it belongs."""
        message = self.world.message("t", payload, 1)
        for session, subscription in zip(self.world.broker.sessions, self.subscriptions, strict=True):
            restore_to_window(session.window, message, subscription.variant)

    def state(self) -> list[Any]:
        ledger, store = self.world.broker.ledger, self.world.store
        found: list[Any] = [
            ledger.stored, ledger.stored_messages, ledger.dropped_queue, ledger.dropped_share,
            ledger.turned_away, store.position.appended, store.records.messages,
        ]
        for session in self.world.broker.sessions:
            queue = session.window.queue
            assert isinstance(queue.backlog, StoredBacklog)
            assert queue.account is not None
            found += [
                len(queue), queue.nbytes, queue.dropped, queue.backlog.numbers.first(99), len(queue.waiting()),
                queue.account.stored,
            ]
        return found


@pytest.mark.parametrize("limits", [
    {}, {"queue_messages_max": 7}, {"queue_messages_max": 7, "queue_policy": "drop_oldest"},
    {"queue_bytes_max": 5_000}, {"queue_bytes_max": 5_000, "queue_policy": "drop_oldest"},
    {"stored_bytes_max": 1_500}, {"stored_bytes_max": 2_500, "share_percent": 30},
])  # fmt: skip
def test_it_is_counted_like_one_with_a_flight(tmp_path: Path, limits: dict[str, Any]) -> None:
    entered, put = Two(tmp_path / "entered", limits), Two(tmp_path / "put", limits)
    for size in [*range(1, 40), 900, 3_000, 3, 1_100, 2]:
        entered.enter("x" * size)
        put.put("x" * size)
        assert entered.state() == put.state()
        if size % 5 == 0:
            entered.world.turn()
            put.world.turn()
    entered.world.turn()
    put.world.turn()
    assert entered.state() == put.state()
    for two in (entered, put):
        two.world.crash()
    lengths = [[len(session.window.queue) for session in two.world.broker.sessions] for two in (entered, put)]
    assert lengths[0] == lengths[1]
