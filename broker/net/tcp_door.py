"""A door by plain TCP under the poller: binds, accepts, and waits a while when nothing can be accepted.

Accepting itself is compiled (tcp.pyx).
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import structlog

from broker.net.bound import bind, name_of
from broker.net.poller import Poller
from broker.net.tcp import Door, Socket

log: Final = structlog.stdlib.get_logger("net")

REST_SECONDS: Final = 1.0  # without file descriptors there is nothing to do but wait for some


class TcpDoor:
    """One or several listening sockets, of one host and port.

    accepted  called with each new connection's socket
    """

    def __init__(self, poller: Poller, accepted: Callable[[Socket], Any]) -> None:
        self._poller = poller
        self._accepted = accepted
        self._doors: list[Door] = []
        self._rest: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, backlog: int) -> tuple[str, int]:
        """Bind and accept. Returns host and port, which is a free one if 0 was asked for. Raises OSError."""
        sockets = await bind(host, port, backlog)
        self._doors = [Door(self._poller, each, self._accepted, self._on_trouble) for each in sockets]
        self._open()
        return name_of(sockets[0])

    def is_serving(self) -> bool:
        return bool(self._doors)

    def close(self) -> None:
        """Stop accepting."""
        if self._rest is not None:
            self._rest.cancel()
        for door in self._doors:
            door.close()
        self._doors.clear()

    def _open(self) -> None:
        self._rest = None
        for door in self._doors:
            door.open()

    def _on_trouble(self, error: OSError) -> None:  # no file descriptors, most likely
        log.error("cannot_accept", reason=str(error), advice="raise the limit of open files: ulimit -n")
        if self._rest is None:
            self._rest = asyncio.get_running_loop().call_later(REST_SECONDS, self._open)
