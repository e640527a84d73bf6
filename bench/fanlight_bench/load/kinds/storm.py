"""Opening connections as fast as the broker takes them, with a fixed number of handshakes at a time.

Plain Python over epoll: what a connection costs is the kernel's and the broker's work, and this here is a
fifth of it. connect.py does the same for loads that only want to be connected.
"""

import collections
import contextlib
import os
import select
import socket
import time
from types import TracebackType
from typing import Self

from fanlight_bench.load.histogram import Histogram
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.protocol import PING, Damaged
from fanlight_bench.load.requests import requests
from fanlight_bench.load.speaker import Refused

TICK_SECONDS = 0.1
READ_BYTES = 16_384
EVENTS = 256
FAULTS_MAX = 100  # after which there is no use in going on
IN = select.EPOLLIN | select.EPOLLERR | select.EPOLLHUP


class Client:
    """A connection. rest: of what was read, what is no whole frame yet."""

    __slots__ = ("rest", "socket", "started", "unsent")

    def __init__(self, connection: socket.socket, hello: bytes) -> None:
        self.socket = connection
        self.unsent = hello
        self.rest = b""
        self.started = time.monotonic_ns()


class Storm:
    """Clients that come, stay until `stay` others have come after them, and go; stay 0: for good. A context manager."""

    def __init__(self, watch: Watch, at_once: int, stay: int = 0) -> None:
        self.latency = Histogram()
        self.made = 0
        self.complaint = ""
        self.standing: collections.deque[Client] = collections.deque()
        self._watch = watch
        self._speaker = watch.speaker()
        self._requests = requests(self._speaker)
        self._at_once = at_once
        self._stay = stay
        self._address = watch.address()
        self._family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        self._under_way: dict[int, Client] = {}
        self._epoll = select.epoll()
        self._number = 0
        self._shown = 0.0

    def begin(self) -> None:
        """Count and time from here on."""
        self.made = 0
        self.latency.clear()

    def run(self, seconds: float, most: int | None = None) -> None:
        """Connect for this time or until this number is reached. Raises OSError if there are no more sockets."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._watch.faults["refused"] < FAULTS_MAX:
            wanted = self._at_once - len(self._under_way)
            if most is not None:
                wanted = min(wanted, most - self.made - len(self._under_way))
                if self.made >= most:
                    return
            for _ in range(wanted):
                self._open()
            for number, events in self._epoll.poll(TICK_SECONDS, EVENTS):
                self._turn(number, events)
            self._tick()

    def hold(self, seconds: float) -> None:
        """Leave all who are connected alone, but for answering the broker's pings."""
        clients = {client.socket.fileno(): client for client in self.standing}
        with contextlib.closing(select.epoll()) as epoll:
            for number in clients:
                epoll.register(number, select.EPOLLIN)
            self._listen(epoll, clients, time.monotonic() + seconds, set())

    def all_answer(self, seconds: float) -> int:
        """How many of those who are connected do not answer a ping within so long."""
        clients = {client.socket.fileno(): client for client in self.standing}
        missing = set(clients)
        with contextlib.closing(select.epoll()) as epoll:
            for number, client in clients.items():
                epoll.register(number, select.EPOLLIN)
                with contextlib.suppress(OSError):  # it will not answer
                    client.socket.send(self._requests.ping()[0])
            self._listen(epoll, clients, time.monotonic() + seconds, missing)
        return len(missing)

    def _listen(self, epoll: select.epoll, clients: dict[int, Client], end: float, missing: set[int]) -> None:
        waiting = bool(missing)
        while time.monotonic() < end and (missing or not waiting):
            for number, _ in epoll.poll(TICK_SECONDS, EVENTS):
                try:
                    if self._receive(clients[number]):
                        missing.discard(number)
                except (Refused, Damaged, OSError) as error:
                    missing.discard(number)
                    self.standing.remove(clients[number])
                    clients[number].socket.close()  # which takes it out of the epoll, too
                    self._fault("closed", error)
            self._tick()

    def _open(self) -> None:
        connection = socket.socket(self._family, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = Client(connection, self._speaker.hello(f"bench-{os.getpid()}-{self._number}"))
            with contextlib.suppress(BlockingIOError):
                connection.connect(self._address)
            self._epoll.register(connection, select.EPOLLOUT)
        except BaseException:
            connection.close()
            raise
        self._number += 1
        self._under_way[connection.fileno()] = client

    def _turn(self, number: int, events: int) -> None:
        client = self._under_way[number]
        try:
            if client.unsent:
                if failed := client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(failed, os.strerror(failed))
                client.unsent = client.unsent[client.socket.send(client.unsent) :]
                if not client.unsent:
                    self._epoll.modify(number, select.EPOLLIN)
            elif events & IN and self._receive(client):
                self._connected(number, client)
        except (Refused, Damaged, OSError) as error:
            del self._under_way[number]
            client.socket.close()
            self._fault("refused", error)

    def _receive(self, client: Client) -> bool:
        """Read; whether an answer has come."""
        data = client.socket.recv(READ_BYTES)
        if not data:
            raise Refused("the broker closed a connection")
        frames, used = self._speaker.dialect.frames(client.rest + data)
        client.rest = (client.rest + data)[used:]
        answered = False
        for kind, frame in frames:
            if kind == PING:
                client.socket.send(self._speaker.dialect.reply(frame))
            elif self._speaker.is_answer(kind, frame) or self._requests.is_answer(kind, frame):
                answered = True
        return answered

    def _connected(self, number: int, client: Client) -> None:
        self.latency.record(time.monotonic_ns() - client.started)
        self.made += 1
        self._epoll.unregister(number)
        del self._under_way[number]
        self.standing.append(client)
        if self._stay and len(self.standing) > self._stay:
            self._leave(self.standing.popleft())

    def _leave(self, client: Client) -> None:
        with contextlib.suppress(OSError):  # the broker has closed it already
            client.socket.send(self._speaker.goodbye())
        client.socket.close()

    def _fault(self, name: str, error: Exception) -> None:
        self._watch.faults[name] += 1
        self.complaint = self.complaint or str(error)

    def _tick(self) -> None:
        if (now := time.monotonic()) - self._shown > TICK_SECONDS:
            self._shown = now
            self._watch.counters["connected"] = self.made
            self._watch.tick()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Say goodbye on all connections, and close them."""
        for client in (*self._under_way.values(), *self.standing):
            self._leave(client)
        self._epoll.close()
