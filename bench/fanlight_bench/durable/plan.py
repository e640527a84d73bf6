"""Which rows are measured of which brokers, in which order; the runs, and the report of them.

A round has one run of each broker in turn, so that other work of the machine affects all alike. Rates share one start
of a broker; each other row has a broker and a folder of its own. A run that breaks off is a row that says so.

The report has what that of fanlight_bench/peers has (results.py), and `storage`: the device and its file system.
"""

import contextlib
import datetime
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fanlight_bench.durable import rows, waiting
from fanlight_bench.durable.brokers import KEEPERS, FanlightInMemory, Keeper, up
from fanlight_bench.durable.disk import Device
from fanlight_bench.durable.rows import Bounds, Row
from fanlight_bench.launch import on_cpu
from fanlight_bench.machine import machine
from fanlight_bench.peers import plan
from fanlight_bench.peers.compare import many_files, processors
from fanlight_bench.peers.drive import drive
from fanlight_bench.peers.results import METRICS as STREAM_METRICS
from fanlight_bench.peers.results import Report, medians

Log = Callable[[str], None]

# Of a row, what has a median; with those of the rows of fanlight_bench/peers.
METRICS = tuple(dict.fromkeys((
    *STREAM_METRICS, "device_bytes_per_byte", "device_bytes_per_byte_first",
    "device_bytes_per_delivery", "flushes", "messages_per_flush",
    "syncs", "messages_per_sync", "p50_to_growing", "p99_to_growing", "p50_to_recycled", "p99_to_recycled",
    "bare_growing_p50_us", "bare_growing_p99_us", "bare_growing_per_second", "bare_recycled_p50_us",
    "bare_recycled_p99_us", "bare_recycled_per_second", "resident_bytes_above_idle", "disk_bytes_per_byte",
    "disk_bytes", "disk_to_once", "rate_kept",
    "restart_seconds", "start_seconds", "one_session_per_second",
    "bare_reads_per_second", "sessions_per_second", "retained_per_second",
)))  # fmt: skip

EVERYBODY = tuple(KEEPERS)
STORED = ("fanlight", "fanlight-memory", "mosquitto")
OURS = ("fanlight", "fanlight-memory")
LOADS = {"1x1": (1, 1), "1x100": (1, 100), "100x10": (100, 10)}  # publishers, messages in flight of each
FILLED = ("100x10",)  # measured when the store's files are there: in this row it would make several a second
PAIRS = ("A", "B", "C", "D")
ONCE = ("backlog", "shared", "restart")


@dataclass(frozen=True)
class PlannedRow:
    """A row of the comparison."""

    name: str
    title: str
    keepers: tuple[str, ...]

    def rounds(self, rounds: int, pairs: int) -> int:
        """One, where it takes minutes; `pairs` of those whose difference is small."""
        return 1 if self.name in ONCE else pairs if self.name in PAIRS else rounds


PLANNED = {
    row.name: row
    for row in (
        PlannedRow("1x1", "1 publisher, 1 message in flight", EVERYBODY),
        PlannedRow("1x100", "1 publisher, 100 messages in flight", EVERYBODY),
        PlannedRow("100x10", "100 publishers, 10 messages in flight each", EVERYBODY),
        PlannedRow("fan-out", "one message to many absent sessions, all acknowledged later", STORED),
        PlannedRow("backlog", "messages that wait in absent sessions", ("fanlight",)),
        PlannedRow("shared", "the same messages waiting in many absent sessions", ("fanlight",)),
        PlannedRow("restart", "a restart after kill -9, with sessions and retained messages", ("fanlight",)),
        *(PlannedRow(letter, f"{plan.ASKED[letter].title}, nobody durable", OURS) for letter in PAIRS),
    )
}


@dataclass(frozen=True)
class Visit:
    """One start of a broker, and the rows that are measured then."""

    keeper: Keeper
    rows: tuple[PlannedRow, ...]
    round: int


def visits(asked: Sequence[PlannedRow], keepers: Sequence[Keeper], rounds: int, pairs: int) -> Iterator[Visit]:
    """All starts, in order."""
    together = tuple(row for row in asked if row.name in LOADS)
    groups = ([together] if together else []) + [(row,) for row in asked if row.name not in LOADS]
    for group in groups:
        for number in range(group[0].rounds(rounds, pairs)):
            for keeper in keepers:
                if keeper.name in group[0].keepers:
                    yield Visit(keeper, group, number)


