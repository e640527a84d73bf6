"""Opening connections and subscribing, many at a time: sockets, and what a Speaker says on them.

Plain Python, once per connection and piece of subscriptions. The generator is handed the open sockets.
"""

import contextlib
import errno
import itertools
import os
import selectors
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from fanlight_bench.load.carrier import Carrier
from fanlight_bench.load.protocol import PING, Damaged, Dialect
from fanlight_bench.load.speaker import Refused

AT_ONCE = 100          # connections that are spoken to at a time
SILENCE_SECONDS = 60.0 # without a word on any of them the broker is stuck; some subscribe slowly
READ_BYTES = 65_536

Speech = Carrier | socket.socket  # what is spoken to
Carry = Callable[[tuple[str, int]], tuple[socket.socket, Carrier]]


class Talker(Protocol):
    """Makes requests and recognises answers: a Speaker, or its ClientRequests."""

    dialect: Dialect

    def hello(self, client: str) -> bytes: ...

    def is_answer(self, kind: int, frame: bytes) -> bool: ...


class NotConnected(OSError):
    """A connection cannot be made: the text says where to, and why not."""

    def __init__(self, number: int, host: str, port: int) -> None:
        super().__init__(number, os.strerror(number))
        self._where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def __str__(self) -> str:
        return f"cannot connect to {self._where}: {self.strerror}. Is the broker there?"


class Connection:
    """A connection of the load's, and what is being said on it. rest: bytes that were read and are no whole frame.

    carry: opens a connection that is not a plain socket; `carrier` is then what is spoken to instead of the socket.
    """

    def __init__(self, name: str, carry: Carry | None = None) -> None:
        self.name = name
        self.carrier: Carrier | None = None
        self._carry = carry
        self.rest = bytearray()
        self._socket: socket.socket | None = None
        self._peer = ("", 0)
        self._script: Iterator[tuple[bytes, int]] = iter(())
        self._unsent = b""
        self._wanted = 0
        self._said_all = True

    def open(self, host: str, port: int, speaker: Talker) -> None:
        """Begin to connect, and have the handshake said. Raises OSError."""
        self._peer = host, port
        if self._carry is None:
            self._socket = _connecting(host, port)
        else:
            self._socket, self.carrier = self._carry((host, port))
        self.say([(speaker.hello(self.name), 1)])

    def say(self, script: Iterable[tuple[bytes, int]]) -> None:
        """Let `talk` send these pieces and wait for their answers."""
        self._script = iter(script)
        self._said_all = False

    @property
    def socket(self) -> socket.socket:
        assert self._socket is not None, f"{self.name} is not open"
        return self._socket

    @property
    def _speech(self) -> Speech:
        return self.carrier or self.socket

    def check(self) -> None:
        """Raises NotConnected, if that is how connecting has ended."""
        if failed := self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise NotConnected(failed, *self._peer)

    @property
    def finished(self) -> bool:
        """All is said and answered."""
        return self._said_all and not self._unsent and self._wanted == 0

    @property
    def writing(self) -> bool:
        """There is something to say."""
        return not self._said_all or bool(self._unsent)

    def send(self) -> None:
        """Send the next piece, as far as the socket takes it. Raises OSError."""
        if not self._unsent:
            piece = next(self._script, None)
            if piece is None:
                self._said_all = True
                return
            self._unsent, answers = piece
            self._wanted += answers
        with contextlib.suppress(BlockingIOError):
            self._unsent = self._unsent[self._speech.send(self._unsent) :]

    def receive(self, speaker: Talker) -> None:
        """Read what has arrived, and count the answers in it. Raises Refused, OSError."""
        try:
            data = self._speech.recv(READ_BYTES)
        except BlockingIOError:
            return  # it was for the carrier
        if not data:
            raise Refused(f"the broker closed the connection of {self.name}")
        self.rest += data
        try:
            frames, used = speaker.dialect.frames(self.rest)
        except Damaged as error:
            raise Refused(str(error)) from None
        del self.rest[:used]
        for kind, frame in frames:
            if kind == PING:
                self._unsent += speaker.dialect.reply(frame)
            elif speaker.is_answer(kind, frame):
                self._wanted -= 1

    def close(self, last: bytes = b"") -> None:
        """Say goodbye if there is room for it, and close."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # closed already, or full: it is the end anyway
                self._speech.send(last)
            self._socket.close()


def talk(connections: Iterable[Connection], speaker: Talker, target: tuple[str, int] | None = None) -> None:
    """Have everything said on these connections, AT_ONCE at a time; first opened, if there is a target.

    Raises Refused when the broker says no or closes, OSError when it is not there, TimeoutError when it says nothing.
    """
    waiting = iter(connections)
    with selectors.DefaultSelector() as selector:
        while True:
            for connection in itertools.islice(waiting, AT_ONCE - len(selector.get_map())):
                if target is not None:
                    connection.open(*target, speaker)
                selector.register(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
            if not selector.get_map():
                return
            ready = selector.select(SILENCE_SECONDS)
            if not ready:
                raise TimeoutError(f"no answer from the broker within {SILENCE_SECONDS:g} s")
            for key, events in ready:
                _turn(selector, key, events, speaker)


def _turn(selector: selectors.BaseSelector, key: selectors.SelectorKey, events: int, speaker: Talker) -> None:
    connection: Connection = key.data
    if events & selectors.EVENT_WRITE:
        connection.check()
        connection.send()
    if events & selectors.EVENT_READ:
        connection.receive(speaker)
    if connection.finished:
        selector.unregister(connection.socket)
        return
    wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.writing else 0)
    if wanted != key.events:
        selector.modify(connection.socket, wanted, connection)


def address(host: str, port: int) -> tuple[str, int]:
    """The first address of a host. Raises OSError when it has none."""
    found: Sequence[tuple[object, object, object, object, tuple[str | int, ...]]]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)  # type: ignore[assignment]
    except socket.gaierror as error:
        raise OSError(f"there is no address of {host!r}: {error.strerror}") from error
    return str(found[0][4][0]), port


def _connecting(host: str, port: int) -> socket.socket:
    connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begun = connection.connect_ex((host, port))
        if begun not in (0, errno.EINPROGRESS):
            raise NotConnected(begun, host, port)
    except BaseException:
        connection.close()
        raise
    return connection
