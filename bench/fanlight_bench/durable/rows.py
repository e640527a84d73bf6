"""The rows: what is measured of one broker that is running. Figures for JSON; see METRICS in plan.py.

`device_bytes_per_byte` and `flushes` are those of the whole device during the run: what a broker leaves in the page
cache for later is not in them, so they flatter a broker that does not sync.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanlight_bench import procfs
from fanlight_bench.durable.brokers import Keeper
from fanlight_bench.durable.disk import Device, Written, bare_sync
from fanlight_bench.durable.links import PAYLOAD_BYTES, Crew
from fanlight_bench.load.speaker import Refused
from fanlight_bench.peers.peer import Up

Row = dict[str, Any]

BARE_SECONDS = 0.4
FAN_OUT_PUBLISHERS, FAN_OUT_WINDOW = 100, 10


@dataclass(frozen=True)
class Bounds:
    """How long and how much. patience: seconds within which a large row must be stored; drain: within which all that
    was stored must be delivered."""

    duration: float = 2.0
    warmup: float = 0.5
    patience: float = 600.0
    drain: float = 120.0
    fan_out_sessions: int = 1_000
    fan_out_messages: int = 5_000
    backlog: int = 1_000_000
    backlog_sessions: int = 1_000
    shared_sessions: int = 100
    sessions: int = 20_000
    subscriptions: int = 3
    retained: int = 100_000


@dataclass(frozen=True)
class Moment:
    """What has been used up so far."""

    wall: float
    broker: float      # seconds of processor time of the broker's processes
    generator: float
    written: Written

    @classmethod
    def now(cls, up: Up, device: Device) -> "Moment":
        pids = [up.pid, *procfs.descendants(up.pid)]
        used = sum(procfs.process_seconds(pid) or 0.0 for pid in pids)
        return cls(time.perf_counter(), used, time.process_time(), device.written())


def rates(keeper: Keeper, up: Up, device: Device, bounds: Bounds, prefix: str, publishers: int, window: int) -> Row:
    """Messages/s that are kept, acknowledged, delivered to one consumer and acknowledged by it."""
    crew = Crew(keeper.courier, up.ports[keeper.scheme], prefix, publishers=publishers, window=window)
    crew.prepare()
    with crew.there(publishers=True, consumers=[0]) as load:
        load.run(bounds.warmup)
        load.begin()
        first, before = Moment.now(up, device), load.acknowledged
        load.run(bounds.duration)
        last, messages = Moment.now(up, device), load.acknowledged - before
        drained = load.drain(bounds.drain, load.published)
        row = _used(first, last, messages)
        row |= {
            "messages_per_second": messages / (last.wall - first.wall),
            "p50_us": load.latency.quantile(0.5) / 1e3,
            "p99_us": load.latency.quantile(0.99) / 1e3,
            "us_per_message": (last.broker - first.broker) / messages * 1e6 if messages else None,
        }
        return row | checked(crew, load.published, drained)


def bare(folder: Path) -> Row:
    """What one fdatasync takes at this moment, of a growing and of a recycled file."""
    row: Row = {}
    for name, recycled in (("growing", False), ("recycled", True)):
        for figure, value in bare_sync(folder, BARE_SECONDS, recycled=recycled).items():
            row[f"bare_{name}_{figure}"] = value
    return row


def one_at_a_time(keeper: Keeper, up: Up, device: Device, bounds: Bounds, folder: Path) -> Row:
    """`rates` of one publisher that waits for each acknowledgement, beside a bare fdatasync just before it."""
    row = bare(folder) | rates(keeper, up, device, bounds, "one", 1, 1)
    for figure in ("p50_us", "p99_us"):
        for name in ("growing", "recycled"):
            row[f"{figure.removesuffix('_us')}_to_{name}"] = row[figure] / row[f"bare_{name}_{figure}"]
    return row


def fan_out(keeper: Keeper, up: Up, device: Device, bounds: Bounds) -> Row:
    """One message to many absent sessions: stored, then taken and acknowledged by all of them."""
    sessions, messages = bounds.fan_out_sessions, bounds.fan_out_messages
    crew = Crew(
        keeper.courier, up.ports[keeper.scheme], "all", publishers=FAN_OUT_PUBLISHERS, window=FAN_OUT_WINDOW,
        consumers=[0] * sessions, behind=0,
    )  # fmt: skip
    crew.prepare()
    first = Moment.now(up, device)
    with crew.there(publishers=True, consumers=[]) as load:
        begun = time.perf_counter()
        load.run(bounds.patience, messages)
        stored = time.perf_counter() - begun
    if crew.load.acknowledged < messages:
        raise Refused(f"{crew.load.acknowledged:,} of {messages:,} messages stored; {crew.load.complaint()!r}")
    begun = time.perf_counter()  # a broker sends as soon as a session is back
    with crew.there(publishers=False, consumers=range(sessions)) as load:
        drained = load.drain(bounds.drain, messages * sessions)
        taken = time.perf_counter() - begun
    last = Moment.now(up, device)
    written = last.written.since(first.written)
    return {
        "stored_per_second": messages / stored,
        "deliveries_per_second": messages * sessions / taken,
        "device_bytes_per_delivery": written.octets / (messages * sessions),
        "us_per_delivery": (last.broker - first.broker) / (messages * sessions) * 1e6,
        **checked(crew, messages * sessions, drained),
    }


def _used(first: Moment, last: Moment, messages: int) -> Row:
    """What a run has used, a message and in all."""
    written = last.written.since(first.written)
    took = last.wall - first.wall
    return {
        "device_bytes_per_byte": written.octets / (messages * PAYLOAD_BYTES) if messages else None,
        "flushes": written.flushes,
        "messages_per_flush": messages / written.flushes if written.flushes else None,
        "broker_busy": (last.broker - first.broker) / took,
        "generator_busy": (last.generator - first.generator) / took,
    }


def checked(crew: Crew, deliveries: int, drained: bool) -> Row:
    """Whether each message came once, in order."""
    faults = crew.faults()
    if not drained or crew.load.right != deliveries:
        faults["lost"] = deliveries - crew.load.right
    return {"checked": crew.load.right, "faults": faults, "complaint": crew.load.complaint().decode(errors="replace")}
