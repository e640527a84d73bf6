"""Something disturbs a broker while a stream passes: what does the stream lose by that?

The stream is the scenario's own, checked as ever. Turns without the disturbance and turns with it alternate, so that
other work of the machine affects both alike. The disturbance comes from a thread beside the generator, which runs
without the interpreter's lock.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from fanlight_bench.load.histogram import Histogram
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.result import Result, faults, percentiles
from fanlight_bench.load.run import workers
from fanlight_bench.load.usage import Usage, each, spent

Moment = tuple[Usage, int, int]  # with the stream's deliveries and the changes so far


class Disturbance(ABC):
    """What goes on beside the stream, on a thread of its own. It acts while `changing` is set. A context manager."""

    def __init__(self, name: str) -> None:
        self.changing = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    @abstractmethod
    def changed(self) -> int:
        """What it has done so far."""

    def connect(self) -> int:
        """Open its standing connections; how many."""
        return 0

    def subscribe(self) -> int:
        """Begin its standing subscriptions; how many."""
        return 0

    def start(self) -> None:
        """Begin to listen, and to change things while `changing`."""
        self._thread.start()

    @abstractmethod
    def finish(self, until: float) -> None:
        """End its thread and wait for what is not answered yet, at most until this moment of time.monotonic()."""

    @abstractmethod
    def found(self) -> tuple[dict[str, int], str]:
        """Its faults by their names in `Result.faults`, and the first complaint or an empty text."""

    @abstractmethod
    def close(self) -> None:
        """Close its connections; its thread has ended."""

    @abstractmethod
    def _run(self) -> None:
        """On its thread, until `_end` is set."""

    def _stop(self) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()
        self.close()


def measure(watch: Watch, turns: int, disturbance: Disturbance) -> Result:
    """Run the scenario of `watch` with this many turns of each sort. Raises as `run` does."""
    plan = watch.plan
    with workers(watch.scenario, watch.target, plan.processes) as load:
        watch.own = load.pids

        def tick() -> None:
            watch.counters.update(load.shared.totals(), changed=disturbance.changed)
            watch.tick()

        def moment() -> Moment:
            return watch.now(), load.shared.totals()["received"], disturbance.changed

        watch.begin("connecting")
        connections = load.connect() + disturbance.connect()
        watch.remember("connected")
        watch.begin("subscribing")
        subscriptions = load.subscribe() + disturbance.subscribe()
        watch.remember("subscribed")
        load.start()
        disturbance.start()
        watch.begin("warming up")
        load.run(plan.warmup, tick)
        load.begin()
        measured: dict[bool, list[tuple[Moment, Moment]]] = {False: [], True: []}
        first = watch.begin("measuring")
        counted = load.shared.totals()
        for _ in range(turns):
            for changing in (False, True):
                disturbance.changing = changing
                before = moment()
                load.run(plan.duration / turns / 2, tick)
                measured[changing].append((before, moment()))
        disturbance.changing = False
        last, then = watch.now(), load.shared.totals()
        latency, lag = Histogram(), 0
        for said in load.outcomes():
            latency.merge(Histogram.of(said["latency"]["steps"], said["latency"]["highest"]))
            lag = max(lag, said["schedule_lag_ns"])
        watch.begin("draining")
        load.drain(plan.drain)
        disturbance.finish(time.monotonic() + plan.drain)
        totals = load.shared.totals()
        more, complaint = disturbance.found()
        for name, count in (*faults(totals).items(), *more.items()):
            watch.faults[name] += count
        complaints = [said["complaint"] for said in load.outcomes() if said["complaint"]]
        return watch.result(
            first,
            last,
            published=then["published"] - counted["published"],
            delivered=then["received"] - counted["received"],
            checked=totals["unique"],
            connections=connections,
            processes=load.shared.workers,
            subscriptions=subscriptions,
            latency_us=percentiles(latency, lag),
            complaint=next(iter(complaints), complaint),
            metrics=_metrics(measured[False], measured[True]),
        )


def _metrics(without: list[tuple[Moment, Moment]], changing: list[tuple[Moment, Moment]]) -> dict[str, float | None]:
    seconds, delivered, broker, _ = _sums(without)
    with_seconds, with_delivered, with_broker, changed = _sums(changing)
    rate, with_rate = delivered / seconds, with_delivered / with_seconds
    apiece = each(broker, delivered)
    more = with_broker - apiece * with_delivered if with_broker is not None and apiece is not None else None
    return {
        "without_delivered_per_second": rate,
        "with_delivered_per_second": with_rate,
        "throughput_kept": with_rate / rate if rate else None,
        "changes_per_second": changed / with_seconds,
        # What the broker worked more than the deliveries explain.
        "broker_us_per_change": each(more, changed, 1e6),
    }


def _sums(turns: Iterable[tuple[Moment, Moment]]) -> tuple[float, int, float | None, int]:
    """Seconds, deliveries, the broker's processor time and changes of these turns."""
    seconds, delivered, changed = 0.0, 0, 0
    broker: float | None = 0.0
    for (before, received, changes), (after, received_then, changes_then) in turns:
        seconds += after.wall - before.wall
        delivered += received_then - received
        changed += changes_then - changes
        more = spent(before.broker, after.broker)
        broker = broker + more if broker is not None and more is not None else None
    return seconds, delivered, broker, changed
