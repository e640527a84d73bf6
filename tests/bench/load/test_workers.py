"""A load in several processes: what one publishes and another receives is checked as in one."""

import os
import signal
from contextlib import closing

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.load.run import run
from fanlight_bench.load.scenario import BadScenario, Scenario
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.target import parse
from fanlight_bench.load.worker_processes import WorkerProcesses
from tests.bench.load import broker as mistakes
from tests.bench.load.broker import Mistake, faulty

# Publisher 0 and subscriber 1 are on one topic, and in two processes.
CROSSED = Scenario(
    "crossed", "", "dev/{i}", filters=("dev/1", "dev/0"), publishers=2, subscribers=2, topics=2, batch=1, window=8
)


@pytest.mark.parametrize(
    ("mistake", "faults"),
    [
        (None, {}),
        (mistakes.lose, {"lost": 1}),
        (mistakes.repeat, {"repeated": 1}),
        (mistakes.misroute, {"lost": 1, "misrouted": 1}),
    ],
    ids=["none", "lose", "repeat", "misroute"],
)
def test_a_mistake_between_two_processes_is_in_the_result(mistake: Mistake | None, faults: dict[str, int]) -> None:
    with faulty(mistake) as url:
        result = run(CROSSED, url, duration=0.1, warmup=0.02, drain=0.3, processes=2)
    assert {name: count for name, count in result.faults.items() if count} == faults
    assert (result.processes, result.connections, result.subscriptions) == (2, 4, 2)
    # More than the window: whoever made room in it has told the other process.
    assert result.checked > 20
    assert result.latency_us["p50"] > 0


def test_a_connection_that_is_closed_in_one_process_ends_the_run_in_all() -> None:
    with faulty(mistakes.hang_up) as url:
        result = run(CROSSED, url, duration=60.0, warmup=60.0, drain=0.2, processes=2)
    assert result.faults["closed"] == 1


def test_what_a_worker_cannot_do_is_told_as_if_it_were_this_process() -> None:
    with pytest.raises(OSError, match="refused"):
        run(CROSSED, "mqtt://127.0.0.1:1", processes=2)
    with pytest.raises(Refused, match="nats has up to 0"):
        run(CROSSED.with_changes(qos=1), "nats://127.0.0.1:1", processes=2)
    with pytest.raises(BadScenario, match="65 processes; 1 to 64"):
        run(CROSSED, "mqtt://127.0.0.1:1", processes=65)


def test_a_worker_that_ends_is_an_error_and_leaves_nobody_behind() -> None:
    with closing(WorkerProcesses(CROSSED, parse("mqtt://127.0.0.1:1"), 2)) as workers:
        os.kill(workers.pids[0], signal.SIGKILL)
        with pytest.raises(OSError, match=r"has ended|Broken pipe"):
            workers.connect()
    for pid in workers.pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
