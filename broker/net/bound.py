"""Listening sockets, bound before anything accepts from them."""

import asyncio
import errno
import socket


async def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """One for each address that `host` has, of the families that this machine has. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    bound: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            try:
                listening = socket.create_server(address, family=family, backlog=backlog)
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
