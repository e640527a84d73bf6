"""Consumers that acknowledge many messages at once (BulkReader), and those of which one is active (SingleReader)."""

from dataclasses import dataclass, field
from typing import Any

from fanlight_broker.protocols.native.frames import Type
from tests.simulation.history import Violation
from tests.simulation.native_clients import SUBSCRIPTION, NativeNetwork, QueueReader

ALL = {"all": True}
WAIT = 0.3  # seconds until it looks again whether a later message was acknowledged


class BulkReader(QueueReader):
    """Acknowledges a message with all before it, or alone; or waits for a later one."""

    def reset(self) -> None:
        super().reset()
        self.held: dict[int, bytes] = {}  # sequence -> payload: not answered

    def handle(self, fields: list[Any]) -> None:
        if fields[0] == Type.DELIVERY:
            self.held[fields[2]] = fields[5]
        super().handle(fields)

    def _answer(self, link: Any, sequence: int, payload: bytes) -> None:
        if link is not self.link:
            return
        if sequence not in self.held:  # it was acknowledged with a later one
            self.pending -= 1
            return
        what = self.random.random()
        if what < 0.4:
            self.schedule.after(WAIT, self._answer, link, sequence, payload)
        elif what < 0.6:
            del self.held[sequence]
            super()._answer(link, sequence, payload)
        else:
            self.pending -= 1
            self.say(Type.ACK, SUBSCRIPTION, sequence, ALL)
            for earlier in [each for each in self.held if each <= sequence]:
                key = self.queue, self.held.pop(earlier)
                self.history.acknowledge(*key)
                self.sent.add(key)
            self._ask()


@dataclass
class Shift:
    """What the consumers of one queue with `single_active` know of each other."""

    readers: "list[SingleReader]" = field(default_factory=list)
    broker: Any = None  # the process whose deliveries are counted
    last: dict[str, int] = field(default_factory=dict)  # numbers of first deliveries, by publisher


class SingleReader(QueueReader):
    """Gets something only while it is the active one, of which there is one. So the order holds for all together."""

    def __init__(self, network: NativeNetwork, name: str, queue: str, shift: Shift, *, brief: bool = False) -> None:
        self.shift = shift
        self.active: Any = None  # the link on which it is or was the active one
        super().__init__(network, name, queue, options={"single_active": True}, brief=brief)
        shift.readers.append(self)

    def handle(self, fields: list[Any]) -> None:
        match fields:
            case [Type.CONSUMER_INFO, _, {"active": True}]:
                self._activate()
                return
            case [Type.OK, _, {"active": True}]:
                self._activate()
            case [Type.DELIVERY, *_] if self.active is not self.link:
                raise Violation(f"{self.queue} delivers to {self.name}, which is not the active consumer")
        super().handle(fields)

    def _activate(self) -> None:
        self.active = self.link
        for other in self.shift.readers:
            link = other.active
            # A broker that was killed, or has ended the connection, has forgotten it; the client may not know that yet.
            if other is not self and link is not None and not link.gone and link.world.running:
                raise Violation(f"{self.queue} has two active consumers: {self.name} and {other.name}")

    def last_of(self, payload: bytes) -> dict[str, int]:
        if self.shift.broker is not self.link.world:  # a kill loses what was not stored of how often it was delivered
            self.shift.broker, self.shift.last = self.link.world, {}
        return self.shift.last
