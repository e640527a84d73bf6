"""One session with a window, for tests."""

import re
from typing import Any

from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message, Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.target import Target
from fanlight_broker.wire.window import Window
from tests.broker.wire.formats import LineFormat

LINE = re.compile(rb"PUB qos=(\d) retain=0 dup=(\d) ids= (?:left=\d+ )?(?:id=(..) )?t (\d*)|REL id=(..)", re.DOTALL)


class World:
    """One session with a window, and messages 0, 1, 2, ... for it."""

    def __init__(self, *, receive_max: int = 3, messages_max: int = 100, qos: int = 2, policy: str = "pause",
                 limit: int = 1 << 20, **queue: Any) -> None:
        self.ledger = Ledger(1 << 30, lambda: None)
        self.format = LineFormat("lines")
        self.variants = Variants()
        self.policy, self.limit = policy, limit
        self.queue = Queue(self.ledger, messages_max, queue.pop("bytes_max", 1 << 20), **queue)
        self.window = Window(self.outbox(), self.queue)
        self.target = Target(self.window, self.variants.of(self.format, qos), 1)
        self.route = Route(b"\0t", [self.target], [])
        self.published = 0
        self.connect(receive_max)

    def outbox(self) -> Outbox:
        return Outbox(self.ledger, self.limit, self.policy)

    def connect(self, receive_max: int) -> None:
        self.window.attach(self.outbox(), receive_max)
        self.window.resume(0.0)

    def disconnect(self) -> None:
        self.window.leave()
        self.window.outbox.discard()

    def message(self, qos: int, **options: Any) -> Message:
        message = Message(self.format, b"t", 0, b"%d" % self.published, qos=qos, **options)
        self.published += 1
        return message

    def publish(self, qos: int = 1, times: int = 1, **options: Any) -> None:
        for _ in range(times):
            publish(self.route, self.ledger, None, self.message(qos, **options))

    def got(self) -> list[tuple[Any, ...]]:
        """What the client reads: (number, QoS, dup, identifier), or ("REL", identifier)."""
        octets = self.window.outbox.read(1 << 30)
        self.window.outbox.drained()
        found: list[tuple[Any, ...]] = []
        at = 0
        while at < len(octets):
            match = LINE.match(octets, at)
            assert match is not None, octets[at:]
            at = match.end()
            if match[5]:
                found.append(("REL", int.from_bytes(match[5], "big")))
            else:
                found.append((int(match[4]), int(match[1]), int(match[2]), int.from_bytes(match[3] or b"", "big")))
        return found
