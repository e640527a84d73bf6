"""Clients connect and go at a steady rate while a stream passes: what does the stream lose?"""

import dataclasses
import time

from fanlight_bench.load.kinds import Reconnect, beside
from fanlight_bench.load.kinds.storm import Storm
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.result import Result
from fanlight_bench.load.run import Plan
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.target import Target

TICK_SECONDS = 0.01
BEHIND_SECONDS = 0.5  # of connects: then the broker is too slow, and is waited for


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it. Raises as `run` does."""
    options: Reconnect = scenario.choices
    watch = Watch(scenario, target, plan)
    with Reconnects(watch, options) as reconnects:
        return beside.measure(watch, options.turns, reconnects)


class Reconnects(beside.Disturbance):
    """A storm of connects at a steady rate."""

    def __init__(self, watch: Watch, options: Reconnect) -> None:
        super().__init__("reconnect")
        # A watch of its own: progress is reported by the thread of the stream.
        quiet = Watch(watch.scenario, watch.target, dataclasses.replace(watch.plan, progress=None))
        self._faults = quiet.faults
        self._storm = Storm(quiet, options.at_once, options.stay)
        self._rate = options.connects
        self._complaint = ""

    @property
    def changed(self) -> int:
        """Connections made so far."""
        return self._storm.made

    def finish(self, until: float) -> None:
        """Those who are connected must still answer. `changing` must be False."""
        self._stop()
        if not self._complaint:
            self._faults["lost"] += self._storm.all_answer(max(0.0, until - time.monotonic()))

    def found(self) -> tuple[dict[str, int], str]:
        return dict(self._faults), self._complaint or self._storm.complaint

    def _run(self) -> None:
        due = 0.0
        before = time.monotonic()
        try:
            while not self._end.wait(TICK_SECONDS):
                now = time.monotonic()
                due = min(due + (now - before) * self._rate, BEHIND_SECONDS * self._rate) if self.changing else 0.0
                before = now
                if due >= 1:
                    made = self._storm.made
                    self._storm.run(TICK_SECONDS, made + int(due))
                    due -= self._storm.made - made
        except OSError as error:  # this machine is out of sockets
            self._faults["refused"] += 1
            self._complaint = str(error)

    def close(self) -> None:
        self._storm.close()
