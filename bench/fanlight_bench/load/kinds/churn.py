"""Subscriptions come and go while a stream passes: what does it lose by that?

The stream is the scenario's own, checked as ever. Turns without changes and turns with them alternate, so that what
else the machine does falls on both alike. The changes come from a thread beside the generator, which runs without the
interpreter's lock. No filter of theirs matches the stream: the broker's own work is seen, not deliveries.

At the end a few messages are published for filters that are in force and for some that are not any more.
"""

import time
from collections.abc import Iterable

from fanlight_bench.load.histogram import Histogram
from fanlight_bench.load.kinds import Churn
from fanlight_bench.load.kinds.churner import Churner
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.result import Result, faults, percentiles
from fanlight_bench.load.run import Plan, workers
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.target import Target
from fanlight_bench.load.usage import Usage, each, spent

Moment = tuple[Usage, int, int]  # with the stream's deliveries and the changes so far


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it. Raises as `run` does."""
    options: Churn = scenario.choices
    watch = Watch(scenario, target, plan)
    with workers(scenario, target, plan.processes) as load, Churner(watch, options) as churner:
        watch.own = load.pids

        def tick() -> None:
            watch.counters.update(load.shared.totals(), changed=churner.changed)
            watch.tick()

        def moment() -> Moment:
            return watch.now(), load.shared.totals()["received"], churner.changed

        watch.begin("connecting")
        connections = load.connect() + churner.connect()
        watch.remember("connected")
        watch.begin("subscribing")
        subscriptions = load.subscribe() + churner.subscribe()
        watch.remember("subscribed")
        load.start()
        churner.start()
        watch.begin("warming up")
        load.run(plan.warmup, tick)
        load.begin()
        turns: dict[bool, list[tuple[Moment, Moment]]] = {False: [], True: []}
        first = watch.begin("measuring")
        counted = load.shared.totals()
        for _ in range(options.turns):
            for changing in (False, True):
                churner.changing = changing
                before = moment()
                load.run(plan.duration / options.turns / 2, tick)
                turns[changing].append((before, moment()))
        churner.changing = False
        last, then = watch.now(), load.shared.totals()
        latency, lag = Histogram(), 0
        for said in load.outcomes():
            latency.merge(Histogram.of(said["latency"]["steps"], said["latency"]["highest"]))
            lag = max(lag, said["schedule_lag_ns"])
        watch.begin("draining")
        load.drain(plan.drain)
        churner.finish(time.monotonic() + plan.drain)
        totals = load.shared.totals()
        watch.faults.update(faults(totals))
        watch.faults["misrouted"] += churner.misrouted
        watch.faults["lost"] += churner.lost
        watch.faults["unacknowledged"] += churner.unanswered
        complaints = [said["complaint"] for said in load.outcomes() if said["complaint"]] + churner.complaints
        watch.faults["refused"] += len(churner.complaints)
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
            complaint=complaints[0] if complaints else "",
            metrics=_metrics(turns[False], turns[True]),
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
