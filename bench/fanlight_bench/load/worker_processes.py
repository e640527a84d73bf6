"""A load in several processes: each is a worker with its part of the connections, one compiled thread and one
processor.

    this process                                  worker k: python -m fanlight_bench.load.worker_processes
       |  {"scenario": ..., "worker": k, ...}          |
       |---------------------------------------------->|  makes its Worker
       |  {"call": "connect"}, and so on               |
       |---------------------------------------------->|
       |<----------------------------------------------|  {"done": ...} or {"error": ..., "text": ...}

Lines of JSON, through the worker's standard input and output; a worker ends when its input does. A call goes to all
workers before an answer is waited for, so each is a barrier: nobody publishes before everybody has subscribed. The
counters are in shared memory (shared_counters.pxd). Each worker has an eventfd by which the others wake it when the
window has room.
"""

import contextlib
import dataclasses
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load.scenario import BadScenario, Scenario
from fanlight_bench.load.shared_counters import SharedCounters
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.target import Target
from fanlight_bench.load.worker import Worker
from fanlight_bench.load.workers import SLICE_SECONDS, Tick, Workers

ANSWER_SECONDS = 900.0  # for one call, a million subscriptions among them; the brokers' silence is noticed before
END_SECONDS = 5.0       # for a worker to close its connections
WORKERS_MAX = 64          # as in generator.pyx

ERRORS: dict[str, Callable[[str], Exception]] = {
    "BadScenario": BadScenario, "Refused": Refused, "TimeoutError": TimeoutError,
}  # fmt: skip


class WorkerProcesses(Workers):
    """Several workers, each in a process of its own. Raises BadScenario when they are too many, Refused."""

    def __init__(self, scenario: Scenario, target: Target, workers: int) -> None:
        if not 1 <= workers <= WORKERS_MAX:
            raise BadScenario(f"{workers} processes; 1 to {WORKERS_MAX}")
        speaker(target, scenario)  # what the protocol cannot do is refused here, and not by each
        self._processes: list[subprocess.Popen[bytes]] = []
        size = SharedCounters.size(workers, scenario.streams)
        self._memory = os.memfd_create("bench-load")
        self._wakers = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(workers)]
        os.ftruncate(self._memory, size)
        self.shared = SharedCounters(mmap.mmap(self._memory, size), workers, scenario.streams)
        try:
            for number in range(workers):
                self._start(number, scenario, target)
            self._answers(_nothing)
        except BaseException:
            self.close()
            raise
        self.pids = [process.pid for process in self._processes]

    def connect(self) -> int:
        return sum(self._all("connect"))

    def subscribe(self) -> int:
        return sum(self._all("subscribe"))

    def start(self) -> None:
        self._all("start")

    def run(self, seconds: float, tick: Tick) -> None:
        self._all("run", seconds, tick=tick)

    def begin(self) -> None:
        self._all("begin")

    def drain(self, seconds: float) -> None:
        self._all("drain", seconds)

    def outcomes(self) -> list[dict[str, Any]]:
        return self._all("outcome")

    def close(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it has ended already
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
        self._processes.clear()
        for descriptor in (self._memory, *self._wakers):
            os.close(descriptor)
        self._wakers.clear()

    def _start(self, number: int, scenario: Scenario, target: Target) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "fanlight_bench.load.worker_processes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._memory, *self._wakers),
        )
        self._processes.append(process)
        first = {
            "scenario": scenarios.as_json(scenario),
            "target": dataclasses.asdict(target),
            "worker": number,
            "workers": self.shared.workers,
            "memory": self._memory,
            "wakers": self._wakers,
        }
        self._say(process, first)

    def _all(self, call: str, *arguments: float, tick: Tick | None = None) -> list[Any]:
        for process in self._processes:
            self._say(process, {"call": call, "arguments": arguments})
        return self._answers(tick or _nothing)

    def _say(self, process: subprocess.Popen[bytes], line: dict[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()

    def _answers(self, tick: Tick) -> list[Any]:
        """What all have answered. Raises the first error among the answers."""
        outputs = [process.stdout for process in self._processes]
        waiting = {output: number for number, output in enumerate(outputs) if output is not None}
        answers: list[Any] = [None] * len(self._processes)
        end = time.monotonic() + ANSWER_SECONDS
        while waiting:
            ready, _, _ = select.select(list(waiting), [], [], SLICE_SECONDS)
            tick()
            if time.monotonic() > end:
                raise TimeoutError(f"{len(waiting)} processes of the generator did not answer in {ANSWER_SECONDS:g} s")
            for output in ready:
                answers[waiting.pop(output)] = _understood(output.readline())
        for answer in answers:
            if "error" in answer:
                raise ERRORS.get(answer["error"], OSError)(answer["text"])
        return [answer["done"] for answer in answers]


def _understood(line: bytes) -> Any:
    return json.loads(line) if line else {"error": "OSError", "text": "a process of the generator has ended"}


def _nothing() -> None:
    """Reports no progress."""


def main() -> int:
    """A worker: do as the lines on standard input say, until they end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for whoever started it, who then closes the input
    first = json.loads(sys.stdin.readline())
    scenario = scenarios.of_json(first["scenario"])
    memory = mmap.mmap(first["memory"], SharedCounters.size(first["workers"], scenario.streams))
    shared = SharedCounters(memory, first["workers"], scenario.streams)
    target = Target(**first["target"])
    with contextlib.closing(Worker(scenario, target, shared, number=first["worker"], wakers=first["wakers"])) as worker:
        _answer({"done": None})
        for line in sys.stdin:
            said = json.loads(line)
            try:
                done = CALLS[said["call"]](worker, *said["arguments"])
            except (OSError, Refused, BadScenario) as error:
                _answer({"error": type(error).__name__, "text": str(error)})
            else:
                _answer({"done": done})
    return 0


def _run(worker: Worker, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not worker.broken():
        worker.run(min(left, SLICE_SECONDS))


CALLS: dict[str, Callable[..., Any]] = {
    "connect": Worker.connect, "subscribe": Worker.subscribe, "start": Worker.start, "run": _run, "begin": Worker.begin,
    "drain": Worker.drain, "outcome": Worker.outcome,
}  # fmt: skip


def _answer(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
