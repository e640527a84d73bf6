"""Listening sockets, bound before anything accepts from them."""

import asyncio
import socket


async def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """One for each address that `host` has. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    bound: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            listening = socket.create_server(address[:2], family=family, backlog=backlog)
            bound.append(listening)
            listening.setblocking(False)
    except BaseException:
        for each in bound:
            each.close()
        raise
    return bound


def name_of(listening: socket.socket) -> tuple[str, int]:
    """The host and port that it is bound to."""
    name = listening.getsockname()
    return str(name[0]), int(name[1])
