"""Regular PINGs: only a missing PONG shows that a peer is gone without closing the connection.

The PING also keeps the broker from closing the connection as idle while reading is stopped, and its PONG shows
which messages the broker has certainly read.
"""

import asyncio
from collections.abc import Callable

from .errors import ConnectionLost
from .wire import Wire

TOKEN = 0  # requests are numbered from 1


class Heartbeat:
    """One for each connection. `ping` sends the PING; `position` says how many messages were queued before
    it."""

    def __init__(self, wire: Wire, interval: float, ping: Callable[[], None], position: Callable[[], int]) -> None:
        self._wire = wire
        self._interval = interval
        self._ping = ping
        self._position = position
        self._out: int | None = None  # the position of the PING that is not answered yet
        self._received = 0  # by the wire, when it was sent
        self._timer = asyncio.get_running_loop().call_later(interval, self._beat)

    def stop(self) -> None:
        self._timer.cancel()

    def answered(self) -> int:
        """Its PONG has come: returns the position that it confirms, 0 for a PONG of no PING of ours."""
        position, self._out = self._out or 0, None
        return position

    def excuse(self) -> None:
        """Reading was stopped: silence until the next PING says nothing of the peer."""
        self._received = -1

    def _beat(self) -> None:
        if self._out is not None and self._wire.reading and self._wire.received == self._received:
            self._wire.abort(
                ConnectionLost(f"nothing came for {self._interval:g} s, not even to a PING", code="timeout")
            )
            return
        self._received = self._wire.received
        if self._out is None:
            self._out = self._position()
        self._ping()
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._beat)
