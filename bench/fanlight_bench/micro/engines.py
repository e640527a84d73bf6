"""The store's log beside embedded databases: ns of wall-clock time a message that is stored, synced and acknowledged.

    stored 64, 1000    so many messages of 256 bytes a sync, each for one of 1,000 queues; the group before is
                       acknowledged in the same one
    fan-out            a message for 1,000 queues, each of which acknowledges it; 20 messages a sync
    backlog            as stored 64, while many messages wait: each group acknowledges the oldest, of all queues in turn

A database has a table of bodies and one of references, ordered by queue and number; a group is a transaction. The log
has a record for each message, and one a group for all acknowledgements; its references are in memory. All are driven
from Python, one operation after another, in one thread. SQLite comes with Python: WAL, synchronous FULL. LMDB and
RocksDB are measured where they are installed: `pip install lmdb rocksdict`.

`device` are bytes that the disk wrote for each byte of payload, by /proc/diskstats; `cpu_us` is processor time of the
process. The files are in TMPDIR: it must be a disk. decisions/0013 has the figures that decided for a log.
"""

import importlib.util
import select
import sqlite3
import struct
import tempfile
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from fanlight_bench.micro.case import Case, Effort, Group
from fanlight_bench.micro.log import device_sectors
from fanlight_broker.storage.log import Log

PAYLOAD = 256
QUEUES = 1_000
BODY = bytes(range(256))
RECORD_TYPE = 1
RUN = struct.Struct("<HQH")  # of a queue: first number, how many

Stored = Sequence[tuple[int, Sequence[int]]]  # number of a message, the queues that it is for
Ended = Sequence[tuple[int, Sequence[int]]]  # the same, of what is acknowledged


class Engine(ABC):
    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder

    @abstractmethod
    def commit(self, stored: Stored, ended: Ended) -> None:
        """Return when both are synced."""

    @abstractmethod
    def close(self) -> None: ...


