"""Native clients of durable queues: publishers with receipts, and consumers that acknowledge, refuse, reject and leave.

What they are promised and what they get they report to the QueueHistory.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.protocols.native.frames import Type
from tests.broker.protocols.native.world import Fields, frame
from tests.simulation.history import Violation
from tests.simulation.queue_history import Key, QueueHistory
from tests.simulation.schedule import Schedule
from tests.simulation.selecting import fields_of

SUBSCRIPTION = 7
ORDERS = ("orders.0", "orders.1.new")
FILTER = "orders.#"
REQUESTS = 1_000_000
PRIORITIES = 0, 0, 0, 1, 5, 9


class NativeNetwork(Protocol):
    """Where clients connect to."""

    schedule: Schedule
    queues: QueueHistory

    def dial_native(self, client: "NativeClient") -> Any:
        """A new connection; None while nobody listens."""
        ...


class NativeClient:
    """Comes back when its connection ends."""

    def __init__(self, network: NativeNetwork, name: str) -> None:
        self.network, self.name = network, name
        self.history, self.schedule, self.random = network.queues, network.schedule, network.schedule.random
        self.link: Any = None
        self.connected = False
        self.patience = 2.0  # seconds until it connects again, at most
        self._octets = b""
        self.schedule.soon(self.connect)

    def connect(self) -> None:
        if self.link is not None:
            return
        self.link = self.network.dial_native(self)
        if self.link is None:
            self.schedule.soon(self.connect, most=self.patience)
            return
        self._octets = b""
        self.say(Type.HELLO, 1, {"client": self.name})

    def say(self, *fields: Any) -> None:
        if self.link is not None:
            self.link.write(frame(*fields))

    def receive(self, link: Any, octets: bytes) -> None:
        self._octets += octets if link is self.link else b""
        while link is self.link and len(self._octets) >= 4:
            end = 4 + int.from_bytes(self._octets[:4], "big")
            if len(self._octets) < end:
                break
            fields = msgpack.unpackb(self._octets[4:end])
            self._octets = self._octets[end:]
            match fields[0]:
                case Type.WELCOME:
                    self.connected = True
                    self.begin()
                case Type.PING:
                    self.say(Type.PONG, *fields[1:])
                case Type.HELD:
                    pass
                case _:
                    self.handle(fields)

    def begin(self) -> None:
        """The connection is there."""

    def handle(self, fields: Fields) -> None:
        raise Violation(f"{self.name} got {fields}")

    def closed(self, link: Any) -> None:
        if link is self.link:
            self.link, self.connected = None, False
            self.schedule.soon(self.connect, most=self.patience)

    def leave(self) -> None:
        """Say goodbye; what is still on its way is not read."""
        if self.link is not None and self.connected:
            link = self.link
            self.say(Type.GOODBYE, "normal", "")
            self.closed(link)

    @property
    def idle(self) -> bool:
        return self.connected


@dataclass(frozen=True)
class Outgoing:
    topic: str
    payload: bytes
    priority: int
    delay: float | None  # seconds


class QueuePublisher(NativeClient):
    """Publishes with receipts; what has none is published again on the next connection.

    marked   with marks: the broker takes it once
    delays   of some of them, in seconds; what is refused is published again as another message
    """

    def __init__(self, network: NativeNetwork, name: str, count: int, window: int, *, marked: bool) -> None:
        self.left, self.window, self.marked = count, window, marked
        self.every = 0.2  # seconds at most between two messages
        self.number = 0
        self.outgoing: dict[int, Outgoing] = {}  # by number, in order
        self.delays: tuple[float, ...] = ()
        self.refused = 0
        self.requests = REQUESTS  # numbers of those that are no PUBLISH
        self.cancelling: dict[int, bytes] = {}  # request -> payload
        self.asked: dict[int, int] = {}  # request -> when the list of delayed messages was asked for
        super().__init__(network, name)
        self.schedule.soon(self.publish)

    def begin(self) -> None:
        self.cancelling.clear()  # the answers are lost
        self.asked.clear()
        for number in self.outgoing:
            self._write(number)

    def publish(self) -> None:
        if self.left:
            self.schedule.soon(self.publish, most=self.every)
        if self.left and self.connected and len(self.outgoing) < self.window:
            self.left -= 1
            self.number += 1
            delay = self.random.choice(self.delays) if self.delays and self.random.random() < 0.2 else None
            self.outgoing[self.number] = Outgoing(
                self.random.choice(ORDERS), f"{self.name}:{self.number}".encode(), self.random.choice(PRIORITIES), delay
            )
            self._write(self.number)

    def _write(self, number: int) -> None:
        one = self.outgoing[number]
        self.history.wrote(
            one.payload, self.name, number, self.schedule.now, marked=self.marked, priority=one.priority,
            delay=one.delay, topic=one.topic, fields=fields_of(number),
        )
        mark = [self.name, 0, number] if self.marked else None
        headers: dict[str, Any] = {**fields_of(number), "n": number}
        if one.priority:
            headers["priority"] = one.priority
        options = {"delay": one.delay} if one.delay is not None else None
        self.say(Type.PUBLISH, number, one.topic, one.payload, headers, None, None, mark, options)

    def handle(self, fields: Fields) -> None:
        match fields:
            case [Type.RECEIPT, number, *more]:
                if number in self.outgoing:
                    one = self.outgoing.pop(number)
                    self.history.accepted(one.payload)
                    if len(more) > 4 and self.random.random() < 0.4:
                        self.schedule.soon(self._cancel, one.payload, more[4], most=1.5 * (one.delay or 0.0))
                    if one.delay and self.random.random() < 0.4:
                        self.schedule.soon(self._list, most=one.delay)
            case [Type.OK, number, result] if number in self.cancelling:
                self.history.cancel_answered(self.cancelling.pop(number), cancelled=result["cancelled"])
            case [Type.OK, number, result] if number in self.asked:
                shown = {each["payload"]: each["seconds"] for each in result["messages"]}
                self.history.listed(shown, result["count"], self.asked.pop(number), self.schedule.now)
            case [Type.ERROR, number, "queue_full" | "limit_exceeded", *_]:
                del self.outgoing[number]
                self.refused += 1
                self.left += 1
                if self.left == 1:
                    self.schedule.soon(self.publish, most=self.every)
            case _:
                super().handle(fields)

    def _cancel(self, payload: bytes, id: int) -> None:
        if self.connected and self.history.put[payload].once:
            self.requests += 1
            self.cancelling[self.requests] = payload
            self.history.cancel(payload)
            self.say(Type.QUEUE, self.requests, "cancel", {"id": id})

    def _list(self) -> None:
        if self.connected:
            self.requests += 1
            self.asked[self.requests] = self.history.tick()
            self.say(Type.QUEUE, self.requests, "delayed", {"limit": 200})

    @property
    def idle(self) -> bool:
        return self.connected and not (self.left or self.outgoing or self.cancelling or self.asked)


class QueueReader(NativeClient):
    """A consumer of a durable queue.

    options   of the queue
    steady    acknowledges everything, in time; its acknowledgements and deliveries can be confirmed
    brief     is there for a second at a time, and then away for long
    """

    def __init__(
        self, network: NativeNetwork, name: str, queue: str, filter: str = FILTER,
        options: Mapping[str, Any] | None = None, *, steady: bool = True, brief: bool = False,
        where: str | None = None,
    ) -> None:
        self.where = where
        self.queue, self.filter, self.options, self.steady, self.brief = queue, filter, options or {}, steady, brief
        self.subscribed = False
        self.deliver: Any = None
        self.ack_wait, self.delays = 2.0, (0.1, 1.0, 6.0)  # seconds
        self.reset()
        super().__init__(network, name)
        if where is not None:
            self.history.wheres[queue] = where
        if brief:
            self.patience = 30.0

    def reset(self) -> None:
        self.pending = 0  # answers that it has not sent yet
        self.last: dict[str, int] = {}
        self.seen: dict[Key, int] = {}  # deliveries on this connection: those of another may be lost with a kill
        self.sent: set[Key] = set()  # acknowledged, not confirmed yet
        self.asked: tuple[set[Key], dict[Key, int]] | None = None  # what the next PONG confirms

    def begin(self) -> None:
        self.reset()
        more = {} if self.deliver is None else {"deliver": self.deliver}
        if self.where is not None:
            more["where"] = self.where
        self.say(Type.SUBSCRIBE, 1, SUBSCRIPTION, self.filter, {
            **more, "consumer": self.queue, "durable": True, "ack": True, "prefetch": self.prefetch,
            "ack_wait": 1e6 if self.steady else self.ack_wait, "queue": self.options,
        })
        if self.brief:
            self.schedule.after(1.0, self._leave, self.link)

    def _leave(self, link: Any) -> None:
        if link is self.link:
            self.leave()

    def handle(self, fields: Fields) -> None:
        match fields:
            case [Type.OK, *_]:
                self.subscribed = True
                self.history.declare(self.queue)
            case [Type.PONG, *_]:
                assert self.asked is not None
                self.history.confirm(*self.asked)
                self.asked = None
                self._ask()
            case [Type.DELIVERY, _, sequence, attempt, _, payload, *_]:
                last = self.last_of(payload)
                self.history.delivered(
                    self.queue, payload, attempt, last, self.schedule.now, self.options.get("message_ttl")
                )
                self.seen[self.queue, payload] = max(attempt, self.seen.get((self.queue, payload), 0))
                self.pending += 1
                self.schedule.after(self.random.choice((0.0, 0.05)), self._answer, self.link, sequence, payload)
            case _:
                super().handle(fields)

    @property
    def prefetch(self) -> int:
        return self.random.choice((1, 3) if "messages_max" in self.options else (1, 3, 100))

    def last_of(self, payload: bytes) -> dict[str, int]:
        """Numbers of first deliveries that this one comes after."""
        return self.last if self.filter == FILTER else {}  # the order of dead letters is that of their deaths

    def _answer(self, link: Any, sequence: int, payload: bytes) -> None:
        if link is not self.link:
            return
        self.pending -= 1
        what = self.random.random()
        if what < 0.08:
            self.say(Type.NACK, SUBSCRIPTION, sequence, self.random.choice(self.delays))
        elif what < 0.12:
            self.say(Type.NACK, SUBSCRIPTION, sequence)
        elif what < 0.16 and not self.steady:
            pass  # it comes again when `ack_wait` is over
        else:
            if what < 0.2:
                self.say(Type.IN_PROGRESS, SUBSCRIPTION, sequence)
            self.say(Type.TERM if 0.2 <= what < 0.22 and "dead_letter" not in self.options else Type.ACK,
                     SUBSCRIPTION, sequence)
            self.history.acknowledge(self.queue, payload)
            self.sent.add((self.queue, payload))
        self._ask()

    def _ask(self) -> None:
        """Have it confirmed what was acknowledged and counted until now."""
        if self.steady and self.asked is None and self.sent:
            self.asked = self.sent, self.seen
            self.sent, self.seen = set(), {}
            self.say(Type.PING, 1)

    @property
    def idle(self) -> bool:
        return self.brief or (self.connected and self.subscribed and not self.pending and self.asked is None)


class PriorityReader(QueueReader):
    """The one consumer of a queue with priorities. It has one message at a time, so what it gets next was chosen after
    it has answered.

    unread  is there more in the queue, from before a restart, than the broker has read? Then nothing is promised
    """

    def __init__(self, network: NativeNetwork, name: str, queue: str, unread: Callable[[], bool]) -> None:
        self._unread = unread
        self.links: list[Any] = []  # all that it has had and the broker may still have
        super().__init__(network, name, queue, options={"priorities": 10})

    def reset(self) -> None:
        super().reset()
        self.last_by_priority: dict[int, dict[str, int]] = {}
        self.free_at = self.elsewhere = 0

    @property
    def prefetch(self) -> int:
        return 1

    def last_of(self, payload: bytes) -> dict[str, int]:
        return self.last_by_priority.setdefault(self.history.put[payload].priority, {})

    def handle(self, fields: Fields) -> None:
        if fields[0] == Type.DELIVERY:
            self.history.check_priority(self.queue, fields[5], self.free_at, self.elsewhere)
        super().handle(fields)

    def begin(self) -> None:
        super().begin()
        self._free()

    def _answer(self, link: Any, sequence: int, payload: bytes) -> None:
        super()._answer(link, sequence, payload)
        if link is self.link:
            self._free()

    def _free(self) -> None:
        """The next message is chosen after this."""
        if self.link not in self.links:
            self.links.append(self.link)
        self.links = [link for link in self.links if not link.gone and link.world.running]
        self.free_at = self.history.tick()
        self.elsewhere = sum(link is not self.link for link in self.links)
        if self._unread():
            self.free_at = 0
