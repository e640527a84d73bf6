"""Proxies before the broker: which may say who a connection is from, and what they say (proxy_header.py).

A listener that is behind a proxy believes nobody else: an address that may be made up would pass limits and permissions
by address. So a connection from another address than those of `proxy_protocol_from` is closed, and so is one without a
header.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fanlight_broker.net.handshake import Handshake, readable
from fanlight_broker.net.proxy_header import BLOCK_MAX, FIXED, ProxyOrigin, parse

if TYPE_CHECKING:
    from fanlight_broker.net.poller import Poller
    from fanlight_broker.net.tcp import Socket

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks_of(text: str) -> tuple[Network, ...]:
    """Addresses and networks, separated by commas. Raises ValueError."""
    return tuple(ipaddress.ip_network(each.strip()) for each in text.split(",") if each.strip())


class Proxies:
    """Those that a listener believes."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = tuple(networks)

    def believes(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:  # with a scope, as fe80::1%eth0; no proxy is there
            return False
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return any((mapped or found) in network for network in self._networks)

    async def origin(self, handshake: Handshake, accepted: socket.socket, seconds: float) -> ProxyOrigin:
        """Who the connection is from. Its header has been taken from the socket, and nothing behind it.

        On failure the socket is closed. Raises OSError, TimeoutError.
        """
        try:
            if not self.believes(handshake.address):
                raise OSError("it is from no proxy that is believed: see proxy_protocol_from")
            async with asyncio.timeout(seconds):
                found = await _header(accepted)
            taken = accepted.recv(found.size)
            assert len(taken) == found.size  # it was there
        except BaseException:
            accepted.close()
            raise
        return found if found.address else found._replace(address=handshake.address, port=handshake.port)


async def _header(accepted: socket.socket) -> ProxyOrigin:
    """The header, which is left where it is. Raises OSError."""
    size, before = 1, -1
    while True:
        await readable(accepted, size)
        begun = accepted.recv(FIXED + BLOCK_MAX, socket.MSG_PEEK)
        if len(begun) == before or not begun:
            raise OSError("closed before its PROXY header was whole")
        try:
            found = parse(begun)
        except ValueError as error:
            raise OSError(str(error)) from None
        if isinstance(found, ProxyOrigin):
            return found
        size, before = found, len(begun)


class PollerPlain:
    """Hands a plain connection to the poller. opened: called with its handshake and its socket."""

    def __init__(self, poller: "Poller", opened: "Callable[[Handshake, Socket], Any]") -> None:
        self._poller = poller
        self._opened = opened

    async def __call__(self, handshake: Handshake, accepted: socket.socket, seconds: float) -> bool:
        from fanlight_broker.net.tcp import Socket  # compiled for Linux alone

        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection = Socket(self._poller, accepted.detach(), handshake.address, handshake.port)
        self._opened(handshake, connection)
        return not connection.closing


class LoopPlain:
    """Hands a plain connection to the event loop. protocol: makes what has it, given its handshake."""

    def __init__(self, protocol: Callable[[Handshake], asyncio.BaseProtocol]) -> None:
        self._protocol = protocol

    async def __call__(self, handshake: Handshake, accepted: socket.socket, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_accepted_socket(lambda: self._protocol(handshake), accepted)
        return not transport.is_closing()
