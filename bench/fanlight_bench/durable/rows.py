"""The rows: what is measured of one broker that is running. Figures for JSON; see METRICS in plan.py.

`device_bytes_per_byte` and `flushes` are those of the whole device during the run: what a broker leaves in the page
cache for later is not in them, so they flatter a broker that does not sync.
"""

import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanlight_bench import procfs
from fanlight_bench.durable.brokers import Keeper
from fanlight_bench.durable.disk import BareSync, Device, Written
from fanlight_bench.durable.links import PAYLOAD_BYTES, Crew
from fanlight_bench.durable.stored_load import StoredLoad
from fanlight_bench.load.speaker import Refused
from fanlight_bench.peers.peer import Up

Row = dict[str, Any]

SLICES = 8  # of a run that takes turns with a bare fdatasync
GROUPS = "fanlight_store_groups_total"  # "Groups of entries written and synced together"
WRITTEN = "fanlight_store_bytes_written_total"
FILL_SECONDS = 0.25  # of load between two looks at it
FAN_OUT_PUBLISHERS, FAN_OUT_WINDOW = 100, 10


@dataclass(frozen=True)
class Bounds:
    """How long and how much. patience: seconds within which a large row must be stored; drain: within which all that
    was stored must be delivered. fill_bytes: that a store writes before a rate of it is measured, within `filling`
    seconds: four times what is between two of its checkpoints, so all its files are there and are written again."""

    duration: float = 2.0
    warmup: float = 0.5
    fill_bytes: int = 2**30
    filling: float = 120.0
    patience: float = 600.0
    drain: float = 120.0
    fan_out_sessions: int = 1_000
    fan_out_messages: int = 5_000
    backlog: int = 10_000_000
    backlog_sessions: int = 1_000
    shared: int = 1_000_000
    shared_sessions: int = 100
    sessions: int = 20_000
    subscriptions: int = 3
    retained: int = 100_000
    restart_backlog: int = 1_000_000


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


class Spent:
    """What stretches of a run have used, and the messages that were acknowledged in them, added up."""

    def __init__(self) -> None:
        self.seconds = self.broker = self.generator = 0.0
        self.messages = self.octets = self.flushes = 0
        self._counted = True

    def add(self, first: Moment, last: Moment, messages: int) -> None:
        """One stretch, from its first moment to its last."""
        written = last.written.since(first.written)
        self.messages += messages
        self.seconds += last.wall - first.wall
        self.broker += last.broker - first.broker
        self.generator += last.generator - first.generator
        self.octets += written.octets
        self.flushes += written.flushes or 0
        self._counted = self._counted and written.flushes is not None

    def figures(self, syncs: int | None) -> Row:
        """A message and a second, of one message at least. syncs: what the broker says it has synced meanwhile."""
        messages, flushes = self.messages, self.flushes if self._counted else None
        return {
            "messages_per_second": messages / self.seconds,
            "us_per_message": self.broker / messages * 1e6,
            "device_bytes_per_byte": self.octets / (messages * PAYLOAD_BYTES),
            "flushes": flushes,
            "messages_per_flush": messages / flushes if flushes else None,
            "syncs": syncs,
            "messages_per_sync": messages / syncs if syncs else None,
            "broker_busy": self.broker / self.seconds,
            "generator_busy": self.generator / self.seconds,
        }


