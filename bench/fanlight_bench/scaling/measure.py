"""Points in, figures out: each point has a broker of its own, so that none inherits another's memory.

The subscriptions of a point's background are made once for its loads, and at the end it is checked that nothing came to
them. Time is bounded: a point that would not be over in time is left out, and said to be.
"""

import contextlib
import dataclasses
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fanlight_bench.launch import Broker
from fanlight_bench.load import target as targets
from fanlight_bench.load.result import Result, faults
from fanlight_bench.load.run import run, workers
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.usage import resident_bytes, usage
from fanlight_bench.scaling.curves import BROKER, PROTOCOLS, Point

SPARE_FILES = 256  # of a process, beside its connections: libraries, pipes, logs
LONGER = (1, 8, 64)  # times its duration, as long as a run has no message in it
LISTEN_SECONDS = 0.02
LIMITS: dict[str, Any] = {
    "connections_max": 50_000, "connections_per_address_max": 50_000, "subscriptions_per_client_max": 1_000_000,
}  # fmt: skip

Figures = dict[str, Any]
Log = Callable[[str], None]


class Misrouted(Exception):
    """Something came to subscriptions that match nothing."""


class TooFewFiles(OSError):
    """The system lets a process have fewer file descriptors than a point has connections."""


@dataclasses.dataclass(frozen=True)
class ScalingPlan:
    """How it is measured.

    duration, warmup  of each load, in seconds
    limit             of all, in seconds
    broker_cpu        None: not pinned
    shared            one broker for all points: only that it works
    """

    duration: float = 1.0
    warmup: float = 0.3
    limit: float = 230.0
    broker_cpu: int | None = 0
    shared: bool = False

    def seconds(self, point: Point) -> float:
        """What it takes, about."""
        return point.seconds(self.duration + self.warmup) + (0.0 if self.shared else BROKER)


def measure(points: Sequence[Point], plan: ScalingPlan, log: Log) -> Figures:
    """The report: points, and those that were left out.

    Raises TooFewFiles before anything is begun, Misrouted, and what run() does.
    """
    allow_files(max((point.connections for point in points), default=0))
    end = time.monotonic() + plan.limit
    found: list[Figures] = []
    left_out: list[Figures] = []
    with contextlib.ExitStack() as stack:
        shared = stack.enter_context(started(plan)) if plan.shared else None
        for point in points:
            what = f"{point.curve} {point.size:,}, {point.protocol}"
            if time.monotonic() + plan.seconds(point) > end:
                left_out.append({"curve": point.curve, "protocol": point.protocol, "size": point.size})
                log(f"{what}: left out, because it would not finish within {plan.limit:g} s")
                continue
            with contextlib.nullcontext(shared) if shared else started(plan) as broker:
                for figures in measured(point, broker, plan):
                    found.append(figures)
                    log(line(figures))
    return {"points": found, "left_out": left_out}


@contextlib.contextmanager
def started(plan: ScalingPlan) -> Iterator[Broker]:
    """A broker that lets in all that comes; killed at the end, for what it held is of no use."""
    with Broker(cpu=plan.broker_cpu, environment=None, **LIMITS) as broker:
        yield broker
        broker.kill()


def measured(point: Point, broker: Broker, plan: ScalingPlan) -> Iterator[Figures]:
    """The figures of each of its loads."""
    scheme = PROTOCOLS[point.protocol]
    url = f"{scheme}://127.0.0.1:{broker.port if scheme == 'fanlight' else broker.mqtt_port}"
    base = {"curve": point.curve, "protocol": point.protocol, "size": point.size}
    with contextlib.ExitStack() as stack:
        about: Figures = {}
        if point.background is not None:
            about = stack.enter_context(held(point.background, url, [broker.pid]))
        for series, load in point.loads.items():
            result = _not_empty(load, url, broker, plan)
            yield {**base, "series": series, **figures_of(result), **about}


def _not_empty(load: Scenario, url: str, broker: Broker, plan: ScalingPlan) -> Result:
    """A run with messages in it: on a machine that has other work to do, none may be counted in a short one."""
    for times in LONGER:
        result = run(load, url, duration=times * plan.duration, warmup=plan.warmup, pids=[broker.pid])
        if result.published_per_second:
            break
    return result


def figures_of(result: Result) -> Figures:
    """The numbers of a load that the curves show, and those that show how reliable they are."""
    return {
        "us_per_message": _rounded(result.broker_us_per_publish),
        "us_per_delivery": _rounded(result.broker_us_per_delivery),
        "messages_per_second": round(result.published_per_second),
        "deliveries_per_second": round(result.delivered_per_second),
        "broker_busy": _rounded(result.broker_busy),
        "generator_busy": _rounded(result.generator_busy),
        "others_busy": _rounded(result.others_busy),
        "bytes_per_connection": _whole(result.bytes_per_connection),
        "connects_per_second": round(result.connections / result.connect_seconds) if result.connect_seconds else None,
        "faults": {name: count for name, count in result.faults.items() if count},
        "complaint": result.complaint,
    }


@contextlib.contextmanager
def held(background: Scenario, url: str, pids: Sequence[int]) -> Iterator[Figures]:
    """Subscriptions that are there and get nothing: what they cost. Raises Misrouted at its end if they did."""
    with workers(background, targets.parse(url), 1) as others:
        others.connect()
        before, memory = usage(pids, []), resident_bytes(pids)
        count = others.subscribe()
        after, then = usage(pids, []), resident_bytes(pids)
        cost = None if before.broker is None or after.broker is None else after.broker - before.broker
        yield {
            "us_per_filter": _rounded(cost and cost * 1e6 / count),
            "bytes_per_filter": _whole((then - memory) / count if then is not None and memory is not None else None),
        }
        others.start()
        others.run(LISTEN_SECONDS, lambda: None)
        wrong = {name: number for name, number in faults(others.shared.totals()).items() if number}
        if wrong:
            raise Misrouted(f"{background.name}: subscriptions that nothing matches got something: {wrong}")


def allow_files(connections: int) -> None:
    """Raise the soft limit of file descriptors as far as it takes. Raises TooFewFiles, which says how to raise it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise TooFewFiles(
            f"{connections:,} connections take {wanted:,} file descriptors, here and in the broker; at most {hard:,} "
            f"are allowed. `ulimit -Hn {wanted}` as root, LimitNOFILE of a service, --ulimit nofile={wanted} of docker "
            "run; or choose fewer by --connections and --subscribers"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def line(figures: Figures) -> str:
    """For the terminal, while it goes on."""
    what = ", ".join(filter(None, (f"{figures['curve']} {figures['size']:,}", figures["protocol"], figures["series"])))
    cost = figures["us_per_message"]
    shown = f"{what:<36} {cost if cost is not None else '-':>9} µs a message {figures['messages_per_second']:>11,} /s"
    for name in ("us_per_filter", "bytes_per_filter"):
        if figures.get(name) is not None:
            shown += f"   {name.replace('_', ' ')} {figures[name]:,}"
    if figures["faults"]:
        shown += f"   {figures['faults']} {figures['complaint']}"
    return shown


def _rounded(value: float | None) -> float | None:
    """Four digits."""
    return None if value is None else float(f"{value:.4g}")


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
