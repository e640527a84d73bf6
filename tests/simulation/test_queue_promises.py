"""The simulation notices brokers that break what they promise about durable queues."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.core import queue_bounds, queues
from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.delayed import Delayed
from fanlight_broker.core.filling import ArchiveFilling, RetainedFilling
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.storage import recovery
from fanlight_broker.storage.pager import Pager
from fanlight_broker.storage.recovery import Recovery
from fanlight_broker.storage.stored_state import StoredQueue
from tests.simulation import worker_queues
from tests.simulation.history import Violation
from tests.simulation.native_clients import QueuePublisher
from tests.simulation.process import BrokerProcess
from tests.simulation.queue_history import QueueHistory
from tests.simulation.selecting import NEVER
from tests.simulation.test_simulation import broken_promise

PutInForce = Callable[[Callable[[WorkQueue, Limits], None]], None]


@pytest.fixture
def put_in_force(monkeypatch: pytest.MonkeyPatch) -> PutInForce:
    """Puts the options of all queues in force by another function."""

    def patch(function: Callable[[WorkQueue, Limits], None]) -> None:
        for module in (queue_bounds, queues):
            monkeypatch.setattr(module, "put_in_force", function)

    return patch


def test_it_notices_a_broker_that_forgets_messages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    restore = Recovery._begin_queue

    def restore_empty(self: Recovery, id: int, fact: Any) -> Any:
        self.image.queues[id] = StoredQueue(id)
        return restore(self, id, fact)

    monkeypatch.setattr(Recovery, "_begin_queue", restore_empty)
    assert "they are lost" in broken_promise(tmp_path, "lost")


def test_it_notices_a_broker_whose_messages_begin_to_live_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arrived = Pager._arrived

    def arrived_anew(self: Pager, *arguments: Any) -> None:
        ahead = self._ahead
        with monkeypatch.context() as patch:
            patch.setattr(self, "_ahead", lambda: ahead() - 1e9)
            arrived(self, *arguments)

    monkeypatch.setattr(recovery, "came_at", lambda body: 1e12)
    monkeypatch.setattr(Pager, "_arrived", arrived_anew)
    assert "brief delivers" in broken_promise(tmp_path)


def test_it_notices_a_broker_that_ignores_priorities(put_in_force: PutInForce, tmp_path: Path) -> None:
    apply = queue_bounds.put_in_force

    def apply_without(queue: WorkQueue, limits: Limits) -> None:
        options, queue.options = queue.options, replace(queue.options, priorities=None)
        apply(queue, limits)
        queue.options = options

    put_in_force(apply_without)
    assert "of priority" in broken_promise(tmp_path)


def test_it_notices_a_broker_that_delivers_before_the_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    add = Delayed.add

    def add_early(self: Delayed, message: Any, due: float, now: float, publisher: Any) -> None:
        add(self, message, now + 0.5 * (due - now), now, publisher)

    monkeypatch.setattr(Delayed, "add", add_early)
    assert "before it is due" in broken_promise(tmp_path)


def test_it_notices_a_broker_that_forgets_delayed_messages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Recovery, "_delay", lambda self: None)
    assert "they are lost" in broken_promise(tmp_path)


def test_it_notices_a_broker_that_does_not_cancel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Delayed, "cancel", lambda self, id: None)
    monkeypatch.setattr(BrokerProcess, "check", lambda self: None)  # which finds it too, as lists do
    monkeypatch.setattr(QueuePublisher, "_list", lambda self: None)
    assert "which was cancelled" in broken_promise(tmp_path)


def test_it_notices_a_queue_that_is_not_filled_up_to_where_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ArchiveFilling, "_end_known", lambda self, offset: self._then(None))
    assert "they are lost: [('filled-" in broken_promise(tmp_path)


def test_it_notices_a_queue_without_what_is_retained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(RetainedFilling, "_visible", lambda self: iter(()))
    assert "last never got" in broken_promise(tmp_path)


def test_it_notices_a_queue_that_takes_more_than_it_may(put_in_force: PutInForce, tmp_path: Path) -> None:
    apply = queue_bounds.put_in_force

    def apply_more(queue: WorkQueue, limits: Limits) -> None:
        apply(queue, limits)
        queue.inside.queue.messages_max *= 4

    put_in_force(apply_more)
    assert "which takes 5" in broken_promise(tmp_path)


def test_its_history_counts_what_is_due() -> None:
    history = QueueHistory()
    history.declare("work")
    history.wrote(b"x", "shop", 1, 1.0, marked=False)
    history.put[b"x"].accepted = True
    assert history.missing({"work": None}) == [("work", b"x")]
    history.delivered("work", b"x", 1, {}, 1.0, None)
    history.acknowledge("work", b"x")
    assert history.missing({"work": None}) == []


def test_its_history_counts_the_age_from_the_last_time_a_message_was_written() -> None:
    """A kill may have undone what was before: then it was accepted when it was published again, with its mark."""
    history = QueueHistory()
    history.wrote(b"x", "shop", 1, 1.0, marked=True)
    history.wrote(b"x", "shop", 1, 11.0, marked=True)
    history.delivered("brief", b"x", 1, {}, 22.0, 12.0)
    with pytest.raises(Violation, match=r"after 17\.000 s"):
        history.delivered("brief", b"x", 2, {}, 28.0, 12.0)


def test_its_history_knows_what_is_to_be_listed() -> None:
    history = QueueHistory()
    history.wrote(b"x", "shop", 1, 1.0, marked=False, delay=8.0)
    history.accepted(b"x")
    history.listed({b"x": 8.0}, 1, history.tick(), 2.0)
    history.listed({}, 0, history.tick(), 6.0)  # it may be due by now
    with pytest.raises(Violation, match="not listed"):
        history.listed({}, 0, history.tick(), 2.0)
    history.cancel(b"x")
    history.listed({}, 0, history.tick(), 2.0)
    history.cancel_answered(b"x", cancelled=True)
    with pytest.raises(Violation, match="is listed"):
        history.listed({b"x": 8.0}, 1, history.tick(), 2.0)


def test_it_notices_a_broker_with_two_active_consumers(put_in_force: PutInForce, tmp_path: Path) -> None:
    apply = queue_bounds.put_in_force

    def apply_without(queue: WorkQueue, limits: Limits) -> None:
        apply(queue, limits)
        queue.inside.single = False

    put_in_force(apply_without)
    assert "single has two active consumers" in broken_promise(tmp_path)


def test_it_notices_that_messages_before_one_are_not_acknowledged_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker_queues, "ALL", {"all": False})
    assert "bulk" in broken_promise(tmp_path, "bulk")


@pytest.mark.parametrize(("condition", "broken"), [(None, "denies"), (NEVER, "they are lost")])
def test_it_notices_a_queue_with_another_selector_than_it_was_declared_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, condition: str | None, broken: str
) -> None:
    bind = queues.Queues._bind

    def bind_otherwise(self: queues.Queues, queue: WorkQueue, *arguments: Any) -> None:
        real, wrong = queue.condition, None if condition is None else condition_of(condition)
        if real is not None:
            queue.condition = wrong
        bind(self, queue, *arguments)
        queue.condition = real

    monkeypatch.setattr(queues.Queues, "_bind", bind_otherwise)
    assert broken in broken_promise(tmp_path)