def rates(
    keeper: Keeper, up: Up, device: Device, bounds: Bounds, prefix: str, publishers: int, window: int,
    between: Sequence[BareSync] = (), filled: bool = False,
) -> Row:  # fmt: skip
    """Messages/s that are kept, acknowledged, delivered to one consumer and acknowledged by it.

    between: what takes turns with the load, so that the same neighbours disturb both. filled: measure once the store
    writes to files that it has written before; `device_bytes_per_byte_first` is what the device wrote until then.
    """
    crew = Crew(keeper.courier, up.ports[keeper.scheme], prefix, publishers=publishers, window=window)
    crew.prepare()
    spent = Spent()
    slices = SLICES if between else 1
    # A bare fdatasync on one processor would wait there for a neighbour's time slice, which the broker's does not.
    with crew.there(publishers=True, consumers=[0], pinned=not between) as load:
        load.run(bounds.warmup)
        first_fill = fill(load, up, device, bounds) if filled else {}
        load.begin()
        groups_before = groups(up)
        for _ in range(slices):
            if between:
                load.drain(bounds.drain, load.published)
            for bare in between:
                bare.run(bounds.duration / slices / 4)
            spent.add(*_stretch(load, up, device, bounds.duration / slices))
        if not spent.messages:  # of none there is no rate
            spent.add(*_stretch(load, up, device, bounds.patience, load.acknowledged + 1))
        if not spent.messages:
            raise Refused(f"no message acknowledged within {bounds.patience:g} s; {load.complaint()!r}")
        groups_after = groups(up)
        syncs = None if groups_after is None or groups_before is None else groups_after - groups_before
        drained = load.drain(bounds.drain, load.published)
        row = spent.figures(syncs) | first_fill | {
            "p50_us": load.latency.quantile(0.5) / 1e3,
            "p99_us": load.latency.quantile(0.99) / 1e3,
        }
        return row | checked(crew, load.published, drained)


def _stretch(load: StoredLoad, up: Up, device: Device, seconds: float, upto: int = 0) -> tuple[Moment, Moment, int]:
    """Load for so long, or until `upto` messages are acknowledged in all: first and last moment, and how many were."""
    first, before = Moment.now(up, device), load.acknowledged
    load.run(seconds, upto)
    return first, Moment.now(up, device), load.acknowledged - before


def fill(load: StoredLoad, up: Up, device: Device, bounds: Bounds) -> Row:
    """Publish until the store has written `fill_bytes`; what the device wrote meanwhile, zeros in new files included.

    Nothing is published without a store, and no figure is there. Raises Refused: it took too long.
    """
    began = metric(up, WRITTEN)
    if began is None:
        return {}
    until, stored, first = time.perf_counter() + bounds.filling, load.acknowledged, device.written()
    while (metric(up, WRITTEN) or 0) < began + bounds.fill_bytes:
        if time.perf_counter() > until or load.broken():
            raise Refused(f"its log was not filled within {bounds.filling:g} s; {load.complaint()!r}")
        load.run(FILL_SECONDS)
    stored = load.acknowledged - stored
    octets = device.written().since(first).octets
    return {"device_bytes_per_byte_first": octets / (stored * PAYLOAD_BYTES) if stored else None}


def one_at_a_time(keeper: Keeper, up: Up, device: Device, bounds: Bounds, folder: Path) -> Row:
    """`rates` of one publisher that waits for each acknowledgement, in turns with a bare fdatasync."""
    with BareSync(folder, recycled=False) as growing, BareSync(folder, recycled=True) as recycled:
        row = rates(keeper, up, device, bounds, "one", 1, 1, [growing, recycled])
        for name, bare in (("growing", growing), ("recycled", recycled)):
            figures = bare.figures()
            row |= {f"bare_{name}_{figure}": value for figure, value in figures.items()}
            row |= {f"{what}_to_{name}": row[f"{what}_us"] / figures[f"{what}_us"] for what in ("p50", "p99")}
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


def checked(crew: Crew, deliveries: int, drained: bool) -> Row:
    """Whether each message came once, in order."""
    faults = crew.faults()
    if not drained or crew.load.right != deliveries:
        faults["lost"] = deliveries - crew.load.right
    return {"checked": crew.load.right, "faults": faults, "complaint": crew.load.complaint().decode(errors="replace")}


def groups(up: Up) -> int | None:
    """The groups that a Fanlight broker has written and synced; None of others, and without a store."""
    return metric(up, GROUPS)


def metric(up: Up, wanted: str) -> int | None:
    """A metric of a Fanlight broker; None of others, and of one that does not have it."""
    if "http" not in up.ports:
        return None
    with urllib.request.urlopen(f"{up.url('http')}/metrics", timeout=10.0) as answer:
        for line in answer.read().decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name == wanted:
                return int(float(value))
    return None
