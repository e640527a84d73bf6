"""One run of one scenario: connect, subscribe, warm up, measure for a while, drain, and say what came of it."""

import importlib
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load import target as targets
from fanlight_bench.load.histogram import Histogram
from fanlight_bench.load.kinds import STREAM
from fanlight_bench.load.result import FAULTS, GENERATOR_BUSY, Result, faults, percentiles
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.usage import broker_pids, busy, each, others, resident_bytes, spent, usage
from fanlight_bench.load.worker_processes import WorkerProcesses
from fanlight_bench.load.workers import OneWorker, Workers

DRAIN_SECONDS = 10.0


@dataclass(frozen=True)
class Progress:
    """How far a run is. phase: connecting, subscribing, warming up, measuring, draining; counters: of all workers."""

    phase: str
    seconds: float  # in this phase
    counters: dict[str, int]


@dataclass(frozen=True)
class Plan:
    """What `run` was asked for, for the kinds of scenario that are not a stream."""

    duration: float
    warmup: float
    drain: float = DRAIN_SECONDS
    processes: int = 1
    pids: Sequence[int] | None = None
    progress: Callable[[Progress], None] | None = None


def run(
    scenario: Scenario | str,
    url: str,
    *,
    duration: float = 3.0,
    warmup: float = 0.5,
    drain: float = DRAIN_SECONDS,
    processes: int = 1,
    pids: Sequence[int] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Load a broker and check every delivery. Takes at most warmup + duration + drain seconds and the set-up.

    scenario: or its name, or the path of its file. pids: the broker's processes, for its processor time and memory;
    without them, whoever listens on the port if that is on this machine. processes: of the generator; 1 is this one.
    progress: called about ten times a second.

    Raises BadScenario, BadUrl, OSError when the broker cannot be reached, Refused when it will not be loaded.
    """
    made = scenarios.load(scenario) if isinstance(scenario, str) else scenario
    target = targets.parse(url)
    if target.carrier and made.kind != STREAM:
        raise Refused(f"{made.name} is no stream: only streams go by TLS or WebSocket")
    if made.kind != STREAM:
        kind = importlib.import_module(f"fanlight_bench.load.kinds.{made.kind}")
        result: Result = kind.measure(made, target, Plan(duration, warmup, drain, processes, pids, progress))
        return result
    with workers(made, target, processes) as load:
        return _Run(made, target, load, pids, progress).measure(duration, warmup, drain)


def workers(scenario: Scenario, target: targets.Target, processes: int) -> closing[Workers]:
    """The workers of the load, closed at the end: one in this process, or several in processes of their own."""
    return closing(OneWorker(scenario, target) if processes == 1 else WorkerProcesses(scenario, target, processes))


class _Run:
    def __init__(
        self,
        scenario: Scenario,
        target: targets.Target,
        load: Workers,
        pids: Sequence[int] | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.scenario = scenario
        self.target = target
        self.load = load
        self.pids = list(pids) if pids else broker_pids(target.host, target.port)
        self.progress = progress
        self._phase = ""
        self._since = 0.0

    def measure(self, duration: float, warmup: float, drain: float) -> Result:
        memory = {"before": resident_bytes(self.pids)}
        self._begin("connecting")
        connections = self.load.connect()
        connect_seconds = self._elapsed()
        memory["connected"] = resident_bytes(self.pids)
        before = usage(self.pids, self.load.pids)
        self._begin("subscribing")
        subscriptions = self.load.subscribe()
        subscribe_seconds = self._elapsed()
        subscribed = usage(self.pids, self.load.pids)
        memory["subscribed"] = resident_bytes(self.pids)
        self.load.start()
        self._begin("warming up")
        self.load.run(warmup, self._tick)
        self.load.begin()
        self._begin("measuring")
        first, counted = usage(self.pids, self.load.pids), self.load.shared.totals()
        self.load.run(duration, self._tick)
        last, then = usage(self.pids, self.load.pids), self.load.shared.totals()
        memory["after"] = resident_bytes(self.pids)
        self._begin("draining")
        measured = self.load.outcomes()
        self.load.drain(drain)
        totals, drained = self.load.shared.totals(), self.load.outcomes()
        complaints = [outcome["complaint"] for outcome in drained if outcome["complaint"]]
        # What was due in the measured time and came after it waited longest, and counts. Without a rate nothing was
        # due, and a window that empties is not the load that is measured.
        outcomes = drained if self.scenario.rate else measured
        latency = Histogram()
        for outcome in outcomes:
            latency.merge(Histogram.of(outcome["latency"]["steps"], outcome["latency"]["highest"]))
        lag = max(outcome["schedule_lag_ns"] for outcome in outcomes)
        seconds = last.wall - first.wall
        delivered = then["received"] - counted["received"]
        published = then["published"] - counted["published"]
        acknowledged = then["acknowledged"] - counted["acknowledged"]
        broker = spent(first.broker, last.broker)
        busiest = max(busy(first, last), default=0.0)
        found = faults(totals)
        return Result(
            scenario=self.scenario.name,
            url=self.target.url,
            protocol=self.target.protocol,
            parameters=scenarios.as_json(self.scenario),
            processes=self.load.shared.workers,
            seconds=seconds,
            published=published,
            delivered=delivered,
            acknowledged=acknowledged,
            published_per_second=published / seconds,
            delivered_per_second=delivered / seconds,
            acknowledged_per_second=acknowledged / seconds,
            delivered_megabytes_per_second=delivered * self.scenario.payload_bytes / seconds / 1e6,
            checked=totals["unique"],
            broker_us_per_delivery=each(broker, delivered, 1e6),
            broker_us_per_publish=each(broker, published, 1e6),
            broker_busy=broker / seconds if broker is not None else None,
            generator_busy=busiest,
            generator_bound=busiest > GENERATOR_BUSY,
            others_busy=others(first, last, broker),
            latency_us=percentiles(latency, lag) if delivered else {},
            connections=connections,
            subscriptions=subscriptions,
            connect_seconds=connect_seconds,
            subscribe_seconds=subscribe_seconds,
            subscribe_broker_seconds=spent(before.broker, subscribed.broker),
            memory=memory,
            bytes_per_connection=each(spent(memory["before"], memory["connected"]), connections),
            bytes_per_subscription=each(spent(memory["connected"], memory["subscribed"]), subscriptions),
            slow={"received": totals["slow_received"], "closed": totals["slow_closed"]},
            faults={name: found[name] for name in FAULTS},
            complaint=complaints[0] if complaints else "",
        )

    def _begin(self, phase: str) -> None:
        self._phase = phase
        self._since = time.monotonic()
        self._tick()

    def _elapsed(self) -> float:
        return time.monotonic() - self._since

    def _tick(self) -> None:
        if self.progress is not None:
            self.progress(Progress(self._phase, self._elapsed(), self.load.shared.totals()))
