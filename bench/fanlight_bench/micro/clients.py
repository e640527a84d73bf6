"""Connections without sockets, and the frames that are published: what parse, fan_out, flush and lanes share.

They stand on what wire and the lanes show to the protocols, and on nothing inside.
"""

import struct
from collections.abc import Callable

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.protocols.mqtt.format import FORMATS
from fanlight_broker.protocols.mqtt.lane import MqttLane
from fanlight_broker.protocols.mqtt.version import V5, Version
from fanlight_broker.protocols.native.format import FORMAT as NATIVE
from fanlight_broker.protocols.native.lane import NativeLane
from fanlight_broker.wire.inbox import Inbox, ReceiveBuffer
from fanlight_broker.wire.lane import NEED_MORE
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Format
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.window import Window

TOPIC = b"stock/nasdaq/AAPL/trades"
PAYLOAD = bytes(64)
GIB = 1 << 30
IDENTIFIERS = 65_535
EXTRAS = b"\x03\0\x0atext/plain\x26\0\x04unit\0\x03USD"  # a content type and a user property
ALIAS = b"\x23\0\x01"


def frame(*fields: object) -> bytes:
    """One of the native protocol."""
    body: bytes = msgpack.packb(fields)
    return struct.pack(">I", len(body)) + body


def native(topic: bytes = TOPIC, receipt: bool = False) -> bytes:
    """A PUBLISH of the native protocol."""
    return frame(3, 7 if receipt else None, topic.decode(), PAYLOAD)


def packet(version: Version, topic: bytes = TOPIC, qos: int = 0, properties: bytes = b"") -> bytes:
    """A PUBLISH of MQTT, of less than 128 bytes."""
    body = struct.pack(">H", len(topic)) + topic + (b"\0\x07" if qos else b"")
    if version is V5:
        body += bytes((len(properties),)) + properties
    body += PAYLOAD
    return bytes((0x30 | qos << 1, len(body))) + body


def key(version: Version | None, topic: bytes = TOPIC) -> bytes:
    """Of a route: a native PUBLISH that says nothing else is in amqp's syntax, which is 0."""
    return RouteCache.key_of(0 if version is None else 1, topic)


class MicroClient:
    """A connection's outbox and lane; with a version the session's window, too."""

    def __init__(self, ledger: Ledger, routes: RouteCache, version: Version | None) -> None:
        self.outbox = Outbox(ledger, GIB, "drop_newest")
        self.inbox = Inbox(ReceiveBuffer(), ledger)
        self.advance: Callable[[], int]
        self.way: Outbox | Window = self.outbox
        self.format: Format = NATIVE
        self.acknowledged = 0
        if version is None:
            lane = NativeLane(self.inbox, self.outbox, routes, ledger, frame_max=GIB, control_max=GIB)
            lane.open = True
            self.advance = lane.advance
        else:
            window = self.way = Window(self.outbox, Queue(ledger, 10_000, GIB))
            window.attach(self.outbox, IDENTIFIERS)
            window.resume(0.0)
            mqtt = MqttLane(self.inbox, self.outbox, routes, ledger, frame_max=GIB, control_max=GIB)
            self.format = FORMATS[version]
            mqtt.begin(FORMATS[version], window, alias_max=10)
            self.advance = lambda: mqtt.advance(0.0)

    def run(self) -> None:
        """Through the lane with all that was fed, which must not leave it."""
        event = self.advance()
        if event != NEED_MORE:
            raise RuntimeError(f"event {event}: this publish left the lane")

    def emptied(self) -> int:
        """The bytes that a flush would have written."""
        octets = 0
        while self.outbox.size:
            octets += len(self.outbox.read())
        self.outbox.clean()
        return octets

    def acknowledgements(self, messages: int) -> bytes:
        """PUBACKs of this number of messages, in order."""
        octets = b""
        for _ in range(messages):
            self.acknowledged = self.acknowledged % IDENTIFIERS + 1
            octets += b"\x40\x02" + self.acknowledged.to_bytes(2, "big")
        return octets
