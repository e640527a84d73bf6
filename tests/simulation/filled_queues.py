"""Consumers of queues that begin with what was before: archived messages (FilledReader), or retained ones (LastReader).

Such a queue is stored when it has caught up. A broker that is killed before has lost it, and fills it anew for its
consumers: so what they have acknowledged may come again, whatever was confirmed.
"""

from typing import Any, Protocol

from fanlight_broker.protocols.native.frames import Type
from tests.simulation.archive import Row
from tests.simulation.history import RETAINED, History, Violation
from tests.simulation.native_clients import SUBSCRIPTION as NUMBER
from tests.simulation.native_clients import NativeClient, NativeNetwork, QueueReader
from tests.simulation.selecting import wants


class ArchivedNetwork(NativeNetwork, Protocol):
    rows: list[Row]  # of the archive
    history: History


class FilledReader(QueueReader):
    """Its queue begins at a place of the archive, which is chosen when it is there for the first time."""

    def __init__(self, network: ArchivedNetwork, name: str, queue: str, *, by_time: bool, where: str | None) -> None:
        self.rows, self.by_time = network.rows, by_time
        self.first: int | None = None  # of the rows that are due
        super().__init__(network, name, queue, where=where)

    def begin(self) -> None:
        if self.first is None:
            self.first = self.random.randint(0, len(self.rows))
            self.deliver = {"offset": self.first}
            if self.by_time and self.first < len(self.rows):
                self.deliver = {"since": self.rows[self.first].at}
            elif self.random.random() < 0.3:
                self.first, self.deliver = 0, {}
            self.history.filled.add(self.queue)
        super().begin()

    def due(self) -> set[bytes]:
        """Payloads of what is in the archive from the place on, and not before."""
        assert self.first is not None
        return {row.payload for row in self.rows[self.first :]} - {row.payload for row in self.rows[: self.first]}

    def _ask(self) -> None:
        """What is confirmed is no promise here."""


class LastReader(NativeClient):
    """Its queue begins with the retained messages of MQTT publishers, which have a topic each, and QoS 2."""

    def __init__(self, network: ArchivedNetwork, name: str, where: str | None) -> None:
        self.where = where
        self.retained_history = network.history
        self.since: int | None = None  # OK was received; its place among all that happened
        self.got: set[bytes] = set()  # acknowledged
        super().__init__(network, name)

    def begin(self) -> None:
        self.last: dict[str, int] = {}
        self.say(Type.SUBSCRIBE, 1, NUMBER, RETAINED + "#", {
            "syntax": 1, "consumer": "last", "durable": True, "ack": True, "prefetch": 10, "ack_wait": 1e6,
            "deliver": "last", **({} if self.where is None else {"where": self.where}),
        })

    def handle(self, fields: list[Any]) -> None:
        match fields:
            case [Type.OK, *_]:
                self.since = self.since or self.retained_history.tick()
            case [Type.DELIVERY, _, sequence, attempt, topic, payload, *_]:
                self._check(topic, payload, attempt)
                self.got.add(payload)
                self.say(Type.ACK, NUMBER, sequence)
            case _:
                super().handle(fields)

    def _check(self, topic: str, payload: bytes, attempt: int) -> None:
        sent = self.retained_history.sent.get(payload)
        if sent is None or sent.topic != topic:
            raise Violation(f"last has {payload!r} on {topic}, which nobody published there")
        if not wants(self.where, topic, sent.fields):
            raise Violation(f"last has {payload!r} with {dict(sent.fields)}, which {self.where!r} denies")
        if attempt == 1:
            if sent.number <= self.last.get(topic, 0):
                raise Violation(f"last delivers {payload!r} after number {self.last[topic]}")
            self.last[topic] = sent.number

    def check(self) -> int:
        """Everything has come to rest. Returns how many messages were due."""
        if self.since is None:
            raise Violation("nobody has been able to declare last")
        due = {*self.retained_history.retained.values(), *(
            payload for payload, sent in self.retained_history.sent.items()
            if sent.topic.startswith(RETAINED) and sent.accepted and sent.at > self.since
        )}
        sent = self.retained_history.sent
        due = {payload for payload in due if wants(self.where, sent[payload].topic, sent[payload].fields)}
        if lost := due - self.got:
            raise Violation(f"last never got {lost}")
        return len(due)

    @property
    def idle(self) -> bool:
        return self.connected and self.since is not None

