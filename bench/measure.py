"""One run of one scenario: warm up, measure for a while, drain, and say what came of it."""

import time
from dataclasses import dataclass

from bench import frames, procfs
from bench.generator import Generator
from bench.scenarios import Scenario
from bench.session import Target, load

SLICE_SECONDS = 0.1      # of the compiled loop at a time: between slices an interrupt is heard
GENERATOR_BUSY = 0.9     # of its processor; above that the generator, and not the broker, may be the limit
FAULTS = (
    "lost", "repeated", "reordered", "misrouted", "damaged", "wrong_receipts", "closed_by_broker", "refused",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What one run came to. Rates are per second of wall-clock time; None: not to be known here."""

    scenario: str
    server: str
    seconds: float
    messages: int
    deliveries: int
    checked: int  # deliveries of the whole run that came first and rightly: what `faults` is about
    messages_per_second: float
    deliveries_per_second: float
    broker_us_per_delivery: float | None  # processor time
    broker_busy: float | None             # of one processor
    generator_busy: float
    generator_bound: bool
    others_busy: float | None             # of one processor: what else ran on the machine meanwhile
    broker_resident_bytes: int | None     # at the end of the measured time
    latency_us: dict[str, float] | None
    faults: dict[str, int]                # over the whole run, warm-up and drain included
    complaint: str

    @property
    def ok(self) -> bool:
        return not any(self.faults.values())


def measure(
    target: Target, scenario: Scenario, *, server: str, duration: float, warmup: float, drain: float = 10.0
) -> Run:
    """Load a server and check every delivery. Takes at most warmup + duration + drain seconds and the set-up.

    Raises OSError when the server cannot be reached, frames.Refused when it will not be loaded.
    """
    with load(target, scenario) as generator:
        _run(generator, scenario, warmup)
        generator.forget_latency()
        seen = generator.deliveries
        first, messages, deliveries = procfs.usage(target.broker_pid), seen.published, seen.received
        _run(generator, scenario, duration)
        last = procfs.usage(target.broker_pid)
        messages, deliveries = seen.published - messages, seen.received - deliveries
        latency = _latency(generator) if scenario.rate else None
        resident = procfs.resident_bytes(target.broker_pid)
        generator.drain(drain)
        counters = generator.counters()
        complaint = generator.complaint()
    seconds = last.wall - first.wall
    own = (last.own - first.own) / seconds
    broker = None
    if first.process is not None and last.process is not None:
        broker = (last.process - first.process) / seconds
    per_delivery = broker * seconds / deliveries * 1e6 if broker is not None and deliveries else None
    others = None
    if first.machine is not None and last.machine is not None and broker is not None:
        others = max(0.0, (last.machine - first.machine) / seconds - broker - own)
    return Run(
        scenario=scenario.name,
        server=server,
        seconds=seconds,
        messages=messages,
        deliveries=deliveries,
        checked=counters["unique"],
        messages_per_second=messages / seconds,
        deliveries_per_second=deliveries / seconds,
        broker_us_per_delivery=per_delivery,
        broker_busy=broker,
        generator_busy=own,
        generator_bound=own > GENERATOR_BUSY and not scenario.rate,
        others_busy=others,
        broker_resident_bytes=resident,
        latency_us=latency,
        faults={name: counters[name] for name in FAULTS},
        complaint=_words(complaint),
    )


def _run(generator: Generator, scenario: Scenario, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not (generator.closed_by_broker or generator.refused):
        generator.run(min(left, SLICE_SECONDS), scenario.rate)


def _latency(generator: Generator) -> dict[str, float]:
    quantiles = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
    found = {name: generator.quantile(share) * 1e6 for name, share in quantiles.items()}
    # How late the generator itself was with its schedule: what a latency above is not the broker's fault.
    return {**found, "schedule_lag_max": generator.schedule_lag_ns / 1e3}


def _words(body: bytes) -> str:
    if not body:
        return ""
    try:
        return frames.explain(frames.unpack(body))
    except frames.Refused:  # cut off, or damaged
        return repr(body)
