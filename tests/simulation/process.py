"""One life of a broker process: the real core, protocol and wire, with simulated connections and time."""

from collections.abc import Callable
from typing import Any

from fanlight_broker.core.broker import Broker
from fanlight_broker.protocols.mqtt.version import Version
from tests.broker.protocols.mqtt.world import World
from tests.simulation.network import Link, Receiver
from tests.simulation.schedule import Schedule

LIMITS: dict[str, Any] = {}
TICK = 1.0  # seconds, as net/listener.py has it


class BrokerProcess(World):
    """What net/ does in a turn of the loop, with a clock and a network that the simulation moves."""

    peers: list[Link]  # type: ignore[assignment]  # all of its connections are simulated

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(**LIMITS)
        self.schedule = schedule
        self.now = schedule.now
        self.broker = Broker(self.broker.limits, schedule=lambda: None, next_turn=self.soon.append)
        self.running = True
        schedule.after(TICK, self._tick)

    def turn(self) -> None:
        """The base class runs until nothing moves. Here `run_turn` does, after each event."""

    def accept(self, client: Receiver, version: Version) -> Link:
        return Link(self, self.schedule, client, version)

    def run_turn(self) -> None:
        """Run until nothing moves without another event."""
        self.now = self.schedule.now
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

    def _tick(self) -> None:
        if not self.running:
            return
        self.now = self.schedule.now
        for link in self.peers:
            if not link.gone:
                link.protocol.idle(self.now)
        self.broker.sweep(self.now)
        self.schedule.after(TICK, self._tick)

    def check(self) -> None:
        """What holds in every state, between two turns."""
        ledger = self.broker.ledger
        assert ledger.used >= 0, f"{ledger.used} bytes in outboxes"
        assert 0 <= ledger.stored <= ledger.stored_limit, f"{ledger.stored} bytes stored"
        flights = sum(len(session.window.queue) + len(session.window.inflight) for session in self.broker.sessions)
        groups = sum(len(queue) for queue in self.group_queues())
        retained = len(self.broker.retained)
        assert ledger.stored_messages <= flights + groups + retained, "stored messages that nobody has"

    def group_queues(self) -> "list[Any]":
        found = {}
        for session in self.broker.sessions:
            for subscription in session.subscriptions:
                if subscription.group is not None and subscription.group.queue is not None:
                    found[id(subscription.group.queue)] = subscription.group.queue
        return list(found.values())
