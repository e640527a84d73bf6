"""A broker of MQTT 3.1.1 in the test, QoS 0, that is faultless or makes one mistake with the third delivery it makes.

It routes by equal topics. Threads, one for each connection: it is there to be wrong, not to be fast.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.bench.load.wire import Mqtt

NTH = 3  # the delivery that the mistake is made with

Mistake = Callable[["FaultyBroker", socket.socket, bytes], None]


class FaultyBroker:
    def __init__(self, mistake: Mistake | None) -> None:
        self.subscribers: list[tuple[bytes, socket.socket]] = []
        self._mistake = mistake
        self._deliveries = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(10)
        with self._lock:
            for connection in self._connections:
                connection.close()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed: the test is over
                return
            with self._lock:
                self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        data = b""
        try:
            while part := connection.recv(65_536):
                data = self._packets(connection, data + part)
        except OSError:  # the generator has hung up, or the mistake was to
            return

    def _packets(self, connection: socket.socket, data: bytes) -> bytes:
        """Act on the whole packets in data; what is left of it."""
        while len(data) > 1:
            try:
                size, at = Mqtt.length(data)
            except ValueError:  # the length is not whole
                break
            if len(data) < at + size:
                break
            packet, data = data[: at + size], data[at + size :]
            with self._lock:
                self._packet(connection, packet, packet[at:])
        return data

    def _packet(self, connection: socket.socket, packet: bytes, body: bytes) -> None:
        if packet[0] == 0x10:
            connection.sendall(b"\x20\x02\0\0")
        elif packet[0] == 0x82:
            self.subscribers.append((body[4 : 4 + int.from_bytes(body[2:4])], connection))
            connection.sendall(b"\x90\x03" + body[:2] + b"\0")
        elif packet[0] == 0x30:
            topic = body[2 : 2 + int.from_bytes(body[:2])]
            for pattern, subscriber in self.subscribers:
                if pattern == topic:
                    self._deliveries += 1
                    if self._mistake and self._deliveries == NTH:
                        self._mistake(self, subscriber, packet)
                    else:
                        subscriber.sendall(packet)


def lose(broker: FaultyBroker, subscriber: socket.socket, packet: bytes) -> None:
    """Not delivered."""


def repeat(broker: FaultyBroker, subscriber: socket.socket, packet: bytes) -> None:
    subscriber.sendall(packet + packet)


def misroute(broker: FaultyBroker, subscriber: socket.socket, packet: bytes) -> None:
    """To another subscriber."""
    (other,) = (connection for _, connection in broker.subscribers if connection is not subscriber)
    other.sendall(packet)


def damage(broker: FaultyBroker, subscriber: socket.socket, packet: bytes) -> None:
    subscriber.sendall(packet.replace(b"uvwxyz", b"uvwXyz"))


def hang_up(broker: FaultyBroker, subscriber: socket.socket, packet: bytes) -> None:
    subscriber.shutdown(socket.SHUT_RDWR)


@contextmanager
def faulty(mistake: Mistake | None) -> Iterator[str]:
    """The URL of such a broker."""
    broker = FaultyBroker(mistake)
    try:
        yield f"mqtt://127.0.0.1:{broker.port}"
    finally:
        broker.close()
