"""The rows of Fanlight alone: a backlog in absent sessions, and a restart. The broker is killed, not stopped."""

import shutil
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fanlight_bench import procfs
from fanlight_bench.durable.brokers import FanlightInMemory, Keeper, up
from fanlight_bench.durable.couriers import MqttCourier
from fanlight_bench.durable.disk import Device, bare_reads, bytes_in, drop_cache
from fanlight_bench.durable.links import PAYLOAD_BYTES, Crew, converse, opened
from fanlight_bench.durable.rows import Bounds, Row, checked, rates
from fanlight_bench.durable.stored_load import StoredLoad
from fanlight_bench.launch import Broker, LaunchError, Patience
from fanlight_bench.load.speaker import Refused

# So that no bound of the broker's is what is measured.
LARGE: dict[str, object] = {
    "queue_messages_max": 100_000_000, "queue_bytes_max": "1TiB", "stored_bytes_max": "1TiB", "share_percent": 100,
    "retained_bytes_max": "1TiB", "retained_messages_max": 10_000_000, "sessions_bytes_max": "1TiB",
    "sessions_max": 1_000_000,
}  # fmt: skip
PUBLISHERS, WINDOW = 100, 10
RETAINED_WINDOW = 1_000
AT_ONCE = 1_000          # sessions that are made at a time: each needs a socket
READY_POLL_SECONDS = 0.02
SETTLED_SECONDS = 0.3    # in which a file that is being made grows


def backlog(keeper: Keeper, folder: Path, device: Device, bounds: Bounds) -> Row:
    """Messages wait in absent sessions: what they take, the rate beside them, a restart, and taking them.

    The rate without them is that of another broker: files that it has made would hold a part of the backlog.
    """
    peer = _ours(keeper)
    row: Row = {}
    with peer.started(folder / "empty", **LARGE) as broker:
        empty = rates(keeper, up(broker), device, bounds, "before", PUBLISHERS, WINDOW, filled=True)
        broker.kill()
    shutil.rmtree(folder / "empty", ignore_errors=True)
    with peer.started(folder, **LARGE) as broker:
        crew = _crew(keeper, broker.mqtt_port, bounds.backlog_sessions)
        row |= _stored(crew, broker, folder, bounds.backlog, bounds)
        beside = rates(keeper, up(broker), device, bounds, "beside", PUBLISHERS, WINDOW, filled=True)
        row["messages_per_second"] = beside["messages_per_second"]
        row["rate_kept"] = beside["messages_per_second"] / empty["messages_per_second"]
        broker.kill()
    broker, row["restart_seconds"] = restarted(peer, folder)
    with broker:
        row["resident_bytes"] = _resident(broker)
        crew.moved(broker.mqtt_port)
        drop_cache(folder)
        logs = sorted(folder.rglob("log-*"))
        if logs:
            row["bare_reads_per_second"] = bare_reads(logs, crew.load.published_to(0))
            drop_cache(folder)
        row["one_session_per_second"], _ = _take(crew, [0], crew.load.published_to(0), bounds)
        rest = range(1, bounds.backlog_sessions)
        row["deliveries_per_second"], drained = _take(crew, rest, bounds.backlog, bounds)
        return _with_faults(row | checked(crew, bounds.backlog, drained), empty, beside)


def shared_backlog(keeper: Keeper, folder: Path, bounds: Bounds) -> Row:
    """The same messages wait in many absent sessions: what they take, beside what they take in one."""
    once, row = (_shared(keeper, folder / str(sessions), sessions, bounds) for sessions in (1, bounds.shared_sessions))
    if once["disk_bytes_per_byte"] > 0:
        row["disk_to_once"] = row["disk_bytes_per_byte"] / once["disk_bytes_per_byte"]
    return _with_faults(row, once)


def _shared(keeper: Keeper, folder: Path, sessions: int, bounds: Bounds) -> Row:
    """Messages that wait in so many sessions each."""
    with _ours(keeper).started(folder, **LARGE) as broker:
        crew = Crew(
            keeper.courier, broker.mqtt_port, "all", publishers=PUBLISHERS, window=WINDOW,
            consumers=[0] * sessions, behind=0,
        )  # fmt: skip
        row = _stored(crew, broker, folder, bounds.shared, bounds)
        row["deliveries_per_second"], drained = _take(crew, range(sessions), bounds.shared * sessions, bounds)
        return row | checked(crew, bounds.shared * sessions, drained)


def _stored(crew: Crew, broker: Broker, folder: Path, messages: int, bounds: Bounds) -> Row:
    """Store messages for absent sessions: how fast, and what they take."""
    crew.prepare()
    disk, idle = _settled_bytes(folder), _resident(broker)
    row: Row = {"stored_per_second": _store(crew, messages, bounds)}
    row["resident_bytes_above_idle"] = _resident(broker) - idle
    row["disk_bytes_per_byte"] = (_settled_bytes(folder) - disk) / (messages * PAYLOAD_BYTES)
    return row


def _settled_bytes(folder: Path) -> int:
    """What the folder takes once no file in it is being made. LaunchError: one always is."""
    until, before, size = time.perf_counter() + Patience.seconds, -1, bytes_in(folder)
    while size != before:
        if time.perf_counter() > until:
            raise LaunchError(f"{folder} still grows after {Patience.seconds:g} s")
        time.sleep(SETTLED_SECONDS)
        before, size = size, bytes_in(folder)
    return size


