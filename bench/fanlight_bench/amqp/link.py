"""An AMQP connection of a load: frames are made beforehand, and what comes is counted by its size, not taken apart.

So the generator costs little, and all deliveries of a load have the same size: keys are padded, tags are eight bytes.
"""

import select
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final

from fanlight_bench.durable.couriers import AmqpCourier, method

CHANNEL: Final = 1
READ_BYTES: Final = 1 << 20
ANSWER_SECONDS: Final = 300.0  # RabbitMQ makes 100,000 bindings in 30 to 100
REFUSALS: Final = frozenset({(10, 50), (20, 40)})
CONFIRM: Final = struct.Struct(">BHIHHQBB")


def short(text: str) -> bytes:
    return bytes([len(text.encode())]) + text.encode()


def table(values: Mapping[str, Any]) -> bytes:
    """A field table of texts and integers (4.2.5.5)."""
    made = b""
    for name, value in values.items():
        made += short(name)
        if isinstance(value, int):
            made += b"I" + struct.pack(">i", value)
        else:
            made += b"S" + struct.pack(">I", len(value)) + value.encode()
    return struct.pack(">I", len(made)) + made


def frame(kind: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, CHANNEL, len(payload)) + payload + b"\xce"


def publish(exchange: str, key: str, body: bytes, *, durable: bool = False, headers: Mapping[str, Any]) -> bytes:
    """All frames of one message."""
    flags = 0x3000 if headers else 0x1000
    header = struct.pack(">HHQH", 60, 0, len(body), flags) + (table(headers) if headers else b"")
    arguments = b"\0\0" + short(exchange) + short(key) + b"\0"
    return method(CHANNEL, 60, 40, arguments) + frame(2, header + (b"\2" if durable else b"\1")) + frame(3, body)


class BrokerAnswered(Exception):
    """The broker has closed the channel, or the connection; or it does not answer."""


class AmqpLink:
    """One connection with channel 1 open. received: bytes that came since `ask`, for who counts them."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self.socket.sendall(AmqpCourier("classic").hello("bench", kept=False))
        self.wait(10, 41)
        self.ask(method(CHANNEL, 20, 10, b"\0"), 20, 11)
        self.socket.setblocking(False)

    def ask(self, octets: bytes, of_class: int, number: int) -> None:
        """Send a request, and wait for the method that answers it."""
        self.send(octets)
        self.wait(of_class, number)

    def send(self, octets: bytes) -> None:
        rest = memoryview(octets)
        while rest:
            try:
                rest = rest[self.socket.send(rest) :]
            except BlockingIOError:
                self._ready(writing=True)

    def wait(self, of_class: int, number: int) -> None:
        """Read methods up to this one. Raises BrokerAnswered."""
        while True:
            found = self._next_method()
            if found in REFUSALS:
                raise BrokerAnswered(self._buffer[:300].decode(errors="replace"))
            if found == (of_class, number):
                return

    def _next_method(self) -> tuple[int, int]:
        while len(self._buffer) < 7 or len(self._buffer) < self._size() + 8:
            self._ready(writing=False)
            octets = self.socket.recv(READ_BYTES)
            if not octets:
                raise BrokerAnswered("the connection was closed")
            self._buffer += octets
        size = self._size()
        kind, payload = self._buffer[0], self._buffer[7 : 7 + size]
        ids = struct.unpack_from(">HH", payload) if kind == 1 else (0, 0)
        if ids not in REFUSALS:
            self._buffer = self._buffer[size + 8 :]
        return int(ids[0]), int(ids[1])

    def _size(self) -> int:
        return int(struct.unpack_from(">I", self._buffer, 3)[0])

    def _ready(self, *, writing: bool) -> None:
        waiting = select.poll()  # not select, which stops at the 1,024th socket
        waiting.register(self.socket, select.POLLOUT if writing else select.POLLIN)
        if not waiting.poll(ANSWER_SECONDS * 1_000):
            raise BrokerAnswered(f"nothing for {ANSWER_SECONDS:g} s")

    def read(self) -> bytes:
        """What has come; b"" if nothing has. Raises BrokerAnswered."""
        octets, self._buffer = self._buffer, b""
        try:
            more = self.socket.recv(READ_BYTES)
        except BlockingIOError:
            return octets
        if not more:
            raise BrokerAnswered("the connection was closed")
        return octets + more

    def close(self) -> None:
        self.socket.close()


class Deliveries:
    """Of one connection: counts them by their size, and acknowledges, if at all, every `every`, all of them at once.

    others: bytes among them that are no deliveries
    """

    def __init__(self, link: AmqpLink, size: int, every: int, others: int = 0) -> None:
        self.link = link
        self.count = self._acknowledged = 0
        self._bytes = -others
        self._size = size
        self._every = every

    def read(self) -> None:
        self._bytes += len(self.link.read())
        self.count = max(0, self._bytes // self._size)
        if self._every and self.count - self._acknowledged >= self._every:
            self.acknowledge()

    def acknowledge(self) -> None:
        """All that came."""
        if self._every and self.count > self._acknowledged:
            self._acknowledged = self.count
            self.link.send(method(CHANNEL, 60, 80, struct.pack(">QB", self.count, 1)))


class Confirms:
    """Of one connection: which messages are confirmed, by the highest number and by single ones."""

    def __init__(self, link: AmqpLink) -> None:
        self.link = link
        self._upto = 0
        self._single: set[int] = set()
        self._rest = b""

    @property
    def count(self) -> int:
        return self._upto + len(self._single)

    def read(self) -> None:
        """Raises BrokerAnswered for a refusal."""
        octets = self._rest + self.link.read()
        whole = len(octets) // CONFIRM.size * CONFIRM.size
        self._rest = octets[whole:]
        for _, _, _, of_class, number, tag, multiple, _ in CONFIRM.iter_unpack(octets[:whole]):
            if (of_class, number) != (60, 80):
                raise BrokerAnswered(f"method {of_class},{number} in place of a confirm")
            if multiple:
                self._upto = max(self._upto, tag)
                self._single = {each for each in self._single if each > self._upto}
            else:
                self._single.add(tag)
            while self._upto + 1 in self._single:
                self._upto += 1
                self._single.remove(self._upto)
