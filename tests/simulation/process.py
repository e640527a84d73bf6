"""One life of a broker process: the real core, protocol, wire and store, with simulated connections, time and syncs."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fanlight_broker.core.broker import Broker
from fanlight_broker.protocols.mqtt.format import FORMATS
from fanlight_broker.protocols.mqtt.version import V5, Version
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.pager import Pager, Read
from fanlight_broker.storage.recovery import recover
from fanlight_broker.storage.store import Store
from tests.broker.protocols.mqtt.world import World
from tests.simulation.network import Link, Receiver
from tests.simulation.schedule import Schedule

LIMITS: dict[str, Any] = {}
TICK = 1.0  # seconds, as net/listener.py has it
SYNC = 0.03  # seconds that writing and syncing a group takes, at most
READ = 0.03  # seconds until messages that wait on the disk are read, at most
SEGMENT_BYTES = 64 << 10
WALL = 1_700_000_000.0  # wall-clock time at 0 of the simulated time


class BrokerProcess(World):
    """What net/ does in a turn of the loop, with a clock, a network and a disk that the simulation moves.

    Its `now` begins anew with each process, as a monotonic clock may. A group is written and synced in one event, which
    comes some time after the turn that sealed it.
    """

    peers: list[Link]  # type: ignore[assignment]  # all of its connections are simulated

    def __init__(self, schedule: Schedule, folder: Path) -> None:
        super().__init__(**LIMITS)
        self.schedule = schedule
        self._began, self._syncing = schedule.now - self.now, False
        self.broker = Broker(self.broker.limits, schedule=lambda: None, next_turn=self.soon.append)
        self.log = Log(
            folder, lambda: self.store.progress(), threaded=False, segment_bytes=SEGMENT_BYTES,
            clock=lambda: WALL + schedule.now,
        )
        self.store = Store(
            self.log, self.broker.ledger, now=self._read_clock, wall=lambda: WALL + schedule.now,
            schedule=lambda seconds: None, changed=lambda: self.broker.position_changed(self._read_clock()),
        )
        formats = {FORMATS[V5].family: FORMATS[V5]}
        self.store.pager = Pager(
            self.log, formats, self.broker.variants, now=self._read_clock, ahead=lambda: self.store.records.wall,
            run=self._read, soon=self.soon.append,
        )
        recover(
            self.log.replay(), self.store, self.broker, formats,
            now=self.now, wall=WALL + schedule.now,
        )
        self.running = True
        schedule.after(TICK, self._tick)

    def _read_clock(self) -> float:
        return self.schedule.now - self._began

    def turn(self) -> None:
        """The base class runs until nothing moves. Here `run_turn` does, after each event."""

    def accept(self, client: Receiver, version: Version) -> Link:
        return Link(self, self.schedule, client, version)

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
            for outbox in self.broker.ledger.pop_dirty():
                outbox.clean()
                moved |= self.peer_of(outbox).flush()
        if any(link.gone for link in self.peers):
            self.peers[:] = [link for link in self.peers if not link.gone]
        self.broker.finish()
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

    @property
    def idle(self) -> bool:
        """Nothing waits in a queue, or is in flight."""
        windows = [session.window for session in self.broker.sessions]
        return not any(len(each.queue) or each.in_flight for each in windows) and not any(map(len, self.group_queues()))

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
        assert ledger.stored_messages <= flights + groups + retained, "stored messages that nobody has"

    def group_queues(self) -> "list[Any]":
        found = {}
        for session in self.broker.sessions:
            for subscription in session.subscriptions:
                if subscription.group is not None and subscription.group.queue is not None:
                    found[id(subscription.group.queue)] = subscription.group.queue
        return list(found.values())
