"""A listener: accepts connections within the limits, and looks after them by the clock.

What needs time happens here: handshakes that take too long, peers that fall silent, closes that nobody reads. One
timer serves all connections of a listener; a connection has none of its own.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from broker.core.broker import Broker
from broker.core.ports import Authenticator, WireConnection
from broker.net.connection import Connection, ProtocolConnection
from broker.wire.inbox import ReceiveBuffer
from broker.wire.outbox import Outbox

log: Final = structlog.stdlib.get_logger("net")

TICK_SECONDS: Final = 0.25  # how exact the time limits are
LOOKED_AT_PER_TICK: Final = 2_000  # connections whose silence is checked in one tick: bounds its length to some ms
BACKLOG: Final = 4_096  # connections that wait to be accepted, in the kernel

ProtocolFactory = Callable[[Broker, WireConnection, ReceiveBuffer, float], ProtocolConnection]


class Listener:
    """A TCP listener for one protocol.

    name   in logs, and the protocol's
    direct whether plain TCP connections are written to with sendmsg(2) instead of through the transport
    """

    def __init__(
        self, name: str, broker: Broker, factory: ProtocolFactory, authenticator: Authenticator, *,
        clock: Callable[[], float], shared: ReceiveBuffer, direct: bool = True,
    ) -> None:
        self.name = name
        self.broker = broker
        self.authenticator = authenticator
        self.clock = clock
        self.direct = direct
        self.accepted = self.refused = self.ended = 0
        self.handshakes_failed = self.protocol_errors = self.requests_refused = 0
        self._factory = factory
        self._shared = shared
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._connections: dict[Connection, ProtocolConnection] = {}
        self._addresses: Counter[str] = Counter()
        self._handshakes: dict[Connection, float] = {}  # when they came, those not through it among them; oldest first
        self._closing: dict[Connection, float] = {}  # since when; oldest first
        self._refusing: set[Connection] = set()
        self._draining = False
        self._round: list[Connection] = []
        self._empty = asyncio.Event()
        self._empty.set()

    # -- its life ---------------------------------------------------------------------------------------------------

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Bind and accept. Returns host and port, which is a free one if 0 was asked for. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), host, port, backlog=BACKLOG, reuse_address=True
        )
        self._timer = loop.call_later(TICK_SECONDS, self._tick)
        bound: socket.socket = self._server.sockets[0]
        address = bound.getsockname()
        return str(address[0]), int(address[1])

    @property
    def accepting(self) -> bool:
        return self._server is not None and self._server.is_serving()

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()

    async def drain(self, seconds: float, text: str) -> int:
        """Say goodbye to all, give them `seconds` to read what they were still to get. Returns how many did not."""
        self.stop_accepting()
        self._draining = True
        for protocol in list(self._connections.values()):
            protocol.say_goodbye("shutting_down", text)
        with suppress(TimeoutError):  # those who are late are closed below, and counted
            await asyncio.wait_for(self._empty.wait(), seconds)
        late = list(self._connections)
        for connection in late:
            connection.abort("did not read its goodbye in time")
        await asyncio.sleep(0)  # connection_lost runs in the next turn
        await self.stop()
        return len(late)

    async def stop(self) -> None:
        """Close everything at once."""
        self.stop_accepting()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in list(self._connections):
            connection.abort("the broker stops")
        await self._empty.wait()

    # -- connections (connection.Home) ------------------------------------------------------------------------------

    def opened(self, connection: Connection) -> ProtocolConnection | None:
        """A connection has come in: its protocol's side, or None if a limit refuses it."""
        limits, now = self.broker.limits, self.clock()
        refusal = None
        if len(self._connections) >= limits.connections_max:
            refusal = f"{limits.connections_max} connections (connections_max)"
        elif self._addresses[connection.address] >= limits.connections_per_address_max:
            refusal = f"{limits.connections_per_address_max} connections from one address (connections_per_address_max)"
        if refusal is not None and self.refused % 1000 == 0:
            log.warning("connection_refused", listener=self.name, address=connection.address, limit=refusal)
        protocol = self._factory(self.broker, connection, self._shared, now)
        self._connections[connection] = protocol
        self._addresses[connection.address] += 1
        self._empty.clear()
        self.accepted += 1
        if refusal is None:
            self._handshakes[connection] = now
        else:
            self.refused += 1
            self._refusing.add(connection)
            asyncio.get_running_loop().call_soon(
                protocol.say_goodbye, "too_many_connections", f"this broker has {refusal}; try later"
            )
        return protocol

    def closed(self, connection: Connection) -> None:
        protocol = self._connections.pop(connection, None)
        if protocol is None:
            return
        self.ended += 1
        self.handshakes_failed += protocol.client is None
        self.protocol_errors += protocol.failed is not None
        self.requests_refused += protocol.refused
        self._closing.pop(connection, None)
        self._handshakes.pop(connection, None)
        self._refusing.discard(connection)
        self._addresses[connection.address] -= 1
        if not self._addresses[connection.address]:
            del self._addresses[connection.address]
        if not self._connections:
            self._empty.set()

    def closing(self, connection: Connection) -> bool:
        """A connection is being closed. Returns whether to wait for the peer's own close; not if it is one too many."""
        self._closing[connection] = self.clock()
        return connection not in self._refusing

    def drained(self, outbox: Outbox) -> None:
        """Let the publishers go on that `outbox` held back, in a turn of their own."""
        loop = asyncio.get_running_loop()
        for client in self.broker.flow.drained(outbox):
            loop.call_soon(client.speaker.unblocked)

    # -- the clock --------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        now, limits = self.clock(), self.broker.limits
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)
        while self._handshakes:
            connection, since = next(iter(self._handshakes.items()))
            if now - since < limits.handshake_seconds_max:
                break
            del self._handshakes[connection]
            protocol = self._connections.get(connection)
            if protocol is not None and protocol.client is None:
                protocol.say_goodbye(
                    "handshake_timeout", f"no complete handshake within {limits.handshake_seconds_max:g} s"
                )
        for connection, since in list(self._closing.items()):
            if now - since < limits.linger_seconds_max:
                break  # the oldest stand first
            if self._draining and not connection.flushed:
                continue  # it has the whole grace period
            connection.abort("did not read its goodbye in time")
        if not self._round:
            self._round = list(self._connections)
        for _ in range(min(LOOKED_AT_PER_TICK, len(self._round))):
            protocol = self._connections.get(self._round.pop())
            if protocol is not None:
                protocol.idle(now)
                protocol.outbox.rest()
        self.broker.sweep(now)

    def counters(self) -> dict[str, int]:
        """Monotonic counts, by the names of core/views.py."""
        live = self._connections.values()
        return {
            "connections_accepted": self.accepted,
            "connections_closed": self.ended,
            "connections_refused": self.refused,
            "handshakes_failed": self.handshakes_failed,
            "protocol_errors": self.protocol_errors,
            "requests_refused": self.requests_refused + sum(protocol.refused for protocol in live),
        }
