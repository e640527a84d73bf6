"""Messages to many outboxes, the route being known: ns a delivery.

    native, 3.1.1, 5.0  wire.publish, each message by itself: encoded once, patched and copied into each outbox, limits
                        and counters included
    ..., in a row       from a lane, up to 500 behind each other on one topic, as a read brings them: parsed, and kept
                        once for all subscribers where they may be (docs/decisions/0010)
    memcpy              the same bytes into a buffer for each subscriber, a turn's at once

Beside memcpy: all. With more subscribers the bytes of a turn leave the processor's caches, in both alike. What a flush
makes of the outboxes is in `flush`, which also has both together: in a row much is left to it.
"""

from collections.abc import Iterator
from functools import partial

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import GIB, PAYLOAD, TOPIC, MicroClient, key, native, packet
from fanlight_broker.core.content import Content
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Variants
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target

DELIVERIES = 50_000  # of a turn
MESSAGES = 500       # of them to one subscriber, at most: what a read of 64 KiB brings
VERSIONS = {"native": None, "3.1.1": V3, "5.0": V5}


class Fan:
    """A route with `subscribers` subscribers, and messages of the same format."""

    def __init__(
        self, version: Version | None, subscribers: int, messages: int, repeats: int = 1, in_a_row: bool = False
    ) -> None:
        self.ledger = Ledger(GIB, lambda: None)
        routes = RouteCache(1)
        self.peers = [MicroClient(self.ledger, routes, version) for _ in range(subscribers)]
        self.publisher = MicroClient(self.ledger, routes, version)
        variants = Variants()
        targets = [Target(one.way, variants.of(one.format), 1) for one in self.peers]
        self.route = Route(key(version), targets, [])
        routes.add(self.route)
        self.batch = (native() if version is None else packet(version)) * messages if in_a_row else b""
        self.messages = messages
        self.repeats = repeats
        message = self.publisher.format.write(Content(TOPIC, 0 if version is None else 1, PAYLOAD))
        if message is None:
            raise ValueError(f"{TOPIC!r} cannot be written in {self.publisher.format.name}")
        self.message = message
        self.octets = 0

    def publish(self) -> int:
        """All messages to all; ns."""
        if not self.batch:
            return timed(self.each)
        self.publisher.inbox.feed(self.batch)
        return timed(self.publisher.run)

    def each(self) -> None:
        route, ledger, message = self.route, self.ledger, self.message
        for _ in range(self.messages):
            publish(route, ledger, None, message)

    def turn(self) -> int:
        spent = 0
        for _ in range(self.repeats):
            spent += self.publish()
            self.octets = sum(one.emptied() for one in self.peers)
            self.ledger.pop_dirty()
        return spent

    def facts(self) -> dict[str, object]:
        return {"bytes_per_delivery": round(self.octets / self.messages / len(self.peers), 1)}


def copies(source: bytes, outboxes: list[bytearray], repeats: int) -> int:
    def copy() -> None:
        size = len(source)
        for _ in range(repeats):
            for one in outboxes:
                one[:size] = source

    return timed(copy)


def groups(effort: Effort) -> Iterator[Group]:
    for subscribers in (10, 100) if effort.quick else (1, 10, 100, 1_000):
        messages = min(DELIVERIES // subscribers, MESSAGES) // (10 if effort.quick else 1)
        repeats = max(DELIVERIES // (subscribers * messages), 1)
        fans = {name: Fan(version, subscribers, messages, repeats) for name, version in VERSIONS.items()}
        for name, version in VERSIONS.items():
            fans[f"{name}, in a row"] = Fan(version, subscribers, messages, repeats, in_a_row=True)
        operations = messages * subscribers * repeats
        fans["3.1.1"].turn()
        octets = fans["3.1.1"].octets // subscribers
        floor = partial(copies, bytes(octets), [bytearray(octets) for _ in range(subscribers)], repeats)
        cases = [Case(name, operations, fan.turn, ("memcpy",), fan.facts) for name, fan in fans.items()]
        yield Group(f"{subscribers:,} subscribers", [Case("memcpy", operations, floor), *cases])
