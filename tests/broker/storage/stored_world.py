"""A broker over a store, for tests: it can stop at any moment and be made anew from what was synced."""

import shutil
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fanlight_broker.storage.checkpoint import Checkpoint
from fanlight_broker.storage.disk import Disk
from fanlight_broker.storage.live_marking import LiveMarking
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.message_reader import MessageReader
from fanlight_broker.storage.message_records import read_message
from fanlight_broker.storage.pager import Pager, Read
from fanlight_broker.storage.recovery import Recovered, recover
from fanlight_broker.storage.store import Store
from fanlight_broker.storage.stored_backlog import StoredBacklog
from fanlight_broker.wire.message import Format
from fanlight_broker.wire.queue import Queue
from tests.broker.core.sessions import World

WALL = 1_700_000_000.0  # wall-clock time at 0 of the clock of the first broker


OPENED: list["StoredWorld"] = []  # of the present test; conftest.py closes their logs


class StoredWorld(World):
    """A World whose turns end when `turn` is called. `wall` goes on with `now`.

    garbage_bytes  after which a round begins; a huge number: when `checkpoint.begin` is called
    segment_bytes  of a file of the log
    reserves       smaller files of it
    formats        of messages, by name, beside the one of its own clients
    """

    def __init__(
        self, folder: Path, *, garbage_bytes: int = 1 << 40, segment_bytes: int = 64 << 10, disk: Disk | None = None,
        reserves: int = 0, formats: Mapping[str, Format] | None = None, **limits: Any,
    ) -> None:
        self._disk, self._reserves = disk, reserves
        self._limits, self._garbage_bytes, self._segment_bytes = limits, garbage_bytes, segment_bytes
        self._formats = formats or {}
        self._after = 0  # no entry up to this is replayed
        self._folder, self._starts = folder, 0
        self._ahead = WALL  # of `now`, which begins again with each broker
        self.hurried = 0  # times that the store wanted to seal
        super().__init__(**limits)
        self.recovered = self._open()
        OPENED.append(self)

    @property
    def formats(self) -> dict[str, Format]:
        return {"lines": self.format, **self._formats}

    def _open(self) -> Recovered:
        self.log = Log(
            self._folder / str(self._starts), self._progress, threaded=False, segment_bytes=self._segment_bytes,
            disk=self._disk, reserves=self._reserves,
        )
        self.store = Store(
            self.log, self.broker.ledger, now=lambda: self.now, wall=lambda: self.wall, schedule=self._schedule,
            changed=lambda: self.broker.position_changed(self.now),
        )
        self.reads: deque[Callable[[], None]] = deque()
        self.store.pager = Pager(
            self.log, self.formats, self.broker.variants, now=lambda: self.now,
            ahead=lambda: self.store.records.wall, run=self._read, soon=self.reads.append,
        )
        self.steps: deque[Callable[[], None]] = deque()  # slices of a round
        self.marking = LiveMarking(self.store, self.broker, self.steps.append)
        self.progress: list[tuple[str, float, int]] = []  # of the start: what was done, its share, retained messages
        found = recover(
            self.store, self.broker, self.formats, now=self.now, wall=self.wall, after=self._after,
            progress=lambda doing, share, found: self.progress.append((doing, share, found().retained)),
        )
        self.checkpoint = Checkpoint(
            self.store, self.broker, self.steps.append, garbage_bytes=self._garbage_bytes, round_bytes=found.bytes
        )
        return found

    def _schedule(self, seconds: float) -> None:
        self.hurried += 1

    def _read(self, read: Callable[[], Read], then: Callable[[Read], None]) -> None:
        self.reads.append(lambda: then(read()))

    def _progress(self) -> None:
        self.store.progress()
        self.checkpoint.progress()
        self.marking.progress(self.checkpoint.rounds)

    @property
    def wall(self) -> float:
        return self._ahead + self.now

    def turn(self, *, synced: bool = True) -> None:
        """End a turn of the loop."""
        self.broker.finish()
        self.store.seal()
        if synced:
            while self.log.write_group():
                pass
        self.settle()

    def round(self) -> None:
        """A whole one, synced."""
        rounds = self.checkpoint.rounds
        if not self.checkpoint.running:
            self.checkpoint.begin()
        while self.checkpoint.rounds == rounds:
            self.slices()
            self.turn()

    def slices(self) -> None:
        """Go on with a round that has begun, as far as it goes."""
        while self.steps:
            self.steps.popleft()()

    def waiting(self, queue: Queue) -> list[bytes]:
        """The payloads of all that waits in a queue, on the disk too; what does is synced."""
        backlog = queue.backlog
        if backlog is None:
            return [message.payload for message in queue.waiting()]
        assert isinstance(backlog, StoredBacklog)
        numbers = [number for number, _ in backlog.numbers.first(1 << 30)]
        bodies = MessageReader(self.log).read(numbers)
        stored = [read_message(bodies[number], self.formats, self.store.records.wall) for number in numbers]
        return [message.payload for message in [*queue.waiting(), *stored]]

    def settle(self) -> None:
        """Read what queues have asked for."""
        while self.reads:
            self.reads.popleft()()

    def crash(self, *, stopped: float = 0.0) -> None:
        """Lose what is not synced, and start again after so many seconds, with another `now`.

        What is before the last round is not replayed.
        """
        self._after = max(self._after, self.log.floor - 1)
        folder = self._folder / str(self._starts)
        self._starts += 1
        shutil.copytree(folder, self._folder / str(self._starts))
        self.log.close()
        shutil.rmtree(folder)
        wall = self.wall + stopped
        super().__init__(**self._limits)
        self._ahead = wall - self.now
        self.recovered = self._open()
