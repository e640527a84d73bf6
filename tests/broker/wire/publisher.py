"""A publisher for tests of the compiled floor: frames into a lane, on routes that the test has made."""

from typing import Any

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.protocols.native import lane
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.inbox import Inbox, ReceiveBuffer
from fanlight_broker.wire.lane import BLOCKED, NEED_MORE
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target

VARIANTS = Variants()


def native_target(outbox: Outbox, number: int, **options: Any) -> Target:
    """A native subscription."""
    return Target(outbox, VARIANTS.of(FORMAT), number, **options)


class Publisher:
    """Its own outbox, for receipts and no-echo, is `outbox`."""

    def __init__(self, ledger: Ledger, routes: RouteCache | None = None) -> None:
        self.ledger = ledger
        self.outbox = Outbox(ledger, 1 << 30, "drop_newest")
        self.routes = RouteCache(1_000) if routes is None else routes
        self.inbox = Inbox(ReceiveBuffer(), ledger)
        self.lane = lane.NativeLane(
            self.inbox, self.outbox, self.routes, ledger, frame_max=1 << 24, control_max=1 << 24
        )
        self.lane.open = True

    def route(self, topic: bytes, targets: list[Target], groups: list[QueueGroup] | None = None) -> Route:
        route = Route(RouteCache.key_of(0, topic), targets, groups or [])
        self.routes.add(route)
        return route

    def publish(self, topic: bytes, payload: bytes, request: int | None = None) -> bool:
        """Publish on a known route. Returns False if an outbox holds the message back; it is forgotten then."""
        return self.send(publish(topic, payload, request))

    def send(self, octets: bytes) -> bool:
        """The same for PUBLISHes that come in one piece; those behind the one that is held back are forgotten, too."""
        self.inbox.feed(octets)
        event = self.lane.advance()
        assert event in (NEED_MORE, BLOCKED)
        self.inbox.clear()
        return event == NEED_MORE

    def routed(self, topic: bytes, payload: bytes = b"") -> int:
        """Publish, and return what the receipt says."""
        assert self.publish(topic, payload, request=1)
        receipt = msgpack.unpackb(self.outbox.read()[4:])
        assert receipt[:2] == [5, 1]
        return int(receipt[2])


def publish(topic: bytes, payload: bytes, request: int | None = None) -> bytes:
    body = msgpack.packb([3, request]).replace(b"\x92", b"\x94", 1) + tail(topic, payload)
    return len(body).to_bytes(4, "big") + bytes(body)


def tail(topic: bytes, payload: bytes) -> bytes:
    encoded: bytes = msgpack.packb(topic) + msgpack.packb(payload)
    return encoded


def message(number: int, topic: bytes, payload: bytes) -> bytes:
    """The MESSAGE that a subscription gets."""
    body = b"\x94\x04\xce" + number.to_bytes(4, "big") + tail(topic, payload)
    return len(body).to_bytes(4, "big") + body
