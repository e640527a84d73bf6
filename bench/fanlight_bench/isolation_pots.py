"""What the user `a` does in each pot, in a process of its own that begins and pauses when it is asked to.

    stdin   "+" begin, "-" close all connections, and pause         stdout   "." done: it has begun, or has paused
"""

import argparse
import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from types import TracebackType
from typing import Self

from fanlight_bench.load.speak_mqtt import packet, string
from fanlight_bench.permissions import PASSWORD

STRANGERS, IDLE, COMPUTING = "strangers", "idle", "computing"
AT_ONCE = 32  # packets of one write
BEGIN, PAUSE, DONE = b"+", b"-", b"."
LET_GO = struct.pack("ii", 1, 0)  # SO_LINGER: what was not read or sent is dropped


class Peers:
    """The connections of `a`, so that all of them can be closed."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._open: set[socket.socket] = set()

    def connect(self, name: str, *, clean: bool = True) -> socket.socket:
        """A connection of `a`; whether it is accepted does not matter."""
        peer = socket.create_connection(("127.0.0.1", self.port))
        self._open.add(peer)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LET_GO)
        with contextlib.suppress(ConnectionError):
            peer.sendall(connect_packet(name, clean=clean))
            peer.settimeout(10.0)
            peer.recv(4)
        return peer

    def close(self, peer: socket.socket) -> None:
        self._open.discard(peer)
        peer.close()

    def close_all(self) -> None:
        while self._open:
            self._open.pop().close()


def connect_packet(name: str, *, clean: bool) -> bytes:
    who = b"".join(map(string, (name, "a", PASSWORD)))
    return packet(0x10, string("MQTT") + bytes([4, 0xC0 | clean << 1, 0, 60]) + who)


def publish(topic: str, *, qos: int = 0, retain: bool = False) -> bytes:
    number = struct.pack(">H", 1) if qos else b""
    return packet(0x30 | qos << 1 | retain, string(topic) + number + bytes(64))


def send_all_the_time(peers: Peers, made: Callable[[int], bytes]) -> Iterator[None]:
    """made: a packet for each number. What is answered is read and dropped."""
    peer = peers.connect("a-sends")
    numbers = count()
    waiting = b""
    while True:
        waiting = waiting or b"".join(made(next(numbers)) for _ in range(AT_ONCE))
        try:
            peer.settimeout(0.01)
            with contextlib.suppress(TimeoutError):
                waiting = waiting[peer.send(waiting) :]
            peer.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                if not peer.recv(1 << 16):
                    raise ConnectionResetError
        except ConnectionError:  # the broker has closed it
            peers.close(peer)
            peer, waiting = peers.connect("a-sends"), b""
        yield


def connect_all_the_time(peers: Peers, clean: bool) -> Iterator[None]:
    for number in count():
        peers.close(peers.connect(f"a-{number}", clean=clean))
        yield


def fill_a_queue(peers: Peers) -> Iterator[None]:
    reader = peers.connect("a-away", clean=False)
    with contextlib.suppress(ConnectionError):
        reader.sendall(packet(0x82, struct.pack(">H", 1) + string("a/#") + b"\1"))
        reader.recv(5)
    peers.close(reader)
    yield from send_all_the_time(peers, lambda number: publish("a/t", qos=1))


def stay_connected(peers: Peers) -> Iterator[None]:
    """Nothing, once it has logged in: what is measured beside it is no work of the broker's."""
    peers.connect("a-idle")
    while True:
        time.sleep(0.01)
        yield


def compute(peers: Peers) -> Iterator[None]:
    """Nothing for the broker, but the processor that `b` needs to send is taken, as by others that are busy."""
    peers.connect("a-computes")
    while True:
        sum(range(10_000))
        yield


def hold_connections(peers: Peers) -> Iterator[None]:
    for number in range(4):
        peers.connect(f"a-held-{number}")
    yield from connect_all_the_time(peers, clean=True)


def open_all_the_time(peers: Peers) -> Iterator[None]:
    """Connections that are closed before a word is said, or after one that nobody waits for."""
    for number in count():
        peer = socket.create_connection(("127.0.0.1", peers.port))
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LET_GO)
        if number % 2:
            with contextlib.suppress(ConnectionError):
                peer.sendall(connect_packet(f"a-{number}", clean=True))
        peer.close()
        yield


def subscribe(number: int) -> bytes:
    return packet(0x82, struct.pack(">H", 1) + string(f"a/{number}/+") + b"\0")


def change_subscriptions(number: int) -> bytes:
    """Each is granted, and ended again: no quota is exceeded."""
    begun = struct.pack(">H", 1) + string(f"a/{number // 2 % 50}/+")
    return packet(0xA2, begun) if number % 2 else packet(0x82, begun + b"\0")


POTS: dict[str, Callable[[Peers], Iterator[None]]] = {
    "rate": lambda peers: send_all_the_time(peers, lambda number: publish("a/t")),
    "refused_rate": lambda peers: send_all_the_time(peers, lambda number: publish("a/t", qos=1)),
    "connections": hold_connections,
    STRANGERS: open_all_the_time,
    "sessions": lambda peers: connect_all_the_time(peers, clean=False),
    "resubscribing": lambda peers: send_all_the_time(peers, change_subscriptions),
    "subscriptions": lambda peers: send_all_the_time(peers, subscribe),
    "retained": lambda peers: send_all_the_time(peers, lambda number: publish(f"a/{number}", retain=True)),
    "queues": fill_a_queue,
    IDLE: stay_connected,
    COMPUTING: compute,
}


class Attacker:
    """A process of `a`, as a context manager. It pauses until it is set to work.

    nice  how much it gives way to other processes, up to 19
    """

    def __init__(self, pot: str, port: int, nice: int = 0) -> None:
        command = [sys.executable, "-m", "fanlight_bench.isolation_pots", pot, str(port), "--nice", str(nice)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._at_work = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def set(self, *, at_work: bool) -> None:
        """Begin or pause, and return when it has. Raises RuntimeError if it has ended."""
        if at_work == self._at_work:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(BEGIN if at_work else PAUSE)
        if self._process.stdout.read(1) != DONE:
            raise RuntimeError("the process of `a` has ended")
        self._at_work = at_work

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def serve(pot: str, port: int) -> None:
    """Until standard input ends."""
    peers = Peers(port)
    at_work: Iterator[None] | None = None
    while True:
        ready, _, _ = select.select([0], [], [], 0 if at_work is not None else None)
        if ready:
            asked = os.read(0, 1)
            if not asked:
                return
            at_work = None
            peers.close_all()
            if asked == BEGIN:
                at_work = POTS[pot](peers)
                next(at_work)
            os.write(1, DONE)
        elif at_work is not None:
            next(at_work)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fanlight_bench.isolation_pots")
    parser.add_argument("pot", choices=list(POTS))
    parser.add_argument("port", type=int)
    parser.add_argument("--nice", type=int, default=0)
    options = parser.parse_args()
    os.nice(options.nice)
    with contextlib.suppress(BrokenPipeError, ConnectionRefusedError):  # the broker has gone
        serve(options.pot, options.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
