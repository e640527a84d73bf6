"""Arriving: what a connection goes through before its protocol has it, and where it is counted meanwhile.

    accepted --> TLS (tls_door.py) --> WebSocket (websocket.py) --> Connection (connection.py)
                  '-------------------------'-- did not get through: the Hall is told

A connection has its place from the moment it is accepted, so that strangers who stall a handshake are bounded by the
same limits as everybody. One that is refused keeps it until its peer has closed, or its time is over: whoever closes a
socket while there is something to read in it resets the connection, and the peer may lose the answer.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from broker.core.ports import WrongProtocol

UNREAD_BYTES_MAX: Final = 1024 * 1024  # that a refused peer may still send; beyond, its connection is reset


class Hall(Protocol):
    """Where those who arrive are counted: a listener."""

    def arrived(self, arrival: "Arrival") -> bool:
        """Whether there is a place for one more."""
        ...

    def entered(self, arrival: "Arrival") -> None:
        """A protocol has it. Either this or `failed` is called, once, for each that had a place."""
        ...

    def check(self, door: str, first: bytes) -> WrongProtocol | None:
        """Does a connection that begins like this speak another protocol than the door's?"""
        ...

    def failed(self, arrival: "Arrival", reason: str) -> None:
        """It is gone before a protocol had it."""
        ...


class Arrival:
    """One connection on its way in.

    stage  what it is at: "tls" or "websocket"
    door   that it came in by, by the name of its listener
    give_up  closes it, for as long as it is at it
    """

    __slots__ = ("_expected", "_reason", "address", "door", "give_up", "hall", "port", "stage")

    def __init__(self, hall: Hall, stage: str, address: str, port: int, door: str) -> None:
        self.hall = hall
        self.stage = stage
        self.address = address
        self.port = port
        self.door = door
        self.give_up: Callable[[], object] = lambda: None
        self._expected = False  # the hall waits for it
        self._reason = ""

    def enter(self) -> bool:
        """Ask for a place. False if there is none."""
        self._expected = self.hall.arrived(self)
        return self._expected

    def wrong_protocol(self, first: bytes) -> WrongProtocol | None:
        """Does it begin with another protocol than the one expected at this stage?"""
        return self.hall.check(self.door if self.stage == "tls" else self.door.removesuffix("_tls"), first)

    def through(self) -> None:
        """A protocol has it."""
        if self._expected:
            self._expected = False
            self.hall.entered(self)

    def refuse(self, reason: str) -> None:
        """It will not get through, for this reason, whatever ends it. Whoever is at it calls `fail` at its end."""
        self._reason = self._reason or reason

    def fail(self, reason: str) -> None:
        """It did not get through; nothing if it did."""
        if self._expected:
            self._expected = False
            self.hall.failed(self, self._reason or reason)

    def abort(self, reason: str) -> None:
        """Close it at once. Whoever is at it then calls `fail`."""
        self._reason = self._reason or reason
        self.give_up()


def peer_of(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """The peer's address and port."""
    peer = transport.get_extra_info("peername")
    return (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else (str(peer), 0)
