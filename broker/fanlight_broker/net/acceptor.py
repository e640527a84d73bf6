"""Acceptors: listening sockets, and what happens to each connection that they accept.

    Acceptor      binds, listens, waits a while when nothing can be accepted, and closes
    TcpAcceptor   plain TCP under the poller; accepting is compiled (tcp.pyx)
    TlsAcceptor   takes each connection through its TLS handshake (tls_handshake.py), and before that through the header
                  of a proxy (proxies.py), which plain connections may have as well

Sockets for TLS are accepted here and not by the loop's own server, for two reasons: a connection must be admitted
before the handshake, which costs more than all that a stranger may do afterwards; and each gets the context in force,
so that a new certificate needs no new listener. Without the poller, plain TCP and WebSocket use the loop's own server.
"""

import asyncio
import errno
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from fanlight_broker import event_log
from fanlight_broker.core.connection import FIRST_BYTES
from fanlight_broker.core.limits import Limits
from fanlight_broker.net.handshake import Handshake, HandshakeOwner, HandshakeTurns, answer_and_close, first_bytes
from fanlight_broker.net.proxies import Proxies
from fanlight_broker.net.proxy_header import ProxyOrigin

if TYPE_CHECKING:
    from fanlight_broker.net.poller import Poller
    from fanlight_broker.net.tcp import ListeningSocket, Socket

log: Final = event_log.get("net")

ACCEPTED_PER_TURN: Final = 16  # then other work has its turn; about 100 µs each
LONGER_THAN_ANY_SECONDS: Final = 86_400.0  # for a handshake whose time the owner bounds
REST_SECONDS: Final = 1.0  # when there are no file descriptors left

# Takes an accepted socket through its TLS handshake. Returns whether it is open afterwards. Raises OSError.
Secure = Callable[[Handshake, socket.socket, float], Awaitable[bool]]
Move = Callable[[Handshake, ProxyOrigin, str], bool]


def _stay(handshake: Handshake, origin: ProxyOrigin, stage: str) -> bool:
    """A listener without proxies moves nothing."""
    raise AssertionError("no proxies")


class Acceptor(ABC):
    """One or several listening sockets, of one host and port.

    reuse_port  let several processes listen on the same port, and the kernel share the connections out (SO_REUSEPORT)
    """

    reuse_port: ClassVar[bool] = False

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self._rest: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, backlog: int) -> tuple[str, int]:
        """Bind and accept. Returns host and port, which is a free one if 0 was asked for. Raises OSError."""
        self.sockets = await bind(host, port, backlog, reuse_port=self.reuse_port)
        self._listen()
        return name_of(self.sockets[0])

    def is_serving(self) -> bool:
        return bool(self.sockets)

    def close(self) -> None:
        """Stop accepting. Handshakes that have begun continue."""
        if self._rest is not None:
            self._rest.cancel()
        self._ignore()
        for listening in self.sockets:
            listening.close()
        self.sockets.clear()

    def cannot_accept(self, error: OSError) -> None:
        """Accept nothing for a while: most likely there are no file descriptors left."""
        log.error("cannot_accept", reason=str(error), advice="raise the limit of open files: ulimit -n")
        self._ignore()
        if self._rest is None:
            self._rest = asyncio.get_running_loop().call_later(REST_SECONDS, self._listen_again)

    def _listen_again(self) -> None:
        self._rest = None
        self._listen()

    @abstractmethod
    def _listen(self) -> None:
        """Accept from all sockets."""

    @abstractmethod
    def _ignore(self) -> None:
        """Accept from none of them."""


class TcpAcceptor(Acceptor):
    """accepted  called with the socket of each new connection"""

    def __init__(self, poller: "Poller", accepted: "Callable[[Socket], Any]") -> None:
        super().__init__()
        self._poller = poller
        self._accepted = accepted
        self._listening: list[ListeningSocket] = []

    def _listen(self) -> None:
        from fanlight_broker.net.tcp import ListeningSocket  # compiled for Linux alone

        for each in self.sockets:
            listening = ListeningSocket(self._poller, each, self._accepted, self.cannot_accept)
            listening.open()
            self._listening.append(listening)

    def _ignore(self) -> None:
        for each in self._listening:
            each.close()
        self._listening.clear()


