"""A listener: accepts connections within the limits, and enforces their time limits.

What needs time happens here: handshakes that take too long, peers that fall silent, closes that nobody reads. One
timer serves all connections of a listener; a connection has none of its own. Time in which the loop stood still is
nobody's fault and is not counted (core/standstill.py). A listener speaks one protocol and may have several ports, by
plain TCP, TLS and WebSocket: `start` opens one, and may be called again.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from fanlight_broker import event_log
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import ProtocolConnection
from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.limits import StoreDurability
from fanlight_broker.core.ports import Authenticator, ProtocolCheck, Transport, WrongProtocol
from fanlight_broker.net.acceptor import Secure, TcpAcceptor, TlsAcceptor
from fanlight_broker.net.admission import Admission
from fanlight_broker.net.clock import wall
from fanlight_broker.net.connection import Connection
from fanlight_broker.net.credential_ends import FAILED, NOT_VALID, end_expired, end_invalid
from fanlight_broker.net.handshake import Handshake, HandshakeTimes, HandshakeTurns
from fanlight_broker.net.proxies import LoopPlain, PollerPlain, Proxies
from fanlight_broker.net.proxy_header import ProxyOrigin
from fanlight_broker.net.strangers import StrangersNow
from fanlight_broker.net.tls import Tls, serial_of
from fanlight_broker.net.tls_handshake import LoopTls, PollerTls
from fanlight_broker.net.tls_memory import TlsMemory
from fanlight_broker.net.traffic import Traffic
from fanlight_broker.wire.hidden import hide, show
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wire.outbox import Outbox

if TYPE_CHECKING:
    from fanlight_broker.net.poller import Poller
    from fanlight_broker.net.tcp import Socket

log: Final = event_log.get("net")

TICK_SECONDS: Final = 0.25  # the precision of the time limits
LOOKED_AT_PER_TICK: Final = 2_000  # connections whose idle time is checked in one tick: bounds it to a few ms
RECHECKED_PER_TURN: Final = 100  # connections, at about 20 µs each
LOOK: Final = 32  # connections between two readings of the clock
EXPIRED_PER_TURN: Final = 100  # connections whose credentials have expired
BACKLOG: Final = 4_096  # connections that wait to be accepted, in the kernel

ProtocolFactory = Callable[[Broker, Transport, ReceiveBuffer, float], ProtocolConnection]


class Upgrade(Protocol):
    """A layer between the socket, or its TLS, and a Connection (websocket.WebSocket)."""

    def entrance(self, handshake: Handshake, connection: Callable[[], Connection]) -> asyncio.Protocol: ...


class Accepting(Protocol):
    """Accepts connections: an Acceptor, or asyncio's server."""

    def is_serving(self) -> bool: ...
    def close(self) -> None: ...


