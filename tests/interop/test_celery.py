"""Celery, as it comes: a worker in a process of its own, tasks, chords, retries, remote control, and a killed broker.

The application is examples/celery/tasks.py; celery_tasks.py adds what only the tests need. One worker serves all tests
of this file, in their order: the last one kills the broker under it.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.app.backends import by_url

from fanlight_bench.launch import Server
from tests.conftest import StartBroker, TestBroker
from tests.require import ROOT

EXAMPLE = ROOT / "examples" / "celery"
LIMIT_SECONDS = 300.0  # for what comes at once, on a machine that is busy with something else
PREFETCH = 8  # of the worker: four for each of its two processes


class Worker(Server):
    """`celery -A tasks worker`, which consumes when it is made."""

    def __init__(self, folder: Path, environment: dict[str, str], *options: str) -> None:
        super().__init__(
            [
                sys.executable, "-m", "celery", "--workdir", str(folder), "-A", "tasks", "worker",
                "-I", "celery_tasks", "-c", "2", "--loglevel", "INFO", *options,
            ],
            listeners=(), environment=environment,
        )  # fmt: skip
        self.wait_for_line(" ready.", LIMIT_SECONDS)

    def wait(self, seconds: float = LIMIT_SECONDS) -> int:
        return super().wait(seconds)


class World:
    """The broker, which may be another one after a test; the application, and its worker."""

    def __init__(self, start: StartBroker, folder: Path) -> None:
        self._start = start
        self.folder = folder
        self.data = folder / "data"
        self.broker: TestBroker = start(amqp=True, data=self.data, durability="written")
        self.broker.wait_for(lambda: "amqp" in self.broker.addresses, LIMIT_SECONDS)
        self.port = self.broker.amqp_port
        results = folder / "results"
        results.mkdir()
        self.environment = {
            "CELERY_BROKER_URL": f"amqp://127.0.0.1:{self.port}//",
            "CELERY_RESULT_BACKEND": f"file://{results}",
            "PYTHONPATH": os.pathsep.join([str(EXAMPLE), str(Path(__file__).parent)]),
            "PYTHONWARNINGS": "ignore",
        }

    def kill_and_restart(self) -> None:
        self.broker.kill()
        self.broker = self._start(amqp=True, data=self.data, durability="written", amqp_port=self.port)

    def worker(self, name: str, *options: str) -> Worker:
        return Worker(self.folder, self.environment, "-n", f"{name}@here", *options)


@pytest.fixture(scope="module")
def world(start_module_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(start_module_broker, tmp_path_factory.mktemp("celery"))


@pytest.fixture(scope="module")
def worker(world: World) -> Iterator[Worker]:
    with world.worker("first", "-E") as found:
        yield found
    assert found.process.returncode == 0


@pytest.fixture(scope="module")
def tasks(world: World, worker: Worker) -> Iterator[Any]:
    """The modules `tasks` and `celery_tasks` as one, as a program imports them that sends tasks."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CELERY_BROKER_URL", "CELERY_RESULT_BACKEND"):
            patch.setenv(name, world.environment[name])
        patch.syspath_prepend(str(EXAMPLE))
        patch.syspath_prepend(str(Path(__file__).parent))
        mine = {**vars(importlib.import_module("tasks")), **vars(importlib.import_module("celery_tasks"))}
        yield SimpleNamespace(**mine)
        mine["app"].close()
        for name in ("tasks", "celery_tasks"):
            del sys.modules[name]


def result(pending: Any) -> Any:
    return pending.get(timeout=LIMIT_SECONDS, interval=0.02)


def test_tasks_are_done_and_their_results_come_back(tasks: Any) -> None:
    pending = [tasks.add.delay(number, number) for number in range(50)]
    assert [result(each) for each in pending] == [2 * number for number in range(50)]


