"""What publishers were promised and what subscribers got; knows nothing of the broker."""

from dataclasses import dataclass, field

from matchcore.reference import matches
from tests.simulation.selecting import Fields, wants

NATIVE = "orders/", "dead/"  # topics of native publishers: see queue_history.py
RETAINED = "kept/"  # what is published on these topics is retained, and comes from one publisher, with QoS 2


@dataclass
class Sent:
    """A message, from the first time that it was written to a connection."""

    publisher: str
    number: int  # of its publisher, counted upwards
    topic: str
    qos: int
    at: int  # its place among all that happened
    accepted: bool = False  # acknowledged to its publisher
    fields: Fields = field(default_factory=dict)


@dataclass
class Followed:
    """What one persistent session, or all members of a shared subscription, got."""

    filter: str
    qos: int
    since: int | None = None  # SUBACK was received; its place among all that happened
    shared: bool = False
    where: str | None = None
    got: dict[bytes, int] = field(default_factory=dict)  # payload -> copies, in the order of the first ones
    last: dict[tuple[str, str, int], int] = field(default_factory=dict)  # (publisher, topic, QoS) -> highest number

    def matches(self, topic: str) -> bool:
        return matches(self.filter, "mqtt", topic, "mqtt")

    def wants(self, sent: Sent) -> bool:
        return wants(self.where, sent.topic, sent.fields)


class Violation(AssertionError):
    """A promise was broken."""


class History:
    def __init__(self) -> None:
        self.clock = 0
        self.sent: dict[bytes, Sent] = {}
        self.followed: dict[str, Followed] = {}
        self.retained: dict[str, bytes] = {}  # topic -> the payload published last

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def publish(self, publisher: str, number: int, topic: str, qos: int, fields: Fields | None = None) -> bytes:
        payload = f"{publisher}:{number}".encode()
        self.sent[payload] = Sent(publisher, number, topic, qos, self.tick(), fields=fields or {})
        if topic.startswith(RETAINED):
            self.retained[topic] = payload
        return payload

    def accepted(self, payload: bytes) -> None:
        self.sent[payload].accepted = True

    def subscribed(self, name: str) -> None:
        followed = self.followed[name]
        if followed.since is None:
            followed.since = self.tick()

    def delivered(self, name: str, payload: bytes, topic: str, qos: int, *, dup: bool) -> None:
        """A subscriber got a copy that it had not seen under this packet identifier."""
        if topic.startswith(NATIVE):
            return
        followed, sent = self.followed[name], self.sent.get(payload)
        if sent is None or sent.topic != topic:
            raise Violation(f"{name} got {payload!r} on {topic}, which nobody published there")
        self._check_wanted(name, payload)
        if qos != min(sent.qos, followed.qos):
            raise Violation(f"{name} got {payload!r} with QoS {qos}, published with {sent.qos} for {followed.qos}")
        copies = followed.got.get(payload, 0)
        followed.got[payload] = copies + 1
        # A message with QoS 1 may have been published twice. One with QoS 2, too, if the broker was killed before it
        # was synced: only a subscriber with QoS 2 gets it later than that.
        if copies and (qos == 2 or sent.qos == 0):
            raise Violation(f"{name} got {payload!r} {copies + 1} times with QoS {qos}")
        if not copies and not followed.shared:
            key = sent.publisher, topic, qos
            if sent.number < followed.last.get(key, -1):
                raise Violation(f"{name} got {payload!r} after number {followed.last[key]} of {sent.publisher}")
            followed.last[key] = sent.number

    def read_retained(self, name: str, payload: bytes) -> None:
        """A subscriber got a retained message."""
        if payload in self.sent:
            self._check_wanted(name, payload)

    def _check_wanted(self, name: str, payload: bytes) -> None:
        followed, sent = self.followed[name], self.sent[payload]
        if not followed.wants(sent):
            raise Violation(f"{name} got {payload!r} with {dict(sent.fields)}, which {followed.where!r} denies")

    def check(self) -> int:
        """Everything has come to rest: is anything missing? Returns the number of deliveries that were due."""
        due = 0
        for name, followed in self.followed.items():
            if followed.since is None:
                raise Violation(f"{name} has not been able to subscribe")
            for payload, sent in self.sent.items():
                if not sent.accepted or sent.at < followed.since or min(sent.qos, followed.qos) == 0:
                    continue
                if not followed.matches(sent.topic) or not followed.wants(sent):
                    continue
                due += 1
                if payload not in followed.got:
                    raise Violation(f"{name} never got {payload!r}, QoS {sent.qos}, which was acknowledged")
        return due

    def check_retained(self, values: dict[str, bytes]) -> None:
        """What a new subscriber of all retained messages got."""
        if values != self.retained:
            raise Violation(f"retained: {values}, published last: {self.retained}")
