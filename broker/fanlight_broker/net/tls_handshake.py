"""TLS handshakes: of an accepted socket, and what has the connection afterwards.

    accepted socket --> LoopTls ----> the event loop's transport: HTTPS, WebSocket, and where there is no poller
                    '-> PollerTls --> a TlsSocket under the poller (tls_socket.pyx)

Both use the context in force when a handshake begins. The acceptor bounds how long it may take.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker.net.handshake import Handshake, readable
from fanlight_broker.net.tls import Tls
from fanlight_broker.net.tls_memory import LOOP, POLLER
from fanlight_broker.wire.inbox import ReceiveBuffer

if TYPE_CHECKING:
    from fanlight_broker.net.poller import Poller
    from fanlight_broker.net.tls_socket import TlsSocket

RECORDS_BYTES: Final = 96 * 1024  # of a read by TLS: five whole records, and a part of another
HANDSHAKE_BYTES: Final = 16 * 1024  # of a read in a handshake


class LoopTls:
    """protocol        makes what has a connection afterwards, given its handshake; an asyncio protocol
    linger_seconds  for the peer to answer close_notify, as it is now
    """

    def __init__(
        self, tls: Tls, protocol: Callable[[Handshake], asyncio.BaseProtocol], linger_seconds: Callable[[], float]
    ) -> None:
        self._tls = tls
        self._protocol = protocol
        self._linger_seconds = linger_seconds

    async def __call__(self, handshake: Handshake, accepted: socket.socket, seconds: float) -> bool:
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
            lambda: self._protocol(handshake), accepted, ssl=self._tls.context, ssl_handshake_timeout=seconds,
            ssl_shutdown_timeout=self._linger_seconds(),
        )
        if handshake.memory is not None:
            handshake.memory.settle(LOOP)
        return not transport.is_closing()


class PollerTls:
    """opened  called with each connection after its handshake"""

    def __init__(self, tls: Tls, poller: "Poller", opened: "Callable[[Handshake, TlsSocket], Any]") -> None:
        self._tls = tls
        self._poller = poller
        self._opened = opened
        self._records = ReceiveBuffer(RECORDS_BYTES)  # one for all its connections

    async def __call__(self, handshake: Handshake, accepted: socket.socket, seconds: float) -> bool:
        from fanlight_broker.net.tls_socket import TlsSocket  # compiled for Linux alone

        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            tls = self._tls.context.wrap_bio(incoming, outgoing, server_side=True)
            async with asyncio.timeout(seconds):
                await shake_hands(accepted, tls, incoming, outgoing)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except BaseException:
            accepted.close()
            raise
        if handshake.memory is not None:
            handshake.memory.settle(POLLER)
        connection = TlsSocket(self._poller, accepted.detach(), handshake.address, handshake.port)
        connection.secure(tls, incoming, outgoing, self._records, handshake.memory)
        self._opened(handshake, connection)
        return not connection.closing


async def shake_hands(
    accepted: socket.socket, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
) -> None:
    """The server's side of a TLS handshake. What the peer sent behind it is left in `incoming`. Raises OSError."""
    done = False
    while True:
        incoming.write(await _receive(accepted))
        try:
            tls.do_handshake()
            done = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            with suppress(OSError):
                accepted.send(outgoing.read())  # the alert, which says why; what cannot be sent at once is not sent
            raise
        if answer := outgoing.read():
            await _send(accepted, answer)
        if done:
            return
        await asyncio.sleep(0)  # a peer that sends without end has one read a turn


async def _send(accepted: socket.socket, octets: bytes) -> None:
    try:
        sent = accepted.send(octets)
    except (BlockingIOError, InterruptedError):
        sent = 0
    if sent < len(octets):
        await asyncio.get_running_loop().sock_sendall(accepted, octets[sent:])


async def _receive(accepted: socket.socket) -> bytes:
    """What has come, as soon as something has. Raises OSError, also if the peer has closed."""
    while True:
        try:
            octets = accepted.recv(HANDSHAKE_BYTES)
        except (BlockingIOError, InterruptedError):
            await readable(accepted, 1)
            continue
        if not octets:
            raise ConnectionAbortedError("closed during its TLS handshake")
        return octets