def compare(
    asked: Sequence[PlannedRow], keepers: Sequence[Keeper], folder: Path, bounds: Bounds, log: Log, *,
    rounds: int, pairs: int,
) -> Report:  # fmt: skip
    """Run all of it in folders below this one; the report. ValueError: the folder is on no disk."""
    folder.mkdir(parents=True, exist_ok=True)
    device = Device.below(folder)
    present = [keeper for keeper in keepers if keeper.there()]
    absent = [keeper for keeper in keepers if not keeper.there()]
    for keeper in absent:
        log(f"{keeper.name} is left out: {keeper.missing or 'it is not installed'}")
    planned = list(visits(asked, present, rounds, pairs))
    log(f"{len(planned)} starts of {len(present)} brokers; data in {folder}, {device.file_system} on {device.name}")
    began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    runs: list[Row] = []
    complete = False
    with contextlib.suppress(KeyboardInterrupt), many_files():
        for at, visit in enumerate(planned, 1):
            for row in run(visit, folder, device, bounds):
                runs.append(row)
                log(f"[{at}/{len(planned)}] {words(row)}")
        complete = True
    return {
        "date": began,
        "machine": machine(),
        "storage": device.about(),
        "effort": {"rounds": rounds, "pairs": pairs, **asdict(bounds)},
        "complete": complete,
        "contenders": {keeper.name: _about(keeper) for keeper in present},
        "scenarios": {row.name: {"title": row.title} for row in asked},
        "missing": {keeper.name: keeper.missing or "it is not installed" for keeper in absent},
        "runs": runs,
        "medians": medians(runs, METRICS),
    }


def run(visit: Visit, folder: Path, device: Device, bounds: Bounds) -> Iterator[Row]:
    """The rows of one start, each as soon as it is measured; its folder is removed."""
    place = Path(tempfile.mkdtemp(prefix=f"{visit.keeper.name}-", dir=folder))
    heads = [{"scenario": row.name, "contender": visit.keeper.name, "round": visit.round} for row in visit.rows]
    measured = 0
    try:
        for figures in _figures(visit, place, device, bounds):
            yield heads[measured] | figures
            measured += 1
    except Exception as error:  # whatever it is: the rows say it, and the other runs are not lost for it
        for head in heads[measured:]:
            yield head | {"error": f"{type(error).__name__}: {error}"}
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _figures(visit: Visit, place: Path, device: Device, bounds: Bounds) -> Iterator[Row]:
    keeper, first = visit.keeper, visit.rows[0].name
    if first == "backlog":
        yield waiting.backlog(keeper, place, device, bounds)
    elif first == "shared":
        yield waiting.shared_backlog(keeper, place, bounds)
    elif first == "restart":
        yield waiting.restart(keeper, place, device, bounds)
    elif first in PAIRS:
        yield _pair(keeper, place, first, bounds)
    elif first == "fan-out":
        with _started(keeper, place) as there:
            yield rows.fan_out(keeper, there, device, bounds)
    else:
        with keeper.peer.start(place, None) as there:
            for row in visit.rows:
                if row.name == "1x1":
                    yield rows.one_at_a_time(keeper, there, device, bounds, place)
                else:
                    load, filled = LOADS[row.name], row.name in FILLED
                    yield rows.rates(keeper, there, device, bounds, f"load{row.name}", *load, filled=filled)


@contextlib.contextmanager
def _started(keeper: Keeper, place: Path) -> Iterator[Any]:
    """With bounds of queues that are large enough, where they are ours to set."""
    if isinstance(keeper.peer, FanlightInMemory):
        with keeper.peer.started(place, **waiting.LARGE) as broker:
            yield up(broker)
    else:
        with keeper.peer.start(place, None) as there:
            yield there


def _pair(keeper: Keeper, place: Path, letter: str, bounds: Bounds) -> Row:
    """A row of fanlight_bench/peers, pinned as there."""
    broker_cpu, generator_cpu = processors()
    with keeper.peer.start(place, broker_cpu) as there, on_cpu(generator_cpu):
        return drive(plan.ASKED[letter], there.url("mqtt"), bounds.duration, bounds.warmup, there.pid)


def _about(keeper: Keeper) -> Row:
    peer = keeper.peer
    return {
        "title": keeper.title,
        "broker": peer.name,
        "version": peer.version(),
        "protocol": keeper.scheme,
        "syncs": keeper.syncs,
        "configuration": peer.configuration(),
    }


SAID = {
    "messages_per_second": "/s", "stored_per_second": " stored/s", "deliveries_per_second": " deliveries/s",
    "p50_us": " µs p50", "p99_us": " µs p99", "us_per_message": " µs CPU a message", "flushes": " flushes",
    "restart_seconds": " s restart",
}  # fmt: skip


def words(row: Row) -> str:
    """A run in a line."""
    what = f"{row['scenario']}, round {row['round'] + 1}, {row['contender']}"
    if row.get("error"):
        return f"{what}: {str(row['error']).splitlines()[0]}"
    figures = [f"{row[name]:,.4g}{unit}" for name, unit in SAID.items() if row.get(name)]
    if row.get("faults"):
        figures.append(f"FAULTS {row['faults']} {row['complaint']}")
    return f"{what}: {', '.join(figures)}"