class TlsAcceptor(Acceptor):
    """secure    does the handshake on an accepted socket, within some seconds, and hands it on
    proxies   those that each connection comes through; None: clients connect themselves
    move      counts a connection for the address that its proxy has named, at the next stage; False: there is no room
    plain     there is no TLS: what comes behind the header of a proxy is the protocol's own
    owner     counts the connections that are at their handshake
    limits    those in force: of the handshake, and of the closing one
    name      of the listener, for those who do not speak TLS
    turns     when a handshake may start
    timed     the owner gives up those whose handshake takes too long; by a clock that stands still when the loop does,
              which the loop's own timers do not
    """

    def __init__(
        self, secure: Secure, owner: HandshakeOwner, limits: Callable[[], Limits], name: str, turns: HandshakeTurns, *,
        timed: bool = False, proxies: Proxies | None = None, move: Move = _stay, plain: bool = False,
    ) -> None:
        super().__init__()
        self._secure = secure
        self._proxies, self._move = proxies, move
        self._stage = "tls" if proxies is None else "proxy"
        self._plain = plain
        self._owner = owner
        self._limits = limits
        self._name = name
        self._turns = turns
        self._timed = timed
        self._tasks: set[asyncio.Task[None]] = set()

    def _listen(self) -> None:
        for listening in self.sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _ignore(self) -> None:
        for listening in self.sockets:
            asyncio.get_running_loop().remove_reader(listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_PER_TURN):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self.cannot_accept(error)
                return
            handshake = Handshake(self._owner, self._stage, str(address[0]), int(address[1]), self._name)
            if handshake.begin():
                self._start(handshake, accepted)
            else:
                accepted.close()

    def _start(self, handshake: Handshake, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._shake_hands(handshake, accepted))
        # Not immediately: nobody would close the socket of a task that is cancelled before it has begun.
        handshake.give_up = partial(loop.call_soon, task.cancel)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shake_hands(self, handshake: Handshake, accepted: socket.socket) -> None:
        limits = self._limits()
        seconds = LONGER_THAN_ANY_SECONDS if self._timed else limits.handshake_seconds_max
        reason = f"closed during its {'PROXY header' if self._plain else 'TLS handshake'}"
        secured = False
        try:
            with suppress(asyncio.CancelledError):  # it was aborted; nothing waits for this task
                if self._proxies is not None:
                    origin = await self._proxies.origin(handshake, accepted, seconds)
                    if not self._move(handshake, origin, "proxy" if self._plain else "tls"):
                        accepted.close()
                        return
                if self._plain:
                    secured = await self._secure(handshake, accepted, seconds)
                    return
                wrong = handshake.wrong_protocol(await first_bytes(accepted, FIRST_BYTES, seconds, self._turns))
                if wrong is not None:
                    handshake.refuse(wrong.text)
                    await answer_and_close(accepted, wrong.answer, limits.linger_seconds_max)
                    return
                secured = await self._secure(handshake, accepted, seconds)
        except OSError as error:  # ssl.SSLError and TimeoutError are OSErrors
            reason = str(error) or reason
        finally:
            # With a WebSocket on top the handshake continues, and ends there.
            if handshake.stage in ("proxy", "tls"):
                if secured:
                    handshake.end()
                else:
                    handshake.fail(reason)


async def bind(host: str, port: int, backlog: int, *, reuse_port: bool = False) -> list[socket.socket]:
    """One for each address that `host` has, of the families that this machine has. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    bound: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            try:
                listening = socket.create_server(address, family=family, backlog=backlog, reuse_port=reuse_port)
            except OSError as error:
                if error.errno != errno.EAFNOSUPPORT:
                    raise
                missing = error  # all addresses were asked for, and the kernel is without IPv6, say
                continue
            bound.append(listening)
            listening.setblocking(False)
        if not bound and missing is not None:
            raise missing
    except BaseException:
        for each in bound:
            each.close()
        raise
    return bound


def name_of(listening: socket.socket) -> tuple[str, int]:
    """The host and port that it is bound to."""
    name = listening.getsockname()
    return str(name[0]), int(name[1])
