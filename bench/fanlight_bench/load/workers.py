"""A load in several processes: each has a part of the connections, one compiled thread and one processor.

    this process                                  worker k: python -m fanlight_bench.load.workers
       |  {"scenario": ..., "part": k, ...}            |
       |---------------------------------------------->|  makes its Part
       |  {"call": "connect"}, and so on               |
       |---------------------------------------------->|
       |<----------------------------------------------|  {"done": ...} or {"error": ..., "text": ...}

Lines of JSON, through the worker's standard input and output; a worker ends when its input does. A call goes to all
workers before an answer is waited for, so each is a barrier: nobody publishes before everybody has subscribed. The
counters lie in memory that is shared (board.pxd), and each part has an eventfd by which the others wake it when the
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
from fanlight_bench.load.board import Board
from fanlight_bench.load.crew import SLICE_SECONDS, Crew, Tick
from fanlight_bench.load.part import Part
from fanlight_bench.load.scenario import BadScenario, Scenario
from fanlight_bench.load.speaker import Refused, speaker
from fanlight_bench.load.target import Target

ANSWER_SECONDS = 900.0  # for one call, a million subscriptions among them; the brokers' silence is noticed before
END_SECONDS = 5.0       # for a worker to close its connections
PARTS_MAX = 64          # as in generator.pyx

ERRORS: dict[str, Callable[[str], Exception]] = {
    "BadScenario": BadScenario, "Refused": Refused, "TimeoutError": TimeoutError,
}  # fmt: skip


class Workers(Crew):
    """So many parts, each in a process of its own. Raises BadScenario when they are too many, Refused."""

    def __init__(self, scenario: Scenario, target: Target, parts: int) -> None:
        if not 1 <= parts <= PARTS_MAX:
            raise BadScenario(f"{parts} processes; 1 to {PARTS_MAX}")
        speaker(target, scenario)  # what the protocol cannot do is refused here, and not by each
        self._workers: list[subprocess.Popen[bytes]] = []
        size = Board.size(parts, scenario.streams)
        self._memory = os.memfd_create("bench-load")
        self._wakers = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(parts)]
        os.ftruncate(self._memory, size)
        self.board = Board(mmap.mmap(self._memory, size), parts, scenario.streams)
        try:
            for number in range(parts):
                self._start(number, scenario, target)
            self._answers(_nothing)
        except BaseException:
            self.close()
            raise
        self.pids = [worker.pid for worker in self._workers]

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
        for worker in self._workers:
            assert worker.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it has ended already
                worker.stdin.close()
        for worker in self._workers:
            try:
                worker.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()
        self._workers.clear()
        for descriptor in (self._memory, *self._wakers):
            os.close(descriptor)
        self._wakers.clear()

    def _start(self, number: int, scenario: Scenario, target: Target) -> None:
        worker = subprocess.Popen(
            [sys.executable, "-m", "fanlight_bench.load.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._memory, *self._wakers),
        )
        self._workers.append(worker)
        first = {
            "scenario": scenarios.as_json(scenario),
            "target": dataclasses.asdict(target),
            "part": number,
            "parts": self.board.parts,
            "memory": self._memory,
            "wakers": self._wakers,
        }
        self._say(worker, first)

    def _all(self, call: str, *arguments: float, tick: Tick | None = None) -> list[Any]:
        for worker in self._workers:
            self._say(worker, {"call": call, "arguments": arguments})
        return self._answers(tick or _nothing)

    def _say(self, worker: subprocess.Popen[bytes], line: dict[str, Any]) -> None:
        assert worker.stdin is not None
        worker.stdin.write(json.dumps(line).encode() + b"\n")
        worker.stdin.flush()

    def _answers(self, tick: Tick) -> list[Any]:
        """What all have answered. Raises the first error among the answers."""
        waiting = {worker.stdout: number for number, worker in enumerate(self._workers) if worker.stdout is not None}
        answers: list[Any] = [None] * len(self._workers)
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
    """Tells nobody."""


def main() -> int:
    """A worker: do as the lines on standard input say, until they end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for whoever started it, who then closes the input
    first = json.loads(sys.stdin.readline())
    scenario = scenarios.of_json(first["scenario"])
    memory = mmap.mmap(first["memory"], Board.size(first["parts"], scenario.streams))
    board = Board(memory, first["parts"], scenario.streams)
    with Part(scenario, Target(**first["target"]), board, number=first["part"], wakers=first["wakers"]) as part:
        _answer({"done": None})
        for line in sys.stdin:
            said = json.loads(line)
            try:
                done = CALLS[said["call"]](part, *said["arguments"])
            except (OSError, Refused, BadScenario) as error:
                _answer({"error": type(error).__name__, "text": str(error)})
            else:
                _answer({"done": done})
    return 0


def _run(part: Part, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not part.broken():
        part.run(min(left, SLICE_SECONDS))


CALLS: dict[str, Callable[..., Any]] = {
    "connect": Part.connect, "subscribe": Part.subscribe, "start": Part.start, "run": _run, "begin": Part.begin,
    "drain": Part.drain, "outcome": Part.outcome,
}  # fmt: skip


def _answer(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
