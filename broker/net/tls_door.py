"""A door with TLS: accepts, and takes each connection through its handshake.

Sockets are accepted here and not by the loop's own server, for two reasons: a connection must have its place before
the handshake, which costs more than all that a stranger may do afterwards; and each gets the context in force, so that
a new certificate needs no new listener.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from broker.core.connection import FIRST_BYTES
from broker.core.limits import Limits
from broker.core.ports import ProtocolCheck, WrongProtocol
from broker.net.arrival import UNREAD_BYTES_MAX, Arrival, Hall
from broker.net.bound import bind
from broker.net.bound import name_of as bound_to
from broker.net.handshake import HandshakeTurns
from broker.net.tls import Tls, name_of

log: Final = structlog.stdlib.get_logger("net")

ACCEPTED_PER_TURN: Final = 16  # before the others have their turn, at some 100 µs each
LONGER_THAN_ANY_SECONDS: Final = 86_400.0  # a handshake that somebody else gives up
THROWN_AWAY_AT_ONCE: Final = 4_096  # bytes
REST_SECONDS: Final = 1.0  # without file descriptors there is nothing to do but wait for some


class TlsDoor:
    """One or several listening sockets, of one host and port.

    hall      who counts those that are at their handshake
    protocol  makes what has a connection afterwards, given its arrival; an asyncio protocol
    limits    those in force: of the handshake, and of the closing one
    name      of the listener, for those who do not speak TLS
    turns     when a handshake may start
    timed     the hall gives up those whose handshake takes too long; by a clock that stands still when the loop does,
              which the loop's own timers do not
    """

    def __init__(
        self, tls: Tls, hall: Hall, protocol: Callable[[Arrival], asyncio.BaseProtocol], limits: Callable[[], Limits],
        name: str, turns: HandshakeTurns, *, timed: bool = False,
    ) -> None:
        self._tls = tls
        self._hall = hall
        self._protocol = protocol
        self._limits = limits
        self._name = name
        self._turns = turns
        self._timed = timed
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._rest: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, backlog: int) -> tuple[str, int]:
        """Bind and accept. Returns host and port, which is a free one if 0 was asked for. Raises OSError."""
        self._sockets = await bind(host, port, backlog)
        self._accept_again()
        return bound_to(self._sockets[0])

    def is_serving(self) -> bool:
        return bool(self._sockets)

    def close(self) -> None:
        """Stop accepting; what has begun goes on."""
        if self._rest is not None:
            self._rest.cancel()
        for listening in self._sockets:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        self._sockets.clear()

    def _accept_again(self) -> None:
        self._rest = None
        for listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED_PER_TURN):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file descriptors, most likely
                log.error("cannot_accept", reason=str(error), advice="raise the limit of open files: ulimit -n")
                for each in self._sockets:
                    loop.remove_reader(each)
                if self._rest is None:
                    self._rest = loop.call_later(REST_SECONDS, self._accept_again)
                return
            arrival = Arrival(self._hall, "tls", str(address[0]), int(address[1]), self._name)
            if not arrival.enter():
                accepted.close()
                continue
            accepted.setblocking(False)
            task = loop.create_task(self._shake_hands(arrival, accepted))
            # Not at once: a task that is cancelled before it has begun would leave the socket to nobody.
            arrival.give_up = partial(loop.call_soon, task.cancel)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _shake_hands(self, arrival: Arrival, accepted: socket.socket) -> None:
        limits = self._limits()
        seconds = LONGER_THAN_ANY_SECONDS if self._timed else limits.handshake_seconds_max
        reason = "closed during its TLS handshake"
        secured = False
        try:
            with suppress(asyncio.CancelledError):  # it was given up; nobody waits for this task
                wrong = arrival.wrong_protocol(await first_bytes(accepted, seconds, self._turns))
                if wrong is not None:
                    arrival.refuse(wrong.text)
                    await answer_and_close(accepted, wrong.answer, limits.linger_seconds_max)
                    return
                transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self._protocol(arrival), accepted, ssl=self._tls.context,
                    ssl_handshake_timeout=seconds, ssl_shutdown_timeout=limits.linger_seconds_max,
                )
                secured = not transport.is_closing()
        except OSError as error:  # ssl.SSLError is one, and so is the end of its time
            reason = str(error) or reason
        finally:
            # With a WebSocket on top its way in goes on, and its end is heard of there.
            if arrival.stage == "tls":
                if secured:
                    arrival.through()
                else:
                    arrival.fail(reason)


async def first_bytes(accepted: socket.socket, seconds: float, turns: HandshakeTurns) -> bytes:
    """What a connection begins with, when it is its turn; it stays to be read. The socket is closed if that fails.

    Raises TimeoutError if nothing comes, OSError.
    """
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(accepted, readable.set)
    try:
        try:
            async with asyncio.timeout(seconds):
                await readable.wait()
        finally:
            loop.remove_reader(accepted)
        await turns.wait()
        return accepted.recv(FIRST_BYTES, socket.MSG_PEEK)
    except BaseException:
        accepted.close()
        raise


async def answer_and_close(accepted: socket.socket, answer: bytes, seconds: float) -> None:
    """Say something to a client that does not speak TLS, and close when it has, or after so many seconds.

    What cannot be sent at once is not sent: the log has it.
    """
    loop, thrown_away, unread = asyncio.get_running_loop(), bytearray(THROWN_AWAY_AT_ONCE), UNREAD_BYTES_MAX
    try:
        accepted.send(answer)
        accepted.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(seconds):
            while unread > 0 and (size := await loop.sock_recv_into(accepted, thrown_away)):
                unread -= size
    except OSError:  # its time is over, or the peer has reset the connection
        pass
    finally:
        accepted.close()


class Gate:
    """TLS in front of a server that is no Listener and counts its own connections.

    arriving_max  handshakes at once; further connections are closed and counted
    """

    def __init__(
        self, tls: Tls, name: str, turns: HandshakeTurns, *, arriving_max: int, limits: Callable[[], Limits],
        protocol_check: ProtocolCheck | None = None,
    ) -> None:
        self.failures = 0
        self.refused = 0
        self._tls = tls
        self._name = name
        self._arriving_max = arriving_max
        self._turns = turns
        self._protocol_check = protocol_check
        self._limits = limits
        self._arriving: set[Arrival] = set()
        self._door: TlsDoor | None = None

    async def start(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> tuple[str, int]:
        """Listen, and hand what is through its handshake to what `factory` makes. Raises OSError."""
        self._door = TlsDoor(self._tls, self, lambda arrival: factory(), self._limits, self._name, self._turns)
        return await self._door.start(host, port, backlog=64)

    def stop(self) -> None:
        """Stop accepting, and close those who are still at their handshake."""
        if self._door is not None:
            self._door.close()
        for arrival in list(self._arriving):
            arrival.abort("the broker stops")

    def certified(self, transport: asyncio.BaseTransport | None) -> str:
        """Whom the client's certificate is of; "" without one."""
        return name_of(transport.get_extra_info("peercert")) if transport is not None else ""

    def counters(self) -> dict[str, int]:
        return {"http_tls_handshakes_failed": self.failures, "http_tls_handshakes_refused": self.refused}

    def arrived(self, arrival: Arrival) -> bool:
        if len(self._arriving) >= self._arriving_max:
            self.refused += 1
            return False
        self._arriving.add(arrival)
        return True

    def check(self, door: str, first: bytes) -> WrongProtocol | None:
        return self._protocol_check(door, first) if self._protocol_check is not None else None

    def entered(self, arrival: Arrival) -> None:
        self._arriving.discard(arrival)

    def failed(self, arrival: Arrival, reason: str) -> None:
        self._arriving.discard(arrival)
        self.failures += 1
        log.info(
            "handshake_failed", listener=self._name, stage="tls", address=arrival.address, port=arrival.port,
            reason=reason,
        )