class Listener:
    """Accepts the connections of one protocol.

    name   in logs, and the protocol's
    direct whether plain TCP connections are written to with sendmsg(2) instead of through the transport
    admission  shared by the listeners of a broker, whose limits are for all connections together
    handshake_turns  shared, too: when a TLS handshake may start
    poller what TCP connections, plain and with TLS, are read and written by; without one, the loop's transports
    wall_clock  by which credentials expire
    durability  what acknowledgements to its clients wait for; None: what the broker's wait for
    protocol_check  recognises clients that speak another protocol; without it, no connection is looked at
    """

    def __init__(
        self, name: str, broker: Broker, factory: ProtocolFactory, authenticator: Authenticator, *,
        clock: Callable[[], float], shared: ReceiveBuffer, direct: bool = True, admission: Admission | None = None,
        poller: "Poller | None" = None, protocol_check: ProtocolCheck | None = None,
        handshake_turns: HandshakeTurns | None = None, durability: StoreDurability | None = None,
        wall_clock: Callable[[], float] = wall,
    ) -> None:
        self.name = name
        self.broker = broker
        self.authenticator = authenticator
        self.clock = clock
        self.direct = direct
        self.accepted = self.refused = self.ended = 0
        self.handshakes_failed = self.protocol_errors = self.requests_refused = self.revoked = self.expired = 0
        self.stages_failed = {"tls": 0, "websocket": 0}  # by stage
        self._factory, self._durability = factory, durability
        self._protocol_check = protocol_check
        self._shared = shared
        self._poller = poller
        self._admission = admission if admission is not None else Admission()
        self._strangers = StrangersNow(self._admission.strangers, lambda: self.broker.limits, clock)
        self._handshake_turns = handshake_turns or HandshakeTurns(broker.turns.later)
        self._acceptors: list[Accepting] = []
        self.traffic: list[Traffic] = []  # of each port
        self._timer: asyncio.TimerHandle | None = None
        self._connections: dict[Connection, ProtocolConnection] = {}
        self._shaking_hands: set[Handshake] = set()
        self._handshakes: HandshakeTimes[Handshake | Connection] = HandshakeTimes()
        self._by_handshake: dict[Handshake, Connection] = {}
        self._closing: dict[Connection, float] = {}  # when each began to close; oldest first
        self._refusing: set[Connection] = set()
        self._tls: Tls | None = None  # of its ports with TLS
        self._expiring: Deadlines[Connection] = Deadlines()  # when their credentials expire
        self._wall_clock = wall_clock
        self._draining = False
        self._round: list[Connection] = []
        self.drained = self._drained  # one for all connections
        self._empty = asyncio.Event()
        self._empty.set()

    # -- its life ---------------------------------------------------------------------------------------------------

    async def start(
        self, host: str, port: int, *, tls: Tls | None = None, upgrade: Upgrade | None = None,
        proxies: Proxies | None = None, name: str | None = None,
    ) -> tuple[str, int]:
        """Open a port: bind and accept. Returns host and port, a free one if 0 was asked for. Raises OSError.

        name: of the port, if it is not that of its protocol
        proxies: those that all its connections come through, with a header of the PROXY protocol
        """
        loop = asyncio.get_running_loop()
        traffic = Traffic(self.name, tls=tls is not None, websocket=upgrade is not None, name=name)
        if tls is not None or proxies is not None:
            self._tls = tls or self._tls
            secure = TlsAcceptor(
                self._secure(tls, traffic, upgrade) if tls is not None else self._plain(traffic, upgrade),
                self, lambda: self.broker.limits, traffic.name, self._handshake_turns, timed=True, proxies=proxies,
                move=self._move, plain=tls is None,
            )
            if proxies is not None:
                self.stages_failed.setdefault("proxy", 0)
            bound = await secure.start(host, port, BACKLOG)
            self._acceptors.append(secure)
        elif upgrade is None and self._poller is not None:
            plain = TcpAcceptor(self._poller, partial(self._welcome, traffic))
            bound = await plain.start(host, port, BACKLOG)
            self._acceptors.append(plain)
        else:
            server = await loop.create_server(
                lambda: self._entrance(
                    traffic, None if upgrade is None else Handshake(self, "websocket", "", 0, traffic.name), upgrade
                ),
                host, port, backlog=BACKLOG, reuse_address=True,
            )
            self._acceptors.append(server)
            name = server.sockets[0].getsockname()
            bound = str(name[0]), int(name[1])
        self.traffic.append(traffic)
        if self._timer is None:
            self._timer = loop.call_later(TICK_SECONDS, self._tick)
        return bound

    def _secure(self, tls: Tls, traffic: Traffic, upgrade: Upgrade | None) -> Secure:
        """The TLS handshake of a port."""
        if upgrade is None and self._poller is not None:
            return PollerTls(
                tls, self._poller, lambda handshake, socket: Connection(self, traffic, handshake).accepted(socket)
            )
        return LoopTls(
            tls, lambda handshake: self._entrance(traffic, handshake, upgrade),
            lambda: self.broker.limits.linger_seconds_max,
        )

    def _plain(self, traffic: Traffic, upgrade: Upgrade | None) -> Secure:
        """What has a plain connection once its proxy has said who it is from."""
        if upgrade is None and self._poller is not None:
            return PollerPlain(
                self._poller, lambda handshake, socket: Connection(self, traffic, handshake).accepted(socket)
            )
        return LoopPlain(lambda handshake: self._entrance(traffic, handshake, upgrade))

    def _entrance(
        self, traffic: Traffic, handshake: Handshake | None, upgrade: Upgrade | None
    ) -> asyncio.BaseProtocol:
        """The first asyncio protocol of a connection that is accepted, or has completed its TLS handshake."""
        if handshake is None or upgrade is None:
            return Connection(self, traffic, handshake)
        return upgrade.entrance(handshake, lambda: Connection(self, traffic, handshake))

    @property
    def accepting(self) -> bool:
        return bool(self._acceptors) and all(acceptor.is_serving() for acceptor in self._acceptors)

    def stop_accepting(self) -> None:
        for acceptor in self._acceptors:
            acceptor.close()
        for handshake in list(self._shaking_hands):
            handshake.abort("the broker stops")

    async def drain(self, seconds: float, text: str) -> int:
        """Say goodbye to all, and give them `seconds` to read the rest. Returns how many did not read it."""
        self.stop_accepting()
        self._draining = True
        for protocol in list(self._connections.values()):
            protocol.say_goodbye("shutting_down", text)
        with suppress(TimeoutError):  # late ones are closed below, and counted
            await asyncio.wait_for(self._empty.wait(), seconds)
        late = list(self._connections)
        for connection in late:
            connection.abort("did not read its goodbye in time")
        await asyncio.sleep(0)  # connection_lost runs in the next turn
        await self.stop()
        return len(late)

    async def stop(self) -> None:
        """Close everything immediately."""
        self.stop_accepting()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in list(self._connections):
            connection.abort("the broker stops")
        await self._empty.wait()

    # -- handshakes by TLS or WebSocket (handshake.HandshakeOwner) ----------------------------------------------------

    def begin_handshake(self, handshake: Handshake) -> bool:
        if self._strangers.refusal(handshake.charged) is not None:
            return False
        refusal = self._admission.refusal(handshake.charged, self.broker.limits) or self._begin_memory(handshake)
        if refusal is not None:  # without an answer: that would need the handshake that is to be avoided
            self._note_refusal(handshake.address, handshake.port, refusal)
            self.refused += 1
            return False
        self._admission.admit(handshake.charged)
        self.accepted += 1
        self._shaking_hands.add(handshake)
        self._empty.clear()
        self._handshakes.begin(handshake, self._awake())
        return True

    def _begin_memory(self, handshake: Handshake) -> str | None:
        """Charge the buffers of its TLS, if that is its stage. Returns what there is no room in."""
        if handshake.stage != "tls":
            return None
        handshake.memory = TlsMemory(self.broker.ledger.secured)
        if handshake.memory.begin():
            return None
        return f"buffers of TLS connections of {self.broker.limits.tls_bytes_max} bytes (tls_bytes_max)"

    def _move(self, handshake: Handshake, origin: ProxyOrigin, stage: str) -> bool:
        """Count a connection for the address that its proxy has named (acceptor.Move)."""
        self._admission.leave(handshake.charged)
        handshake.charged = origin.address
        refusal = self._admission.refusal(origin.address, self.broker.limits)
        self._admission.admit(origin.address)
        handshake.address, handshake.port, handshake.stage = origin.address, origin.port, stage
        refusal = refusal or self._strangers.refusal(origin.address)
        refusal = refusal or self._begin_memory(handshake)
        handshake.welcome = refusal is None
        if refusal is not None:
            self._note_refusal(origin.address, origin.port, refusal)
            self.refused += 1
            handshake.refuse(f"refused: this broker has {refusal}")
        return refusal is None

    def end_handshake(self, handshake: Handshake) -> None:
        self._shaking_hands.discard(handshake)

    def fail_handshake(self, handshake: Handshake, reason: str) -> None:
        self._shaking_hands.discard(handshake)
        self._handshakes.end(handshake)
        self._leave(handshake.charged, handshake)
        if handshake.welcome:
            self._strangers.note(handshake.charged)
        self.ended += 1
        self.handshakes_failed += 1
        self.stages_failed[handshake.stage] += 1
        log.info(
            "handshake_failed", listener=self.name, stage=handshake.stage, address=handshake.address,
            port=handshake.port, reason=reason,
        )
        self._look_whether_empty()

    def _leave(self, address: str, handshake: Handshake | None) -> None:
        """A connection is closed."""
        self._admission.leave(address)
        if handshake is not None and handshake.memory is not None:
            handshake.memory.end()

    def check(self, listener: str, first: bytes) -> WrongProtocol | None:
        """Whether a connection that begins like this speaks another protocol than the listener's."""
        return self._protocol_check(listener, first) if self._protocol_check is not None else None

    def _welcome(self, traffic: Traffic, socket: "Socket") -> None:
        if self._strangers.refusal(socket.address) is not None:
            return socket.abort()
        return Connection(self, traffic).accepted(socket)

    def _note_refusal(self, address: str, port: int, refusal: str) -> None:
        if self.refused % 1000 == 0:
            log.warning("connection_refused", listener=self.name, address=address, port=port, limit=refusal)

    def _look_whether_empty(self) -> None:
        if not self._connections and not self._shaking_hands:
            self._empty.set()

    # -- connections (connection.ConnectionOwner) -------------------------------------------------------------------

    def opened(self, connection: Connection) -> ProtocolConnection | None:
        """A connection was opened. Returns its protocol's side, or None if it is to be closed at once."""
        now = self.clock()
        handshake = connection.handshake
        if handshake is not None:
            if handshake not in self._shaking_hands:
                return None  # it was aborted
        elif self._poller is None and self._strangers.refusal(connection.address) is not None:
            return None  # with the poller `_welcome` has asked
        protocol = self._factory(self.broker, connection, self._shared, now)
        if self._durability is not None:
            protocol.lane.receipts = self.broker.acknowledgements.for_lanes(self._durability)
        protocol.inbox.meter = protocol.outbox.meter = connection.traffic.meter
        connection.traffic.connections += 1
        self._connections[connection] = protocol
        hide(connection, *protocol.things, protocol.outbox, self._connections)
        self._empty.clear()
        if handshake is not None:
            # It stays admitted, and its time limit keeps running.
            handshake.end()
            self._by_handshake[handshake] = connection
            self._turn_away_if_revoked(connection, protocol)  # its handshake may have begun before the list was read
            return protocol
        refusal = self._admission.refusal(connection.address, self.broker.limits)
        self._admission.admit(connection.address)
        self.accepted += 1
        if refusal is None:
            self._handshakes.begin(connection, self._awake(now))
        else:
            self._note_refusal(connection.address, connection.port, refusal)
            self.refused += 1
            self._refusing.add(connection)
            asyncio.get_running_loop().call_soon(
                protocol.say_goodbye, "too_many_connections", f"this broker has {refusal}; try later"
            )
        return protocol

    def refuses(self, connection: Connection) -> bool:
        """Whether it was one too many, and is only there to hear so."""
        return connection in self._refusing

    def wrong_protocol(self, connection: Connection, first: bytes) -> bytes | None:
        """Log it if a connection speaks another protocol. Returns the answer to it; None if it may be the right one."""
        if (wrong := self.check(self.name, first)) is None:
            return None
        who = {"address": connection.address, "port": connection.port}
        log.warning("wrong_protocol", listener=self.name, **who, text=wrong.text)
        return wrong.answer

    def closed(self, connection: Connection) -> None:
        if (protocol := self._connections.pop(connection, None)) is None:
            return
        show(connection, *protocol.things)
        if protocol.client is None:  # else the client has shown it
            show(protocol.outbox)
        connection.traffic.connections -= 1
        self.ended += 1
        self.handshakes_failed += protocol.client is None
        self.protocol_errors += protocol.failed is not None
        self.requests_refused += protocol.refused
        self._closing.pop(connection, None)
        self._expiring.discard(connection)
        self._handshakes.end(connection.handshake or connection)
        if connection.handshake is not None:
            del self._by_handshake[connection.handshake]
        if protocol.client is None and connection not in self._refusing:
            self._strangers.note(connection.address)
        self._refusing.discard(connection)
        self._leave(connection.address, connection.handshake)
        self._look_whether_empty()

    def closing(self, connection: Connection) -> bool:
        """A connection is being closed. Returns whether to wait for the peer's close: not for one over a limit."""
        self._closing[connection] = self._awake()
        return connection not in self._refusing

    def recheck(self) -> None:
        """Credentials have changed: end the connections that would no longer be accepted, some in each turn."""
        self._recheck(list(self._connections))

    def _recheck(self, left: list[Connection]) -> None:
        for connection in left[:RECHECKED_PER_TURN]:
            protocol, identity = self._connections.get(connection), connection.identity
            if protocol is None:
                continue
            if identity is None:  # it has not logged in yet
                self._turn_away_if_revoked(connection, protocol)
            elif (self._tls is not None and self._tls.revokes(connection.serial)) \
                    or not self.authenticator.stands(identity):
                self.revoked += 1
                end_invalid(connection, protocol, identity)
        if rest := left[RECHECKED_PER_TURN:]:
            asyncio.get_running_loop().call_soon(self._recheck, rest)

    def _turn_away_if_revoked(self, connection: Connection, protocol: ProtocolConnection) -> None:
        if self._tls is not None and self._tls.revokes(connection.serial):
            self.revoked += 1
            self._refusing.add(connection)
            asyncio.get_running_loop().call_soon(protocol.say_goodbye, FAILED, NOT_VALID)

    def certified(self, certificate: Mapping[str, Any] | None) -> tuple[str, int | None]:
        """The name in a client's certificate, and its serial number."""
        return (self._tls.name_of(certificate), serial_of(certificate)) if certificate and self._tls else ("", None)

    def expires(self, connection: Connection, at: float) -> None:
        """The credentials of a connection expire at this wall-clock time; earlier ones do not count any more."""
        self._expiring.set(connection, at)

    def _end_the_expired(self) -> None:
        for number, connection in enumerate(self._expiring.due(self._wall_clock(), EXPIRED_PER_TURN), 1):
            if (protocol := self._connections.get(connection)) is not None:
                self.expired += 1
                end_expired(connection, protocol)
            if number == EXPIRED_PER_TURN:
                self.broker.turns.later(self._end_the_expired)

    def _drained(self, outbox: Outbox) -> None:
        """Let the publishers that `outbox` held back continue, in a turn of their own."""
        now = self.clock()
        self.broker.standstills.note(now, TICK_SECONDS)  # a standstill does not count as time of a hold
        for client in self.broker.flow.drained(outbox, now):
            self.broker.turns.later(client.connection.unblocked)

    # -- the clock --------------------------------------------------------------------------------------------------

    def _awake(self, now: float | None = None) -> float:
        """The time, without the time in which the loop stood still."""
        if now is None:
            now = self.clock()
        self.broker.standstills.note(now, TICK_SECONDS)
        return self.broker.ledger.awake(now)

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)
        self.broker.turns.begin()
        now = self.clock()
        self._end_the_late()
        self._end_the_expired()
        if not self._round:
            self._round = list(self._connections)
        for looked_at in range(min(LOOKED_AT_PER_TICK, len(self._round))):
            protocol = self._connections.get(self._round.pop())
            if protocol is not None:
                protocol.idle(now)
                protocol.outbox.rest()
            if looked_at % LOOK == LOOK - 1 and self.broker.turns.over():
                break
        self.broker.sweep(now)

    def _end_the_late(self) -> None:
        """End handshakes and closes that take too long: as many as fit into a turn, the others in the next."""
        awake, limits = self._awake(), self.broker.limits
        while (who := self._handshakes.late(awake, limits.handshake_seconds_max)) is not None:
            if self.broker.turns.over():
                self.broker.turns.later(self._end_the_late)
                return
            self._handshakes.end(who)
            text = f"no complete handshake within {limits.handshake_seconds_max:g} s"
            connection = self._by_handshake.get(who) if isinstance(who, Handshake) else who
            if connection is None:
                assert isinstance(who, Handshake)
                who.abort(text)
                continue
            protocol = self._connections.get(connection)
            if protocol is not None and protocol.client is None:
                protocol.say_goodbye("handshake_timeout", text)
        for connection, since in list(self._closing.items()):
            if awake - since < limits.linger_seconds_max:
                break  # the oldest come first
            if self._draining and not connection.flushed:
                continue  # it has the whole grace period
            connection.abort("did not read its goodbye in time")
            if self.broker.turns.over():
                self.broker.turns.later(self._end_the_late)
                return

    def counters(self) -> dict[str, int]:
        """Monotonic counts, by the names of core/inspection.py."""
        live = self._connections.values()
        return {
            "connections_accepted": self.accepted,
            "connections_closed": self.ended,
            "connections_refused": self.refused,
            "connections_revoked": self.revoked,
            "connections_expired": self.expired,
            "handshakes_failed": self.handshakes_failed,
            "tls_handshakes_failed": self.stages_failed["tls"],
            "websocket_handshakes_failed": self.stages_failed["websocket"],
            "protocol_errors": self.protocol_errors,
            "requests_refused": self.requests_refused + sum(protocol.refused for protocol in live),
        }