def test_results_come_by_a_queue_too(tasks: Any, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first waits in the queue before anybody consumes from it.

    Two things of Celery 5.6.3 lose a result, with RabbitMQ as well, and are kept out of here:

    `send_task` asks the application's backend to declare its queue (`on_task_call`), and not the task's own. A queue
    of that one is declared by `get`, and a worker that is quicker publishes to a queue that does not exist.

    Once a second it looks whether somebody stopped waiting, and takes that for a lost connection. It then cancels its
    consumer and consumes again on a new connection (`ResultConsumer._reconnect`). The queue is auto-delete, so it is
    gone in between, and with it a result that comes then. The first look comes later here than the results.
    """
    drainer = tasks.by_queue.result_consumer.drainer
    wait = partial(drainer.drain_events_until, interval=LIMIT_SECONDS)
    monkeypatch.setattr(drainer, "drain_events_until", wait)
    with tasks.app.producer_or_acquire() as producer:
        tasks.by_queue.on_task_call(producer, "")
    first = tasks.doubled.delay(21)
    worker.wait_for(lambda: lines(worker, first.id, "succeeded") == 1, LIMIT_SECONDS)
    assert result(first) == 42
    assert [result(tasks.doubled.delay(number)) for number in range(5)] == [0, 2, 4, 6, 8]


def test_celery_itself_has_no_chords_by_rpc() -> None:
    """With any broker: docs/amqp.md and examples/celery say so."""
    app = Celery(set_as_current=False)
    kind, url = by_url("rpc://", app.loader)  # as `backend=` names it, unless the environment names another
    with pytest.raises(NotImplementedError, match="does not support chords"):
        kind(app=app, url=url).ensure_chords_allowed()


def test_a_chord_is_summed_up_when_all_its_parts_are_done(tasks: Any) -> None:
    from celery import chord

    assert result(chord(tasks.add.s(number, number) for number in range(10))(tasks.total.s())) == 90


def test_a_task_that_fails_is_tried_again(tasks: Any, worker: Worker) -> None:
    """By the worker's log: the process that asks for a retry writes down RETRY after it has sent the task.

    On a busy machine the other process has written SUCCESS by then, and the task's result stays RETRY for good.
    """
    task = tasks.third_time.delay().id
    worker.wait_for(lambda: lines(worker, task, "succeeded") == 1, LIMIT_SECONDS)
    worker.wait_for(lambda: lines(worker, task, "Retry in 0s") == 2, LIMIT_SECONDS)  # of the other process, maybe


def test_tasks_for_later_do_not_stand_before_those_for_now(tasks: Any) -> None:
    """Celery raises the prefetch of its consumer by one for each task that is to wait."""
    later = [tasks.add.apply_async((1, 1), countdown=3_600) for _ in range(2 * PREFETCH)]
    assert result(tasks.add.delay(3, 4)) == 7
    assert result(tasks.add.apply_async((4, 5), countdown=0.1)) == 9
    tasks.app.control.revoke([each.id for each in later])


def test_remote_control_is_answered(tasks: Any) -> None:
    assert tasks.app.control.ping(timeout=LIMIT_SECONDS, limit=1) == [{"first@here": {"ok": "pong"}}]
    inspect = tasks.app.control.inspect(["first@here"], timeout=LIMIT_SECONDS, limit=1)
    (queue,) = inspect.active_queues()["first@here"]
    assert (queue["name"], queue["durable"]) == ("celery", True)


def test_events_tell_of_tasks_as_they_are_done(tasks: Any) -> None:
    seen: list[str] = []
    pending: list[Any] = []
    with tasks.app.connection_for_read() as connection:

        def note(event: dict[str, Any]) -> None:
            seen.append(event["type"])
            if event["type"] == "task-succeeded":
                receiver.should_stop = True

        receiver = tasks.app.events.Receiver(connection, handlers={"*": note})
        receiver.on_consume_ready = lambda *_, **__: pending.append(tasks.add.delay(1, 2))
        receiver.capture(limit=100, timeout=LIMIT_SECONDS)  # a heartbeat of the worker every 2 s counts, too
    assert {"task-received", "task-started", "task-succeeded"} <= {*seen}
    assert result(pending[0]) == 3


def test_a_second_worker_finds_the_first(world: World, worker: Worker) -> None:
    """Mingle asks by a fanout exchange and is answered by a queue of its own; gossip sees it come by a topic."""
    with world.worker("second", "-Q", "other") as second:
        second.wait_for_line("mingle: sync with 1 nodes", LIMIT_SECONDS)
        worker.wait_for_line("sync with second@here", LIMIT_SECONDS)
    assert second.process.returncode == 0


def lines(worker: Worker, *words: str) -> int:
    """How many lines of its log have all of these words."""
    return sum(all(word in line for word in words) for line in worker.lines)


def test_a_killed_broker_loses_no_task_and_late_ones_come_again(
    tasks: Any, world: World, worker: Worker, tmp_path: Path
) -> None:
    for name in ("started", "gate"):
        os.mkfifo(tmp_path / name)
    late = tasks.held.delay(str(tmp_path))
    (tmp_path / "started").read_text()  # the worker has it, and has not acknowledged it
    waits = tasks.add.apply_async((1, 2), queue="nobody-consumes-this-yet")
    world.kill_and_restart()
    worker.wait_for(lambda: lines(worker, late.id, "received") == 2, LIMIT_SECONDS)
    (tmp_path / "gate").write_text("first")
    worker.wait_for(lambda: lines(worker, late.id, "succeeded") == 2, LIMIT_SECONDS)
    assert result(tasks.add.delay(5, 6)) == 11
    tasks.app.control.add_consumer("nobody-consumes-this-yet", reply=True, timeout=LIMIT_SECONDS, limit=1)
    assert result(waits) == 3
