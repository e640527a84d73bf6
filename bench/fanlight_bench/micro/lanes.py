"""A publish on a known route, and all its deliveries, through the compiled lanes: ns a delivery, without sockets.

    native          PUBLISH in, MESSAGE out
    native receipt  the same, with a receipt
    3.1.1, 5.0      PUBLISH of QoS 0 in, PUBLISH out
    ... QoS 1       PUBLISH in, PUBACK out, PUBLISH out, PUBACK in
    5.0 properties  QoS 0, with a content type and a user property
    5.0 alias       QoS 0, its topic by an alias
    5.0 aliases     the same, and by an alias to each subscriber
    memcpy          the bytes of a turn of 3.1.1's, in and out, copied

Beside memcpy: native and 3.1.1; beside those the others of their protocol. `bytes_per_delivery` is what a flush
would write.
"""

from collections.abc import Iterator
from functools import partial

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import ALIAS, EXTRAS, GIB, MicroClient, key, native, packet
from fanlight_broker.protocols.mqtt.aliases import AliasFormat
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Variants
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target

MESSAGES = 500  # at once: what a read of 64 KiB brings
REPEATS = 8     # of that in a turn
COPIES = 50     # the same for memcpy, which would be over before the clock has moved


class LaneSetup:
    """One kind of publish, and who gets it."""

    def __init__(
        self, publish: bytes, subscribers: int, version: Version | None = None, qos: int = 0, aliases: bool = False
    ) -> None:
        self.batch = publish * MESSAGES
        self.qos = qos
        self.ledger = Ledger(GIB, lambda: None)
        routes = RouteCache(10)
        self.publisher = MicroClient(self.ledger, routes, version)
        self.receivers = [MicroClient(self.ledger, routes, version) for _ in range(subscribers)]
        variants = Variants()
        formats = [AliasFormat(10) if aliases else one.format for one in self.receivers]
        targets = [
            Target(one.way, variants.of(format, qos), 1)  # clients number their subscriptions from 1
            for one, format in zip(self.receivers, formats, strict=True)
        ]
        routes.add(Route(key(version), targets, []))
        if version is V5:
            self.publisher.inbox.feed(packet(V5, properties=ALIAS))  # establishes the alias
            self.publisher.run()
            self.turn_over()
        self.octets = 0.0  # out, for each delivery

    def turn_over(self) -> int:
        octets = sum(one.emptied() for one in self.receivers)
        self.publisher.emptied()
        self.ledger.pop_dirty()
        return octets

    def turn(self) -> int:
        """What is published, and what the subscribers answer."""
        spent = 0
        for _ in range(REPEATS):
            self.publisher.inbox.feed(self.batch)
            spent += timed(self.publisher.run)
            self.octets = self.turn_over() / MESSAGES / len(self.receivers)
            if self.qos:
                for one in self.receivers:
                    one.inbox.feed(one.acknowledgements(MESSAGES))
                    spent += timed(one.run)
        return spent

    def facts(self) -> dict[str, object]:
        return {"bytes_per_delivery": round(self.octets, 1)}


def groups(effort: Effort) -> Iterator[Group]:
    for subscribers in (1, 10):
        ways: dict[str, tuple[LaneSetup, str]] = {
            "native": (LaneSetup(native(), subscribers), "memcpy"),
            "native receipt": (LaneSetup(native(receipt=True), subscribers), "native"),
            "3.1.1": (LaneSetup(packet(V3), subscribers, V3), "memcpy"),
            "3.1.1 QoS 1": (LaneSetup(packet(V3, qos=1), subscribers, V3, 1), "3.1.1"),
            "5.0": (LaneSetup(packet(V5), subscribers, V5), "3.1.1"),
            "5.0 QoS 1": (LaneSetup(packet(V5, qos=1), subscribers, V5, 1), "3.1.1 QoS 1"),
            "5.0 properties": (LaneSetup(packet(V5, properties=EXTRAS), subscribers, V5), "3.1.1"),
            "5.0 alias": (LaneSetup(packet(V5, b"", properties=ALIAS), subscribers, V5), "3.1.1"),
            "5.0 aliases": (LaneSetup(packet(V5, b"", properties=ALIAS), subscribers, V5, aliases=True), "3.1.1"),
        }
        deliveries = MESSAGES * subscribers
        octets = len(packet(V3)) * MESSAGES
        floor = partial(copy, bytes(octets), memoryview(bytearray(octets)), COPIES * (1 + subscribers))
        yield Group(
            f"{subscribers} subscribers",
            [
                Case("memcpy", deliveries * COPIES, floor),
                *(
                    Case(name, deliveries * REPEATS, way.turn, (beside,), way.facts)
                    for name, (way, beside) in ways.items()
                ),
            ],
        )


def copy(source: bytes, into: memoryview, times: int) -> int:
    """ns to copy all of it `times` times."""

    def copies() -> None:
        for _ in range(times):
            into[:] = source

    return timed(copies)
