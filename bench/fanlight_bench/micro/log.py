"""The store's log on this disk, beside a bare fdatasync: ns of wall-clock time a record of 300 bytes.

    one at a time  growing   a file that grows, a write and an fdatasync for each record
                   recycled  the same over blocks that were written before
                   log       append, seal, wait until it is synced
    in flight      64, 1000  so many wait at any time; what was synced is appended anew, an entry for each group
    append         Python    append alone, 64 records an entry, processor time of the loop; nothing is waited for

Beside growing: the others. p50 and p99 in µs. `loop` and `others` are µs of processor time a record, in the thread that
appends and in all others; `written` are bytes of the log for each byte of payload, `device` those that the whole disk
wrote meanwhile, by /proc/diskstats. The files are in TMPDIR: it must be a disk, not memory, for the figures to mean
anything. What neighbours do on the same disk is in all of them: compare within one run.
"""

import os
import select
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_broker.storage.log import Log

RECORD = bytes(300)
RECYCLED_BYTES = 4 << 20
LOTS = 4  # that are kept before files are used again


class Latencies:
    """Operations one after another, and how long each took."""

    def __init__(self, operation: Callable[[], None], operations: int) -> None:
        self.operation, self.operations = operation, operations
        self.ns: list[int] = []

    def turn(self) -> float:
        start = time.perf_counter_ns()
        for _ in range(self.operations):
            before = time.perf_counter_ns()
            self.operation()
            self.ns.append(time.perf_counter_ns() - before)
        return time.perf_counter_ns() - start

    def facts(self) -> Mapping[str, object]:
        cuts = statistics.quantiles(self.ns, n=100)
        return {"p50_us": round(cuts[49] / 1e3, 1), "p99_us": round(cuts[98] / 1e3, 1)}


class BareFile:
    """A write and an fdatasync."""

    def __init__(self, path: Path, recycled: bool) -> None:
        self.file = path.open("wb", buffering=0)
        self.fd, self.offset = self.file.fileno(), 0
        self.size = RECYCLED_BYTES if recycled else 0
        if recycled:
            os.pwrite(self.fd, bytes(RECYCLED_BYTES), 0)
            os.fdatasync(self.fd)

    def write(self) -> None:
        if self.size and self.offset + len(RECORD) > self.size:
            self.offset = 0
        os.pwrite(self.fd, RECORD, self.offset)
        os.fdatasync(self.fd)
        self.offset += len(RECORD)


class BenchLog:
    """A log that nothing is kept in."""

    def __init__(self, folder: Path) -> None:
        self.log = Log(folder, lambda: None)
        for _ in self.log.replay():
            raise RuntimeError("a new log has entries")
        self.log.reclaim()
        self.poll = select.poll()
        self.poll.register(self.log.fileno(), select.POLLIN)
        self.turns = self.records = 0
        self.ns = self.loop_ns = self.all_ns = 0
        self.written = self.sectors = 0

    def wait(self) -> None:
        self.poll.poll()
        self.log.collect()
        lots = self.log.lots
        if len(lots) > LOTS and lots[-2].first > self.log.floor:
            self.log.raise_floor(self.log.synced)

    def one(self) -> None:
        self.log.append(1, RECORD)
        self.log.seal()
        while self.log.synced < self.log.appended:
            self.wait()

    def in_flight(self, records: int, operations: int) -> float:
        """`operations` records, `records` of which wait until they are synced."""
        start, loop, everything = time.perf_counter_ns(), time.thread_time_ns(), time.process_time_ns()
        written, sectors = self.log.bytes_written, device_sectors(self.log.folder)
        waiting: deque[tuple[int, int]] = deque()
        free, left = records, operations
        while left or waiting:
            count = min(free, left)
            for _ in range(count):
                self.log.append(1, RECORD)
            if count:
                self.log.seal()
                waiting.append((self.log.appended, count))
                free, left = free - count, left - count
            self.wait()
            while waiting and waiting[0][0] <= self.log.synced:
                free += waiting.popleft()[1]
        elapsed = time.perf_counter_ns() - start
        self.turns += 1
        if self.turns == 1:
            return elapsed  # files were made meanwhile
        self.ns += elapsed
        self.records += operations
        self.loop_ns += time.thread_time_ns() - loop
        self.all_ns += time.process_time_ns() - everything
        self.written += self.log.bytes_written - written
        self.sectors += device_sectors(self.log.folder) - sectors
        return elapsed

    def append(self, operations: int) -> float:
        def entry() -> None:
            for _ in range(64):
                self.log.append(1, RECORD)
            self.log.seal()

        spent = 0
        for _ in range(operations // 64):
            spent += timed(entry)
            while self.log.full:
                self.wait()
        return spent

    def facts(self) -> Mapping[str, object]:
        payload = self.records * len(RECORD)
        return {
            "records_per_second": round(self.records / self.ns * 1e9),
            "loop_us": round(self.loop_ns / self.records / 1e3, 3),
            "others_us": round((self.all_ns - self.loop_ns) / self.records / 1e3, 3),
            "written": round(self.written / payload, 3),
            "device": round(self.sectors * 512 / payload, 3),
        }


def in_flight(bench: BenchLog, records: int, operations: int) -> Case:
    return Case(str(records), operations, partial(bench.in_flight, records, operations), (), bench.facts)


def device_sectors(folder: Path) -> int:
    """That its disk has written so far; 0: it has none that the kernel knows."""
    device = folder.stat().st_dev
    for line in Path("/proc/diskstats").read_text(encoding="ascii").splitlines():
        fields = line.split()
        if (int(fields[0]), int(fields[1])) == (os.major(device), os.minor(device)):
            return int(fields[9])
    return 0


def groups(effort: Effort) -> Iterator[Group]:
    each = 20 if effort.quick else 500
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        growing, recycled = BareFile(folder / "growing", False), BareFile(folder / "recycled", True)
        single = BenchLog(folder / "single")
        cases = {"growing": growing.write, "recycled": recycled.write, "log": single.one}
        latencies = {name: Latencies(operation, each) for name, operation in cases.items()}
        beside: dict[str, tuple[str, ...]] = {
            "growing": (),
            "recycled": ("growing",),
            "log": ("growing", "recycled"),
        }
        yield Group(
            "one at a time",
            [Case(name, each, found.turn, beside[name], found.facts) for name, found in latencies.items()],
        )
        flights = {flight: BenchLog(folder / f"{flight}") for flight in (64, 1000)}
        yield Group(
            "in flight",
            [in_flight(bench, flight, flight * each // 2) for flight, bench in flights.items()],
        )
        yield Group("append", [Case("Python", 640 * each, partial(single.append, 640 * each))])
        for bench in (single, *flights.values()):
            bench.log.close()
        growing.file.close()
        recycled.file.close()