class Sqlite(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.base = sqlite3.connect(folder / "store.db", isolation_level=None)
        self.base.execute("PRAGMA journal_mode = WAL")
        self.base.execute("PRAGMA synchronous = FULL")
        self.base.execute("CREATE TABLE messages (number INTEGER PRIMARY KEY, left INTEGER, body BLOB)")
        key = "PRIMARY KEY (queue, number)"
        self.base.execute(f"CREATE TABLE refs (queue INTEGER, number INTEGER, {key}) WITHOUT ROWID")

    def commit(self, stored: Stored, ended: Ended) -> None:
        run = self.base.executemany
        self.base.execute("BEGIN")
        run("INSERT INTO messages VALUES (?, ?, ?)", ((number, len(queues), BODY) for number, queues in stored))
        run("INSERT INTO refs VALUES (?, ?)", ((queue, number) for number, queues in stored for queue in queues))
        run(
            "DELETE FROM refs WHERE queue = ? AND number = ?",
            ((queue, number) for number, queues in ended for queue in queues),
        )
        run("DELETE FROM messages WHERE number = ?", ((number,) for number, _ in ended))
        self.base.execute("COMMIT")

    def close(self) -> None:
        self.base.close()


def reference(queue: int, number: int) -> bytes:
    return queue.to_bytes(8, "big") + number.to_bytes(8, "big")


class Lmdb(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        lmdb: Any = importlib.import_module("lmdb")
        self.environment = lmdb.open(str(folder), map_size=8 << 30, max_dbs=2)
        self.messages = self.environment.open_db(b"messages")
        self.references = self.environment.open_db(b"references")

    def commit(self, stored: Stored, ended: Ended) -> None:
        with self.environment.begin(write=True) as transaction:
            put, delete = transaction.put, transaction.delete
            for number, queues in stored:
                put(number.to_bytes(8, "big"), BODY, db=self.messages, append=True)
                for queue in queues:
                    put(reference(queue, number), b"", db=self.references)
            for number, queues in ended:
                for queue in queues:
                    delete(reference(queue, number), db=self.references)
                delete(number.to_bytes(8, "big"), db=self.messages)

    def close(self) -> None:
        self.environment.close()


class RocksDb(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.rocksdict: Any = importlib.import_module("rocksdict")
        self.base = self.rocksdict.Rdict(str(folder), self.rocksdict.Options(raw_mode=True))
        self.options = self.rocksdict.WriteOptions()
        self.options.sync = True

    def commit(self, stored: Stored, ended: Ended) -> None:
        batch = self.rocksdict.WriteBatch(raw_mode=True)
        for number, queues in stored:
            batch.put(b"m" + number.to_bytes(8, "big"), BODY)
            for queue in queues:
                batch.put(reference(queue, number), b"")
        for number, queues in ended:
            for queue in queues:
                batch.delete(reference(queue, number))
            batch.delete(b"m" + number.to_bytes(8, "big"))
        self.base.write(batch, self.options)

    def close(self) -> None:
        self.base.close()


class OwnLog(Engine):
    """References are numbers in memory, a set of queues that occurs again is one number, and what a queue acknowledges
    in a group is a run of numbers: as the store does it, in Python.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.log = Log(folder, lambda: None)
        for _ in self.log.replay():
            raise RuntimeError("a new log has entries")
        self.poll = select.poll()
        self.poll.register(self.log.fileno(), select.POLLIN)
        self.queues: list[deque[int]] = [deque() for _ in range(QUEUES)]

    def commit(self, stored: Stored, ended: Ended) -> None:
        append = self.log.append
        for number, queues in stored:
            for queue in queues:
                self.queues[queue].append(number)
            slot = queues[0] if len(queues) == 1 else 1 << 31
            append(RECORD_TYPE, number.to_bytes(8, "little") + slot.to_bytes(4, "little") + BODY)
        done = bytearray()
        for queues, following in groupby(ended, key=itemgetter(1)):
            numbers = [number for number, _ in following]
            for queue in queues:
                waiting = self.queues[queue]
                if [waiting.popleft() for _ in numbers] != numbers:
                    raise RuntimeError("a queue has other messages")
                done += RUN.pack(queue, numbers[0], len(numbers))
        if done:
            append(RECORD_TYPE, bytes(done))
        self.log.seal()
        while self.log.synced < self.log.appended:
            self.poll.poll()
            self.log.collect()

    def close(self) -> None:
        self.log.close()


class EngineLoad:
    """Groups of messages for one engine. spread: queues of a message; ahead: messages that wait all the time."""

    def __init__(self, engine: Engine, group: int, spread: int, ahead: int) -> None:
        self.engine, self.group, self.spread = engine, group, spread
        self.next = 0
        self.waiting: deque[tuple[int, Sequence[int]]] = deque()
        self.ns = self.cpu_ns = self.messages = self.sectors = 0
        while ahead > 0:
            self.engine.commit(self._new(min(ahead, 10_000)), ())
            ahead -= 10_000

    def _new(self, count: int) -> Stored:
        found = []
        for number in range(self.next, self.next + count):
            queues = range(QUEUES) if self.spread == QUEUES else (number % QUEUES,)
            found.append((number, queues))
        self.next += count
        self.waiting.extend(found)
        return found

    def turn(self, groups: int) -> float:
        sectors = device_sectors(self.engine.folder)
        start, cpu = time.perf_counter_ns(), time.process_time_ns()
        for _ in range(groups):
            ended = [self.waiting.popleft() for _ in range(min(self.group, len(self.waiting)))]
            self.engine.commit(self._new(self.group), ended)
        spent = time.perf_counter_ns() - start
        self.ns += spent
        self.cpu_ns += time.process_time_ns() - cpu
        self.messages += groups * self.group
        self.sectors += device_sectors(self.engine.folder) - sectors
        return spent

    def facts(self) -> Mapping[str, object]:
        return {
            "messages_per_second": round(self.messages / self.ns * 1e9),
            "cpu_us": round(self.cpu_ns / self.messages / 1e3, 2),
            "device": round(self.sectors * 512 / self.messages / PAYLOAD, 2),
        }


ENGINES: Mapping[str, tuple[type[Engine], str | None]] = {
    "log": (OwnLog, None), "SQLite": (Sqlite, None), "LMDB": (Lmdb, "lmdb"), "RocksDB": (RocksDb, "rocksdict"),
}  # fmt: skip


def installed(module: str | None) -> bool:
    return module is None or importlib.util.find_spec(module) is not None


def groups(effort: Effort) -> Iterator[Group]:
    chosen = {name: made for name, (made, module) in ENGINES.items() if installed(module)}
    missing = {name: "not installed" for name in ENGINES if name not in chosen}
    few = effort.quick
    backlog = effort.sized(300_000, 2_000)
    loads = {  # messages a group, queues of each, messages that wait; groups a turn
        "stored 64": (64, 1, 0, 4 if few else 50),
        "stored 1000": (1_000, 1, 0, 1 if few else 8),
        "fan-out": (20, QUEUES, 0, 1 if few else 2),
        "backlog": (64, 1, backlog, 4 if few else 30),
    }
    for name, (group, spread, ahead, turns) in loads.items():
        with tempfile.TemporaryDirectory() as folder:
            running = {
                each: EngineLoad(made(Path(folder) / each), group, spread, ahead) for each, made in chosen.items()
            }
            yield Group(
                name,
                [
                    Case(each, turns * group, partial(load.turn, turns), () if each == "log" else ("log",), load.facts)
                    for each, load in running.items()
                ],
                missing,
            )
            for load in running.values():
                load.engine.close()
