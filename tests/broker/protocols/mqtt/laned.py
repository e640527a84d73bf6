"""A client whose lane is driven without a connection around it: packets in, and what its subscribers get out."""

from fanlight_broker.core.enforcement import UNKNOWN
from fanlight_broker.protocols.mqtt import lane
from fanlight_broker.protocols.mqtt.errors import PacketTooLarge
from fanlight_broker.protocols.mqtt.format import FORMATS, PublishFormat
from fanlight_broker.protocols.mqtt.framing import PacketDecoder, RawPacket
from fanlight_broker.protocols.mqtt.version import V5, Version
from fanlight_broker.wire.inbox import Inbox, ReceiveBuffer
from fanlight_broker.wire.lane import FAULT, FRAME, NEED_MORE, PUBLISH, TOO_LARGE
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import RETAIN_CLEAR, Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target
from fanlight_broker.wire.window import Window

MAXIMUM = 300
SYNTAX = 1
Ended = tuple[int, str]
VARIANTS = Variants()


class Client:
    """`version` None: before CONNECT is accepted."""

    def __init__(
        self, version: Version | None = None, *, packet_max: int = MAXIMUM, control_max: int = 1 << 20,
        alias_max: int = 10, plain: bool = False, ledger: Ledger | None = None, routes: RouteCache | None = None,
        receive_max: int = 100, policy: str = "pause", limit: int = 1 << 20,
    ) -> None:  # fmt: skip
        self.ledger = ledger or Ledger(1 << 30, lambda: None)
        self.outbox = Outbox(self.ledger, limit, policy)
        self.inbox = Inbox(ReceiveBuffer(), self.ledger)
        self.routes = RouteCache(100) if routes is None else routes
        self.window = Window(self.outbox, Queue(self.ledger, 1_000, 1 << 20))
        self.window.attach(self.outbox, receive_max)
        self.window.resume(0.0)
        self.lane = lane.MqttLane(
            self.inbox, self.outbox, self.routes, self.ledger, frame_max=packet_max, control_max=control_max
        )
        self.version = version
        if version is not None:
            self.lane.begin(FORMATS[version], self.window, alias_max=alias_max)
            self.lane.badge = UNKNOWN if plain else None
        self.missed: list[bytes] = []  # topics that had no route

    def target(
        self, qos: int = 0, retain: int = RETAIN_CLEAR, identifiers: bytes = b"", format: PublishFormat | None = None
    ) -> Target:
        """A subscription of this client."""
        return Target(self.window, VARIANTS.of(format or self.format, qos, retain, identifiers), 1)

    @property
    def format(self) -> PublishFormat:
        return FORMATS[self.version or V5]

    def route(self, topic: bytes, *targets: Target) -> Route:
        route = Route(RouteCache.key_of(SYNTAX, topic), list(targets), [])
        self.routes.add(route)
        return route

    def send(self, *pieces: bytes, now: float = 0.0) -> tuple[list[RawPacket], Ended | None]:
        """Bytes in pieces. What was left for Python but PUBLISH, and how it ended if it did.

        A PUBLISH for Python goes on its route; one without is passed over, and its topic is in `missed`.
        """
        found = []
        for piece in pieces:
            self.inbox.feed(piece)
            while (event := self.lane.advance(now)) in (FRAME, PUBLISH):
                if event == FRAME:
                    found.append(RawPacket(self.lane.first_byte, self.lane.frame()))
                    continue
                route = self.routes.lookup(SYNTAX, self.lane.message.topic)
                if route is not None:
                    assert self.lane.forward(route)
                    assert self.lane.confirm(route) == (self.lane.message.qos < 2)
                else:
                    self.missed.append(self.lane.message.topic)
                    self.lane.done()
            if event == FAULT:
                return found, (self.lane.fault_reason, self.lane.fault)
            if event == TOO_LARGE:
                error = PacketTooLarge(self.lane.frame_size, self.lane.frame_max)
                return found, (error.reason_code, error.text)
            assert event == NEED_MORE
        return found, None

    def got(self) -> bytes:
        """What the client was sent since it was last asked."""
        octets = b""
        while self.outbox.size:
            octets += self.outbox.read()
        return octets


def cut(octets: bytes, size: int) -> list[bytes]:
    return [octets[at : at + size] for at in range(0, len(octets), size)]


def split(octets: bytes) -> list[RawPacket]:
    """The packets of a stream that is whole."""
    decoder = PacketDecoder(1 << 28)
    decoder.feed(octets)
    found = []
    while (packet := decoder.next_packet()) is not None:
        found.append(packet)
    assert len(decoder) == 0
    return found