def restart(keeper: Keeper, folder: Path, device: Device, bounds: Bounds) -> Row:
    """Start again with many sessions, retained messages and waiting messages."""
    peer = _ours(keeper)
    nothing = folder / "nothing"
    nothing.mkdir()
    broker, without = restarted(peer, nothing)
    with broker:
        idle = _resident(broker)
    row: Row = {"start_seconds": without}
    with peer.started(folder, **LARGE) as broker:
        row["sessions_per_second"] = _many_sessions(keeper, broker.mqtt_port, bounds)
        row["retained_per_second"] = _retain(keeper, broker.mqtt_port, bounds)
        crew = _crew(keeper, broker.mqtt_port, bounds.backlog_sessions)
        crew.prepare()
        row["stored_per_second"] = _store(crew, bounds.restart_backlog, bounds)
        row["disk_bytes"] = bytes_in(folder)
        broker.kill()
    drop_cache(folder)
    broker, row["restart_seconds"] = restarted(peer, folder)
    with broker:
        row["resident_bytes_above_idle"] = _resident(broker) - idle
    return row | {"faults": {}, "complaint": ""}


def restarted(peer: FanlightInMemory, folder: Path) -> tuple[Broker, float]:
    """A broker on this folder, and the seconds from its start until it says that it is ready."""
    begun = time.perf_counter()
    broker = peer.started(folder, **LARGE)
    try:
        while not _ready(broker):
            if time.perf_counter() > begun + Patience.seconds:
                raise LaunchError(f"not ready within {Patience.seconds:g} s")
            time.sleep(READY_POLL_SECONDS)
    except BaseException:
        broker.kill()
        raise
    return broker, time.perf_counter() - begun


def _ready(broker: Broker) -> bool:
    try:
        with urllib.request.urlopen(f"{broker.http_url}/readyz", timeout=5.0) as answer:
            return int(answer.status) == 200
    except urllib.error.HTTPError:  # 503: not yet
        return False


def _ours(keeper: Keeper) -> FanlightInMemory:
    if not isinstance(keeper.peer, FanlightInMemory):
        raise Refused(f"{keeper.name} is not started again here: these rows are of Fanlight")
    return keeper.peer


def _resident(broker: Broker) -> int:
    return procfs.resident_bytes(broker.pid) or 0


def _crew(keeper: Keeper, port: int, sessions: int) -> Crew:
    return Crew(
        keeper.courier, port, "late", publishers=PUBLISHERS, window=WINDOW, consumers=range(sessions), topics=sessions,
        behind=0,
    )  # fmt: skip


def _store(crew: Crew, messages: int, bounds: Bounds) -> float:
    """Publish so many; messages a second."""
    with crew.there(publishers=True, consumers=[]) as load:
        return _published(load, messages, bounds)


def _published(load: StoredLoad, messages: int, bounds: Bounds) -> float:
    begun = time.perf_counter()
    load.run(bounds.patience, messages)
    if load.acknowledged < messages:
        raise Refused(f"{load.acknowledged:,} of {messages:,} messages stored; {load.complaint()!r}")
    return messages / (time.perf_counter() - begun)


def _take(crew: Crew, consumers: Sequence[int], wanted: int, bounds: Bounds) -> tuple[float, bool]:
    """Have these sessions come back and take what waits: deliveries a second, and whether there are as many in all."""
    begun = time.perf_counter()
    before = crew.load.received
    with crew.there(publishers=False, consumers=consumers) as load:
        drained = load.drain(bounds.drain, wanted)
        return (load.received - before) / (time.perf_counter() - begun), drained


def _many_sessions(keeper: Keeper, port: int, bounds: Bounds) -> float:
    """Sessions that are away, each with subscriptions of its own; how many a second were made."""
    assert isinstance(keeper.courier, MqttCourier)
    begun = time.perf_counter()
    for start in range(0, bounds.sessions, AT_ONCE):
        names = [f"away-{number}" for number in range(start, min(bounds.sessions, start + AT_ONCE))]
        filters = [[f"away/{name}/{at}" for at in range(bounds.subscriptions)] for name in names]
        scripts = [[(keeper.courier.subscribe(own), 1)] for own in filters]
        with opened(keeper.courier, ("127.0.0.1", port), names, kept=True) as links:
            converse(keeper.courier, links, scripts)
    return bounds.sessions / (time.perf_counter() - begun)


def _retain(keeper: Keeper, port: int, bounds: Bounds) -> float:
    """Retained messages, one a topic; how many a second were acknowledged."""
    crew = Crew(
        keeper.courier, port, "kept", publishers=1, window=RETAINED_WINDOW, consumers=[], topics=bounds.retained,
        behind=0, retain=True,
    )  # fmt: skip
    with crew.there(publishers=True, consumers=[]) as load:
        return _published(load, bounds.retained, bounds)


def _with_faults(row: Row, *others: Row) -> Row:
    """The row, with the faults of what was measured on the way."""
    faults: Counter[str] = Counter(row["faults"])
    for other in others:
        faults.update(other["faults"])
    return row | {"faults": dict(faults)}
