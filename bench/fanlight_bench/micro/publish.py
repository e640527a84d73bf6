"""A publish through the broker without its sockets, by the way it takes: ns a publish.

    known  the route is in the cache: the compiled lane, from receive buffer to outbox
    plain  every publish through Python, its route in the cache: the lane's oracle
    cold   a topic nobody has used before, the cache full: it is routed for this message alone

Beside known: the others. The kinds of publish that the lane knows are in `lanes`; more about cold ones is in `cold`.
"""

from collections.abc import Callable, Collection, Iterator

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import PAYLOAD, frame
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.enforcement import UNKNOWN
from fanlight_broker.core.identity import ANONYMOUS, Identity
from fanlight_broker.core.limits import Limits, SlowPolicy
from fanlight_broker.core.ports import LoginExchange
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer

MESSAGES = 2_000


class NoSocket:
    """The transport side of a connection that stands still: frames collect in the outbox."""

    address = "127.0.0.1"
    port = 0
    certified = listener = ""
    go_on: Callable[[], None] | None = None

    def turn(self) -> None:
        """Let the protocol go on as often as it wants to."""
        while self.go_on is not None:
            go_on, self.go_on = self.go_on, None
            go_on()

    def wrong_protocol(self, first: bytes) -> bytes | None:
        return None

    def now(self) -> float:
        return 0.0

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        return None

    def offers(self) -> frozenset[str]:
        return frozenset()

    def exchange(self, mechanism: str, user: str | None) -> LoginExchange | None:
        return None

    def step(self, exchange: LoginExchange, data: bytes | None) -> None: ...
    def close(self, reason: str = "") -> None: ...
    def abort(self, reason: str) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def next_turn(self, go_on: Callable[[], None]) -> None:
        self.go_on = go_on


def connect(broker: Broker, shared: ReceiveBuffer) -> NativeConnection:
    """One that has said hello."""
    connection = NativeConnection(broker, NoSocket(), shared, 0.0)
    connection.inbox.feed(frame(1, 1, {}))
    connection.receive(0.0)
    connection.authenticated(ANONYMOUS, 0.0)
    return connection


def take_all(broker: Broker, connections: Collection[NativeConnection]) -> None:
    """Take what the outboxes have, as their sockets would."""
    for connection in connections:
        while connection.outbox.size:
            connection.outbox.read()
    broker.ledger.pop_dirty()
    for connection in connections:
        connection.outbox.clean()


class PublishSetup:
    """A broker of its own, a publisher and subscribers with a wildcard."""

    def __init__(
        self, subscribers: int, batches: Iterator[bytes], plain: bool = False, routes_max: int = MESSAGES
    ) -> None:
        self.batches = batches
        limits = Limits(slow_policy=SlowPolicy.DROP_NEWEST, routes_max=routes_max)
        self.broker = Broker(limits, lambda: None, lambda work: work())
        shared = ReceiveBuffer()
        self.publisher = connect(self.broker, shared)
        self.publisher.lane.badge = UNKNOWN if plain else None
        self.connections = [self.publisher]
        for _ in range(subscribers):
            receiver = connect(self.broker, shared)
            receiver.inbox.feed(frame(6, None, 1, "stock.*.AAPL.#"))
            receiver.receive(0.0)
            self.connections.append(receiver)

    def turn(self) -> int:
        self.publisher.inbox.feed(next(self.batches))
        spent = timed(self.publish)
        take_all(self.broker, self.connections)
        return spent

    def publish(self) -> None:
        wire = self.publisher.transport
        assert isinstance(wire, NoSocket)
        self.publisher.receive(0.0)
        wire.turn()


def same() -> Iterator[bytes]:
    batch = frame(3, None, "stock.nasdaq.AAPL", PAYLOAD) * MESSAGES
    while True:
        yield batch


def cold() -> Iterator[bytes]:
    number = 0
    while True:
        batch = [frame(3, None, f"stock.nasdaq.AAPL.{number + i}", PAYLOAD) for i in range(MESSAGES)]
        number += MESSAGES
        yield b"".join(batch)


def groups(effort: Effort) -> Iterator[Group]:
    for subscribers in (1, 100):
        ways = {
            "known": PublishSetup(subscribers, same()),
            "plain": PublishSetup(subscribers, same(), plain=True),
            "cold": PublishSetup(subscribers, cold()),
        }
        cases = [
            Case(name, MESSAGES, way.turn, () if name == "known" else ("known",)) for name, way in ways.items()
        ]
        yield Group(f"{subscribers} subscribers", cases)
