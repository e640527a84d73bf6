"""What native publishers were promised about durable queues, and what the consumers got; knows nothing of the broker.

    receipt     the message is acknowledged by a consumer some day, or is a dead letter
    confirmed   a PONG behind an acknowledgement: the message does not come again. Behind a delivery: it counts
    order       of a publisher, within one connection of a consumer, of messages that come for the first time
    selector    a queue has no message that its selector denies, and loses none that it accepts
    time        no message is delivered long after its time in the queue is over, nor a delayed one before it is due
    cancelled   a delayed message does not come after it was confirmed that it is cancelled, and is listed until then
    priority    of what a queue with priorities is known to have, nothing lower comes first

A message that was published again without a mark may be in a queue twice: then only the first rule holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from tests.simulation.history import Violation
from tests.simulation.selecting import Fields, wants

Key = tuple[str, bytes]  # queue, payload

EARLY = 0.1  # seconds that a delayed message may come before its time: clocks are compared with a grain of 0.05 s
DELAY_MOST = 8.0
LISTED = 100  # that an answer has room for
LATE = 4.0  # seconds that a message may be on its way


@dataclass
class Put:
    """A message that was written to a connection."""

    publisher: str
    number: int
    place: int  # among all that happened
    at: float  # when it was written last, in simulated time without standstills
    marked: bool
    priority: int = 0
    delayed: bool = False
    due: float = inf  # simulated time, with what the clock was set forward
    written: int = 0
    accepted: bool = False
    accepted_at: int = 0  # among all that happened
    cancelling: bool = False  # and it is not known that it was too late
    cancelled: bool = False  # which was confirmed
    cancelled_at: int = 0
    topic: str = ""
    fields: Fields = field(default_factory=dict)

    @property
    def once(self) -> bool:
        """Is it in no queue twice?"""
        return self.marked or self.written == 1


@dataclass
class QueueHistory:
    clock: int = 0
    stood: float = 0.0  # seconds for which time stood still, and then was over at once
    forward: float = 0.0  # seconds by which wall clocks were set forward, in all
    back: float = 0.0
    put: dict[bytes, Put] = field(default_factory=dict)
    declared: dict[str, int] = field(default_factory=dict)  # queue -> place of the first OK
    done: set[Key] = field(default_factory=set)  # a consumer has sent ACK or TERM
    confirmed: set[Key] = field(default_factory=set)
    counted: dict[Key, int] = field(default_factory=dict)  # deliveries that are stored
    seen: set[Key] = field(default_factory=set)  # a consumer has got it
    filled: set[str] = field(default_factory=set)  # queues that may have a message twice if it was published twice
    wheres: dict[str, str] = field(default_factory=dict)  # queue -> its selector
    cancels: int = 0  # confirmed
    lists: int = 0
    deliveries: int = 0
    redeliveries: int = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def wrote(
        self, payload: bytes, publisher: str, number: int, now: float, *, marked: bool, priority: int = 0,
        delay: float | None = None, topic: str = "", fields: Fields | None = None,
    ) -> None:
        """It was written to a connection, maybe once more."""
        if payload not in self.put:
            self.put[payload] = Put(
                publisher, number, self.tick(), 0.0, marked, priority, delay is not None, topic=topic,
                fields=fields or {},
            )
        put = self.put[payload]
        put.written += 1
        put.at = now - self.stood - self.back
        if delay is not None:
            put.due = min(put.due, now + delay + self.forward)

    def accepted(self, payload: bytes) -> None:
        """There is a receipt."""
        put = self.put[payload]
        if not put.accepted:
            put.accepted, put.accepted_at = True, self.tick()

    def declare(self, queue: str) -> None:
        self.declared.setdefault(queue, self.tick())

    def delivered(
        self, queue: str, payload: bytes, attempt: int, last: dict[str, int], now: float, seconds: float | None
    ) -> None:
        """
        last     numbers of first deliveries on this connection, by publisher
        seconds  that a message may wait in this queue
        """
        put, key = self.put.get(payload), (queue, payload)
        if put is None:
            raise Violation(f"{queue} has {payload!r}, which nobody published")
        if not self.wants(queue, put):
            raise Violation(
                f"{queue} has {payload!r} with {dict(put.fields)}, which {self.wheres[queue]!r} denies"
            )
        self.deliveries += 1
        self.redeliveries += attempt > 1
        self.seen.add(key)
        if put.delayed and now + self.forward < put.due - EARLY:
            raise Violation(f"{queue} delivers {payload!r} {put.due - now - self.forward:.3f} s before it is due")
        if not put.once or (queue in self.filled and put.written > 1):
            return
        if put.cancelled:
            raise Violation(f"{queue} delivers {payload!r}, which was cancelled")
        if key in self.confirmed:
            raise Violation(f"{queue} delivers {payload!r} again, whose acknowledgement was confirmed")
        if attempt <= self.counted.get(key, 0):
            raise Violation(f"{queue}: delivery {attempt} of {payload!r} was counted before")
        age = now - self.stood - self.back - put.at
        if seconds is not None and not put.delayed and age > seconds + LATE:
            raise Violation(f"{queue} delivers {payload!r} after {age:.3f} s")
        if attempt == 1 and not put.delayed:
            if put.number < last.get(put.publisher, 0):
                raise Violation(f"{queue} delivers {payload!r} after number {last[put.publisher]}")
            last[put.publisher] = put.number

    def wants(self, queue: str, put: Put) -> bool:
        """Whether the selector of this queue, if it has one, is true of this message."""
        return wants(self.wheres.get(queue), put.topic, put.fields, ".")

    def check_priority(self, queue: str, payload: bytes, free_at: int, elsewhere: int) -> None:
        """A delivery that was chosen after `free_at`. elsewhere: messages that may be on their way to somebody else."""
        put = self.put[payload]
        higher = [
            other for other, each in self.put.items()
            if each.priority > put.priority and each.accepted and self.declared.get(queue, inf) < each.place
            and each.accepted_at < free_at and not each.delayed and (queue, other) not in self.seen
        ]
        if len(higher) > elsewhere:
            raise Violation(f"{queue} delivers {payload!r} of priority {put.priority} before {higher}")

    def acknowledge(self, queue: str, payload: bytes) -> None:
        """A consumer has sent ACK or TERM."""
        self.done.add((queue, payload))

    def confirm(self, acknowledged: set[Key], attempts: dict[Key, int]) -> None:
        """A PONG has come: all that was before its PING is stored."""
        self.confirmed |= acknowledged
        for key, attempt in attempts.items():
            self.counted[key] = max(attempt, self.counted.get(key, 0))

    def cancel(self, payload: bytes) -> None:
        """Its publisher has sent that it does not want it to be delivered."""
        self.put[payload].cancelling = True

    def cancel_answered(self, payload: bytes, *, cancelled: bool) -> None:
        put = self.put[payload]
        put.cancelling, put.cancelled, put.cancelled_at = cancelled, cancelled, self.tick()
        self.cancels += cancelled

    def listed(self, shown: Mapping[bytes, float], count: int, asked_at: int, now: float) -> None:
        """A list of delayed messages came: payloads, and seconds until they are due."""
        self.lists += 1
        for payload, seconds in shown.items():
            put = self.put.get(payload)
            if put is None or not put.delayed or (put.once and put.cancelled and put.cancelled_at < asked_at):
                raise Violation(f"{payload!r} is listed among the delayed messages")
            if not 0 <= seconds <= DELAY_MOST + self.back + EARLY:
                raise Violation(f"{payload!r} is listed, and due in {seconds} s")
        for payload, put in self.put.items():
            waits = put.delayed and put.once and not put.cancelling and now + self.forward + LATE < put.due
            if waits and put.accepted and put.accepted_at < asked_at and count <= LISTED and payload not in shown:
                raise Violation(f"{payload!r} is delayed and not listed")

    def missing(self, queues: Mapping[str, str | None], archived: Mapping[str, set[bytes]] | None = None) -> list[Key]:
        """What consumers have still to acknowledge.

        queues    name -> where its dead letters are
        archived  name -> what was to come that was published before
        """
        found: list[Key] = []
        for queue, graveyard in queues.items():
            since = max(self.declared[queue], self.declared[graveyard or queue])
            found += (
                (queue, payload) for payload, put in self.put.items()
                if put.accepted and not put.cancelling and self.wants(queue, put)
                and (put.place > since or payload in (archived or {}).get(queue, ()))
                and (queue, payload) not in self.done and (graveyard, payload) not in self.done
            )
        return found

    def check(self, queues: Mapping[str, str | None], archived: Mapping[str, set[bytes]] | None = None) -> int:
        """All queues are empty. Returns how many messages were due."""
        for name in {*queues, *filter(None, queues.values())}:
            if name not in self.declared:
                raise Violation(f"nobody has been able to declare {name}")
        if lost := self.missing(queues, archived):
            raise Violation(f"of these there were receipts, and they are lost: {lost}")
        return len(queues) * sum(put.accepted for put in self.put.values())

    @property
    def summary(self) -> Mapping[str, int]:
        return {
            "put into queues": len(self.put), "receipts": sum(put.accepted for put in self.put.values()),
            "deliveries of queues": self.deliveries, "redeliveries of queues": self.redeliveries,
            "confirmed acknowledgements": len(self.confirmed), "cancelled": self.cancels, "lists": self.lists,
        }  # fmt: skip
