"""`python -m bench.micro.lanes`: what a publish on a known route costs in the compiled lanes, without sockets.

    native          PUBLISH in, MESSAGE out
    native receipt  the same, with a receipt
    3.1.1, 5.0      PUBLISH of QoS 0 in, PUBLISH out
    ... QoS 1       PUBLISH in, PUBACK out, PUBLISH out, PUBACK in
    5.0 properties  QoS 0, with a content type and a user property
    5.0 alias       QoS 0, its topic by an alias
    5.0 aliases     the same, and by an alias to each subscriber

Processor time of this thread for one publish and all its deliveries, the best of several passes, for 1 and for 10
subscribers; JSON on standard output. The cases take turns, so that a slower minute of the machine is everybody's.
"""

import struct
import sys
import time
from collections.abc import Callable

import msgpack  # type: ignore[import-untyped]

from bench.micro.reporting import parser, report
from broker.protocols.mqtt.aliases import AliasFormat
from broker.protocols.mqtt.format import FORMATS
from broker.protocols.mqtt.lane import NEED_MORE
from broker.protocols.mqtt.lane import Lane as MqttLane
from broker.protocols.mqtt.version import V3, V5, Version
from broker.protocols.native.format import FORMAT as NATIVE
from broker.protocols.native.lane import Lane as NativeLane
from broker.wire.fanout import Route, Target
from broker.wire.inbox import Inbox, ReceiveBuffer
from broker.wire.ledger import Ledger
from broker.wire.message import Format, Variants
from broker.wire.outbox import Outbox
from broker.wire.routes import RouteCache
from broker.wire.window import Queue, Window

MESSAGES = 500  # in one turn: what a read of 64 KiB brings
PASSES = 40
TOPIC = b"stock/nasdaq/AAPL/trades"
PAYLOAD = bytes(64)
GIB = 1 << 30
IDENTIFIERS = 65_535
EXTRAS = b"\x03\0\x0atext/plain\x26\0\x04unit\0\x03USD"
ALIAS = b"\x23\0\x01"


class Peer:
    """A connection's outbox and lane; with a version the session's window, too."""

    def __init__(self, ledger: Ledger, routes: RouteCache, version: Version | None) -> None:
        self.outbox = Outbox(ledger, GIB, "drop_newest")
        self.inbox = Inbox(ReceiveBuffer(), ledger)
        self.advance: Callable[[], int]
        self.way: Outbox | Window = self.outbox
        self.format: Format = NATIVE
        self.acknowledged = 0
        if version is None:
            native = NativeLane(self.inbox, self.outbox, routes, ledger, frame_max=GIB, control_max=GIB)
            native.open = True
            self.advance = native.advance
        else:
            window = self.way = Window(self.outbox, Queue(ledger, 10_000, GIB))
            window.attach(self.outbox, IDENTIFIERS)
            window.resume(0.0)
            lane = MqttLane(self.inbox, self.outbox, routes, ledger, packet_max=GIB, control_max=GIB)
            self.format = FORMATS[version]
            lane.begin(FORMATS[version], window, alias_max=10)
            self.advance = lambda: lane.advance(0.0)

    def emptied(self) -> int:
        """The bytes that a flush would have written."""
        octets = 0
        while self.outbox.size:
            octets += len(self.outbox.take())
        self.outbox.clean()
        return octets

    def acknowledgements(self) -> bytes:
        """PUBACKs of a turn's messages, in order."""
        octets = b""
        for _ in range(MESSAGES):
            self.acknowledged = self.acknowledged % IDENTIFIERS + 1
            octets += b"\x40\x02" + self.acknowledged.to_bytes(2, "big")
        return octets


class Case:
    """One kind of publish, and who gets it."""

    def __init__(
        self, publish: bytes, subscribers: int, version: Version | None = None, qos: int = 0, aliases: bool = False
    ) -> None:
        self.batch = publish * MESSAGES
        self.qos = qos
        self.ledger = Ledger(GIB, lambda: None)
        routes = RouteCache(10)
        self.publisher = Peer(self.ledger, routes, version)
        self.receivers = [Peer(self.ledger, routes, version) for _ in range(subscribers)]
        variants = Variants()
        formats = [AliasFormat(10) if aliases else one.format for one in self.receivers]
        targets = [
            Target(one.way, variants.of(format, qos), number)
            for number, (one, format) in enumerate(zip(self.receivers, formats, strict=True))
        ]
        routes.add(Route(RouteCache.key_of(0 if version is None else 1, TOPIC), targets, []))
        if version is V5:
            self.publisher.inbox.feed(packet(V5, properties=ALIAS))  # tell the alias
            self.publisher.advance()
            self.turn_over()
        self.octets = 0.0  # out, for each delivery
        self.best = float("inf")

    def turn_over(self) -> int:
        octets = sum(one.emptied() for one in self.receivers)
        self.publisher.emptied()
        self.ledger.take_dirty()
        return octets

    def run(self) -> None:
        """One turn: what is published, and what the subscribers answer."""
        self.publisher.inbox.feed(self.batch)
        spent = timed(self.publisher.advance)
        self.octets = self.turn_over() / MESSAGES / len(self.receivers)
        if self.qos:
            for one in self.receivers:
                one.inbox.feed(one.acknowledgements())
                spent += timed(one.advance)
        self.best = min(self.best, spent / MESSAGES)


def timed(advance: Callable[[], int]) -> int:
    start = time.thread_time_ns()
    event = advance()
    spent = time.thread_time_ns() - start
    if event != NEED_MORE:
        raise RuntimeError(f"event {event}: this publish left the lane")
    return spent


def frame(*fields: object) -> bytes:
    body: bytes = msgpack.packb(fields)
    return struct.pack(">I", len(body)) + body


def packet(version: Version, topic: bytes = TOPIC, qos: int = 0, properties: bytes = b"") -> bytes:
    """A PUBLISH of less than 128 bytes."""
    body = struct.pack(">H", len(topic)) + topic + (b"\0\x07" if qos else b"")
    if version is V5:
        body += bytes((len(properties),)) + properties
    body += PAYLOAD
    return bytes((0x30 | qos << 1, len(body))) + body


def cases(subscribers: int) -> dict[str, Case]:
    topic = TOPIC.decode()
    return {
        "native": Case(frame(3, None, topic, PAYLOAD), subscribers),
        "native receipt": Case(frame(3, 7, topic, PAYLOAD), subscribers),
        "3.1.1": Case(packet(V3), subscribers, V3),
        "3.1.1 QoS 1": Case(packet(V3, qos=1), subscribers, V3, 1),
        "5.0": Case(packet(V5), subscribers, V5),
        "5.0 QoS 1": Case(packet(V5, qos=1), subscribers, V5, 1),
        "5.0 properties": Case(packet(V5, properties=EXTRAS), subscribers, V5),
        "5.0 alias": Case(packet(V5, b"", properties=ALIAS), subscribers, V5),
        "5.0 aliases": Case(packet(V5, b"", properties=ALIAS), subscribers, V5, aliases=True),
    }


def main() -> int:
    parser("lanes", __doc__).parse_args()
    results = {}
    for subscribers in (1, 10):
        ways = cases(subscribers)
        for _ in range(PASSES):
            for case in ways.values():
                case.run()
        results[f"{subscribers} subscribers"] = {
            name: {
                "ns_per_publish": round(case.best, 1),
                "ns_per_delivery": round(case.best / subscribers, 1),
                "bytes_per_delivery": round(case.octets, 1),
            }
            for name, case in ways.items()
        }
    return report("lanes", results)


if __name__ == "__main__":
    sys.exit(main())
