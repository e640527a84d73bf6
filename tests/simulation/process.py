"""One life of a broker process: the real core, protocol, wire and store, with simulated connections, time and syncs."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fanlight_broker.core.broker import Broker
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.format import FORMATS
from fanlight_broker.protocols.mqtt.version import V5, Version
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.storage.checkpoint import Checkpoint
from fanlight_broker.storage.live_marking import LiveMarking
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.pager import Pager, Read
from fanlight_broker.storage.recovery import recover
from fanlight_broker.storage.store import Store
from tests.broker.protocols.mqtt.world import World
from tests.simulation.archive import ArchiveRecorder, Row
from tests.simulation.history import Violation
from tests.simulation.network import Link, Receiver
from tests.simulation.schedule import Schedule

LIMITS: dict[str, Any] = {}
TICK = 1.0  # seconds, as net/listener.py has it
SYNC = 0.03  # seconds that writing and syncing a group takes, at most
READ = 0.03  # seconds until messages that wait on the disk are read, at most
EARLY = 0.3  # of the rounds of a turn, those that seal before sockets are written
SEGMENT_BYTES = 8 << 10
GARBAGE_BYTES = 1 << 10  # of the log, before a round is written
COMING_BACK = 3  # messages, of those in flight, whatever the bound of their queue: simulation.py has small ones
SLICE = 0.02  # seconds between two slices of a round, at most


class BrokerProcess(World):
    """What net/ does in a turn of the loop, with a clock, a network and a disk that the simulation moves.

    Its `now` begins anew with each process, as a monotonic clock may. A group is written and synced in one event, which
    comes some time after the turn that sealed it.
    """

    peers: list[Link]  # type: ignore[assignment]  # all of its connections are simulated

    def __init__(self, schedule: Schedule, folder: Path, rows: list[Row] | None = None) -> None:
        super().__init__(**LIMITS)
        self.schedule = schedule
        self._began, self._syncing = schedule.now - self.now, False
        self.broker = Broker(
            self.broker.limits, schedule=lambda: None, next_turn=self.soon.append, wall=self._read_wall
        )
        self.log = Log(
            folder, self._progressed, threaded=False, segment_bytes=SEGMENT_BYTES,
            clock=self._read_wall,
        )
        self.store = Store(
            self.log, self.broker.ledger, now=self._read_clock, wall=self._read_wall,
            schedule=lambda seconds: None, changed=lambda: self.broker.position_changed(self._read_clock()),
        )
        formats = {format.family: format for format in (FORMATS[V5], FORMAT)}
        self.store.pager = Pager(
            self.log, formats, self.broker.variants, now=self._read_clock, ahead=lambda: self.store.records.wall,
            run=self._read, soon=self.soon.append,
        )
        self.checkpoint = Checkpoint(self.store, self.broker, self._later, garbage_bytes=GARBAGE_BYTES)
        self.marking = LiveMarking(self.store, self.broker, self._mark_later)
        self.recorder = ArchiveRecorder([] if rows is None else rows, schedule, self._ahead, lambda: self.running)
        if rows is not None:
            self.broker.router.archive_selection = self.recorder.selection
            self.broker.replay_source = self.recorder
            self.broker.record_to(self.recorder)
        recover(self.store, self.broker, formats, now=self.now, wall=self._read_wall())
        assert not self.log.damage, self.log.damage
        self._delayed = len(self.broker.delayed)  # from before this life
        self.running = True
        schedule.after(TICK, self._tick)

    def _progressed(self) -> None:
        self.store.progress()
        self.checkpoint.progress()
        self.marking.progress(self.checkpoint.rounds)

    def _later(self, step: Callable[[], None]) -> None:
        self.schedule.soon(self._slice, most=SLICE)

    def _mark_later(self, step: Callable[[], None]) -> None:
        self.schedule.soon(self._mark, most=SLICE)

    def _mark(self) -> None:
        if self.running:
            self.marking.step(self.schedule.random.randint(1, 3))
            self.log.prepare()

    def _slice(self) -> None:
        if self.running:
            self.checkpoint.step(self.schedule.random.randint(1, 3))

    def _read_clock(self) -> float:
        return self.schedule.now - self._began

    def _read_wall(self) -> float:
        return self.schedule.wall + self.schedule.now

    def _ahead(self) -> float:
        return self._read_wall() - self._read_clock()

    def turn(self) -> None:
        """The base class runs until nothing moves. Here `run_turn` does, after each event."""

    def accept(self, client: Receiver, version: Version) -> Link:
        def protocol(link: Link) -> MqttConnection:
            return MqttConnection(self.options, self.counts, self.broker, link, self.shared, self.now)

        return Link(self, self.schedule, client, protocol)

    def accept_native(self, client: Receiver) -> Link:
        return Link(
            self, self.schedule, client, lambda link: NativeConnection(self.broker, link, self.shared, self.now)
        )

    def run_turn(self) -> None:
        """Run until nothing moves without another event."""
        self.now = self._read_clock()
        moved = True
        while moved:
            moved = False
            for link in self.peers:
                moved |= link.deliver()
            for _ in range(len(self.soon)):
                act: Callable[[], Any] = self.soon.popleft()
                act()
                moved = True
            if self.schedule.random.random() < EARLY:
                self.store.seal()  # as a flush does when the disk has nothing to do
            for outbox in self.broker.ledger.pop_dirty():
                outbox.clean()
                moved |= self.peer_of(outbox).flush()
        if any(link.gone for link in self.peers):
            self.peers[:] = [link for link in self.peers if not link.gone]
        self.broker.finish()
        self.recorder.tap.flush()
        self.store.seal()
        if not self._syncing and self.log.written < self.log.appended:
            self._syncing = True
            self.schedule.soon(self._sync, most=SYNC)

    def _read(self, read: Callable[[], Read], then: Callable[[Read], None]) -> None:
        self.schedule.soon(self._finish_reading, read(), then, most=READ)

    def _finish_reading(self, found: Read, then: Callable[[Read], None]) -> None:
        if self.running:
            then(found)

    def _sync(self) -> None:
        self._syncing = False
        if self.running:
            self.log.write_group()
            self.log.collect()

    def kill(self, left: Path) -> None:
        """kill -9: what is not written is lost, and so are all connections. `left`: where the folder is from now on."""
        self.running = False
        for link in self.peers:
            link.cut()
        shutil.copytree(self.log.folder, left)
        self.log.close()  # which writes what it has
        shutil.rmtree(self.log.folder)

    def _tick(self) -> None:
        if not self.running:
            return
        self.now = self._read_clock()
        for link in self.peers:
            if not link.gone:
                link.protocol.idle(self.now)
        self.broker.sweep(self.now)
        self.schedule.after(TICK, self._tick)

    def unread(self, name: str) -> bool:
        """Is there anything on the disk that waits in this queue?"""
        found = self.broker.queues.get(name)
        backlog = found.inside.queue.backlog if found is not None else None
        return backlog is not None and backlog.length > 0

    @property
    def idle(self) -> bool:
        """Nothing waits in a queue, or is in flight."""
        windows = [session.window for session in self.broker.sessions]
        if len(self.broker.delayed):
            return False
        if any(len(each.queue) or each.in_flight for each in windows) or any(map(len, self.group_queues())):
            return False
        return not any(len(queue.inside) or queue.inside.buried or queue.filling for queue in self.broker.queues)

    def check(self) -> None:
        """What holds in every state, between two turns."""
        ledger = self.broker.ledger
        assert ledger.used >= 0, f"{ledger.used} bytes in outboxes"
        assert 0 <= ledger.stored <= ledger.stored_limit, f"{ledger.stored} bytes stored"
        flights = sum(len(session.window.queue) + len(session.window.inflight) for session in self.broker.sessions)
        groups = sum(len(queue) for queue in self.group_queues())
        retained = len(self.broker.retained)
        assert self.store.pager is not None
        assert not self.store.pager.unreadable, "a message could not be read"
        named = sum(len(queue.inside) + queue.inside.buried for queue in self.broker.queues)
        delayed = self.broker.delayed
        found = flights + groups + named + retained + len(delayed)
        assert ledger.stored_messages <= found, "stored messages that nobody has"
        ended = delayed.delivered + delayed.lost + delayed.expired + delayed.cancelled
        assert self._delayed + delayed.accepted == ended + len(delayed), (
            f"delayed messages do not add up: {self._delayed} and {delayed.counters()}"
        )
        for queue in self.broker.queues:
            waiting, most = len(queue.inside.queue), queue.options.messages_max
            if most is not None and waiting > most + COMING_BACK:
                raise Violation(f"{waiting} messages wait in {queue.name}, which takes {most}")

    def group_queues(self) -> "list[Any]":
        found = {}
        for session in self.broker.sessions:
            for subscription in session.subscriptions:
                if subscription.group is not None and subscription.group.queue is not None:
                    found[id(subscription.group.queue)] = subscription.group.queue
        return list(found.values())
