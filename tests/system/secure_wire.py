"""The peer of wire.py by TLS: it, too, reads only when a test asks for something.

    class Client(TlsPeer):
        context = certificates.context()
"""

import asyncio
import ssl
from typing import ClassVar, Self

from tests.system.wire import READ_BYTES, Closed, Peer


class TlsPeer(Peer):
    context: ClassVar[ssl.SSLContext]

    @classmethod
    async def open(
        cls, port: int, *, host: str = "127.0.0.1", receive_buffer: int | None = None, source: str | None = None
    ) -> Self:
        peer = await super().open(port, host=host, receive_buffer=receive_buffer, source=source)
        try:
            await peer.shake_hands()
        except BaseException:
            peer.close()
            raise
        return peer

    async def shake_hands(self) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = self.context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._fill():
                    raise Closed("in the handshake") from None
            else:
                await self._flush()
                return

    async def _flush(self) -> None:
        if octets := self._outgoing.read():
            await asyncio.get_running_loop().sock_sendall(self.socket, octets)

    async def _fill(self) -> bytes:
        octets = await asyncio.get_running_loop().sock_recv(self.socket, READ_BYTES)
        self._incoming.write(octets)
        return octets

    async def _transmit(self, octets: bytes) -> None:
        self._tls.write(octets)
        await self._flush()

    async def _receive(self) -> bytes:
        while True:
            try:
                return self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                if not await self._fill():
                    return b""
            except ssl.SSLZeroReturnError:  # close_notify
                return b""
