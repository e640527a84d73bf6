"""One TCP connection: asyncio on one side, a protocol without I/O on the other.

Bytes are read into the loop's one receive buffer and parsed where they lie; what is to be written collects in the
outbox and goes out once per turn (flush.pyx). TLS and WebSocket are transports to it, no more. Under
the poller that is a Socket (tcp.pyx, tls_socket.pyx).
This file ends where asyncio ends.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from fanlight_broker import event_log
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import ProtocolConnection
from fanlight_broker.core.errors import FanlightError, LimitExceeded
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.ports import Authenticator, LoginExchange
from fanlight_broker.net.flush import SocketSink
from fanlight_broker.net.handshake import Handshake, peer_of
from fanlight_broker.net.tls_memory import READ_BYTES_MAX
from fanlight_broker.net.traffic import Traffic
from fanlight_broker.wire.hidden import hide, show
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wire.outbox import Outbox

if TYPE_CHECKING:
    from fanlight_broker.net.tcp import Socket

log: Final = event_log.get("net")
Outcome = TypeVar("Outcome")

# A read of this many bytes ends a connection's turn. libuv would continue to read, up to 32 times and 8 MiB: some
# seconds in which no other connection is read, and no outbox flushed.
LONG_READ: Final = 128 * 1024


class ConnectionOwner(Protocol):
    """What a connection needs of its listener."""

    authenticator: Authenticator
    broker: Broker
    clock: Callable[[], float]
    direct: bool

    def opened(self, connection: "Connection") -> ProtocolConnection | None: ...
    def wrong_protocol(self, connection: "Connection", first: bytes) -> bytes | None: ...
    def closed(self, connection: "Connection") -> None: ...
    def closing(self, connection: "Connection") -> bool: ...
    def refuses(self, connection: "Connection") -> bool: ...
    def drained(self, outbox: Outbox) -> None: ...
    def expires(self, connection: "Connection", at: float) -> None: ...
    def certified(self, certificate: Mapping[str, Any] | None) -> tuple[str, int | None]: ...


class Connection(asyncio.BufferedProtocol):
    """The transport side of a connection (`ports.Transport`)."""

    def __init__(self, owner: ConnectionOwner, traffic: Traffic, handshake: Handshake | None = None) -> None:
        self.owner = owner
        self.traffic = traffic  # of the port that accepted it
        self.handshake = handshake  # if it uses TLS or WebSocket
        self._memory = handshake.memory if handshake is not None else None  # of its TLS
        self.address = ""
        self.port = 0
        self.certified = ""  # the name in the client's certificate
        self.serial: int | None = None  # of that certificate
        self.identity: Identity | None = None  # once the authenticator has accepted it
        self.close_reason = "closed by the client"
        self._transport: asyncio.Transport | None = None
        self._socket: Socket | None = None  # the same, if it is the poller's
        self._sink: SocketSink | None = None
        self._protocol: ProtocolConnection | None = None
        self._login: asyncio.Task[None] | None = None
        self._paused = False  # the protocol wants to read nothing
        self._turn_over = False  # nothing is read until other connections have had their turn
        self._go_on: Callable[[], None] | None = None  # what the protocol does first in its next turn
        self._rest = b""  # read by a layer below, while the protocol wants to read nothing: one read at most
        self._secured = False
        self._largest_read = 0  # in bytes, by TLS
        self._offered = 0  # bytes of the buffer that TLS was given last

    # -- asyncio's side ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is one, and does not say so
        self._secured = transport.get_extra_info("sslcontext") is not None
        # So that we hear at once when the socket is full; asyncio's TLS takes 0 for full when there is nothing in it.
        transport.set_write_buffer_limits(high=1 if self._secured else 0)
        # A proxy may have said who it is from.
        known = self.handshake
        self.address, self.port = peer_of(transport) if known is None else (known.address, known.port)
        self.certified, self.serial = self.owner.certified(transport.get_extra_info("peercert"))
        plain = transport.get_extra_info("socket")
        fd = -1
        if plain is not None and plain.family in (socket.AF_INET, socket.AF_INET6):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.owner.direct and self.handshake is None:
                fd = plain.fileno()
        self._open(transport, fd)

    def accepted(self, socket: "Socket") -> None:
        """`connection_made`, for a socket of the poller's. It reads by itself, and calls all else that follows here."""
        self._transport = cast(asyncio.Transport, socket)
        self.address, self.port = socket.address, socket.port
        if self.handshake is None or self.handshake.memory is None:  # plain TCP, perhaps through a proxy
            self._open(self._transport, socket.fd, waits=True)
        else:  # a TlsSocket, which must be given all bytes, and charges its memory itself
            self._memory = None
            self.certified, self.serial = self.owner.certified(socket.get_extra_info("peercert"))
            self._open(self._transport, -1)
        if self._protocol is not None:
            self._socket = socket
            hide(socket)
            socket.attach(self, self._protocol)

    def _open(self, transport: asyncio.Transport, fd: int, *, waits: bool = False) -> None:
        self._protocol = self.owner.opened(self)
        if self._protocol is None:
            transport.abort()
            return
        outbox = self._protocol.outbox
        self._sink = outbox.sink = SocketSink(outbox, transport, self.owner.drained, fd, waits)
        hide(self._sink)

    def get_buffer(self, sizehint: int) -> ReceiveBuffer | memoryview:
        assert self._protocol is not None
        buffer = self._protocol.inbox.next_buffer()
        if not self._secured:
            return buffer
        self._offered = len(view := memoryview(buffer))
        return view  # asyncio's own TLS takes slices of it

    def buffer_updated(self, nbytes: int) -> None:
        protocol = self._protocol
        assert protocol is not None
        try:
            self.owner.broker.turns.begin()
            protocol.inbox.received(nbytes)
            if self._memory is not None:
                # Where the buffer is full TLS may have read more than fits.
                size = READ_BYTES_MAX if nbytes == self._offered else nbytes
                if size > self._largest_read and not self._may_read(size):
                    return
            protocol.receive(self.owner.clock())
        except Exception:
            self.fault()
        if nbytes >= LONG_READ:
            self.next_turn()

    def _may_read(self, size: int) -> bool:
        """Is there room for what TLS keeps after a read of this size? If not, the connection ends."""
        self._largest_read = size
        if self._memory is None or self._memory.read(size):
            return True
        self._no_room_for_tls()
        return False

    def _no_room_for_tls(self) -> None:
        if self._protocol is not None and not self._protocol.closed:
            most = self.owner.broker.limits.tls_bytes_max
            self.protocol.fail(LimitExceeded("the buffers of all TLS connections are too large", "tls_bytes_max", most))

    def fault(self) -> None:
        # A fault of the broker: it is logged once with its traceback, and ends this connection only.
        client = str(self._protocol.client or "") if self._protocol is not None else ""
        log.exception("internal_error", address=self.address, port=self.port, client=client)
        self.abort("internal error")

    def take(self, octets: bytes | bytearray) -> None:
        """Bytes that a layer below has read. What the protocol does not want to read yet is kept until it does."""
        self._rest += octets
        self.protocol.inbox.keep_outside(len(octets))
        self._take_rest()

    def _take_rest(self) -> None:
        rest = memoryview(self._rest)
        while rest and self._transport is not None and not self._transport.is_closing():
            if self._paused or self._turn_over:
                break
            room = memoryview(self.get_buffer(len(rest)))
            size = min(len(room), len(rest))
            room[:size] = rest[:size]
            room.release()
            self.buffer_updated(size)
            rest = rest[size:]
            self.protocol.inbox.keep_outside(-size)
        self._rest = bytes(rest)
        self._read_or_not()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        if self._sink is not None:
            self._sink.paused()

    def resume_writing(self) -> None:
        if self._sink is not None:
            self._sink.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._login is not None:
            self._login.cancel()
        if self._sink is not None:
            self._sink.abort()
        if exc is not None and self.close_reason == "closed by the client":
            self.close_reason = f"connection lost: {exc}"
        if self._protocol is not None:
            released = self._protocol.lost(self.close_reason)
            self._protocol.outbox.sink = None
            show(self._sink, self._socket)
            self.owner.closed(self)
            for client in released:
                client.connection.unblocked()
            # They refer to it, and it to none of them any more: all are freed now, and are no work for the collector.
            self._protocol = self._sink = self._socket = self._transport = None

    def peer_gone(self) -> None:
        """Its peer has closed or reset the connection while nothing is read from it. From a Socket of the poller."""
        if self._protocol is not None:
            self._protocol.peer_gone()

    # -- the protocol's side ----------------------------------------------------------------------------------------

    @property
    def protocol(self) -> ProtocolConnection:
        assert self._protocol is not None
        return self._protocol

    @property
    def listener(self) -> str:
        return self.traffic.name

    def now(self) -> float:
        return self.owner.clock()

    def wrong_protocol(self, first: bytes) -> bytes | None:
        return self.owner.wrong_protocol(self, first)

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        if self.owner.refuses(self):
            return None  # its GOODBYE comes in the next turn, and a HELLO may be here before
        identity = self.owner.authenticator.identify(
            user, password, certified=self.certified, address=self.address, client=client,
            protocol=self.traffic.protocol, listener=self.traffic.name,
        )
        if identity is not None:
            self.identity = identity
            return identity
        self._login = asyncio.get_running_loop().create_task(self._authenticate(user, password, client))
        return None

    async def _authenticate(self, user: str | None, password: str | None, client: str) -> None:
        def then(identity: Identity) -> None:
            self._identified(identity)
            self.protocol.authenticated(identity, self.owner.clock())

        await self._hear(
            lambda: self.owner.authenticator.authenticate(
                user, password, self.address, certified=self.certified, client=client, protocol=self.traffic.protocol,
                listener=self.traffic.name,
            ), then,
        )

    async def _step(self, exchange: LoginExchange, data: bytes | None) -> None:
        def then(outcome: tuple[bytes | None, Identity | None]) -> None:
            answer, identity = outcome
            if identity is not None:
                self._identified(identity)
            self.protocol.stepped(answer, identity, self.owner.clock())

        await self._hear(lambda: exchange.step(data), then)

    async def _hear(self, ask: Callable[[], Awaitable[Outcome]], then: Callable[[Outcome], None]) -> None:
        """Ask the authenticator, and give the protocol the outcome."""
        try:
            outcome = await ask()
        except FanlightError as error:
            self.protocol.refuse(error)
            return
        except Exception:
            self.fault()
            return
        finally:
            self._login = None
        try:
            then(outcome)
        except Exception:
            self.fault()

    def offers(self) -> frozenset[str]:
        return self.owner.authenticator.offers()

    def exchange(self, mechanism: str, user: str | None) -> LoginExchange | None:
        return self.owner.authenticator.exchange(
            mechanism, user, self.address, protocol=self.traffic.protocol, listener=self.traffic.name
        )

    def step(self, exchange: LoginExchange, data: bytes | None) -> None:
        if not self.owner.refuses(self):
            self._login = asyncio.get_running_loop().create_task(self._step(exchange, data))

    def _identified(self, identity: Identity) -> None:
        before, self.identity = self.identity, identity
        if identity.expires is not None:
            self.owner.expires(self, identity.expires)
        elif before is not None:  # it has shown others, which do not expire, in place of those
            self.owner.expires(self, inf)

    def close(self, reason: str = "") -> None:
        self.close_reason = reason or "closed by the broker"
        linger = self.owner.closing(self)
        if self._socket is not None:
            self._socket.by_python()
        if self._sink is not None:
            self._sink.close(linger)
            # What the peer still sends is read and thrown away, and so is heard of its end.
            self.resume_reading()
        if self._protocol is not None:  # in a turn of its own: it may be parsing what is in there
            asyncio.get_running_loop().call_soon(self._protocol.inbox.clear)

    @property
    def flushed(self) -> bool:
        """Whether everything that is to be sent before the close has been sent."""
        return self._sink is None or self._sink.ended

    def abort(self, reason: str) -> None:
        self.close_reason = reason
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        self._paused = True
        self._read_or_not()

    def resume_reading(self) -> None:
        self._paused = False
        self._read_or_not()

    def next_turn(self, go_on: Callable[[], None] | None = None) -> None:
        if go_on is not None:
            self._go_on = go_on
        if not self._turn_over:
            self._turn_over = True
            self._read_or_not()
            self.owner.broker.turns.later(self._new_turn)

    def _new_turn(self) -> None:
        self._turn_over = False
        go_on, self._go_on = self._go_on, None
        if go_on is not None:
            try:
                go_on()
            except Exception:
                self.fault()
        self._read_or_not()

    def _read_or_not(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        paused = self._paused or self._turn_over
        if self._memory is not None and not self._memory.pause(paused):
            # In a turn of its own: this is called while what was read is parsed.
            asyncio.get_running_loop().call_soon(self._no_room_for_tls)
        if paused:
            self._transport.pause_reading()
        elif self._rest:
            self.next_turn(self._take_rest)
        else:
            self._transport.resume_reading()
