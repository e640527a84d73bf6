"""Outboxes to sockets, at the end of a turn: ns a delivery, the kernel's part included.

    sendmsg     the same bytes, a call of Python's socket.sendmsg for each socket
    flush       the broker's, of outboxes that were filled before
    both        fan-out and flush: what may be shifted from one to the other is in neither alone

Beside sendmsg: both others. The sockets are pairs on this machine, whose other ends are emptied outside the time.

    pairs       one message to each of 50 sockets
    fan-out     32 messages to each of 100, in a row: `both` has the parsing of them, too
"""

import socket
from asyncio import Transport
from collections.abc import Iterator

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.fan_out import Fan
from fanlight_broker.net.flush import Flusher, SocketSink
from fanlight_broker.protocols.mqtt.version import V3
from fanlight_broker.wire.outbox import Outbox

SHAPES = {"pairs": (50, 1), "fan-out": (100, 32)}  # sockets, messages to each in a turn
REPEATS = 20
READ = 1 << 20


class IdleTransport(Transport):
    """The transport of a socket that takes everything: nothing ever waits in it."""

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False


class Sockets:
    """Pairs, and a message to all of them; the outboxes of those who get it, with a sink each."""

    def __init__(self, count: int, messages: int) -> None:
        pairs = [socket.socketpair() for _ in range(count)]
        self.near = [near for near, _ in pairs]
        self.far = [far for _, far in pairs]
        for one in (*self.near, *self.far):
            one.setblocking(False)
        self.fan = Fan(V3, count, messages, in_a_row=messages > 1)
        self.flusher = Flusher(self.fan.ledger, fault)
        for peer, near in zip(self.fan.peers, self.near, strict=True):
            peer.outbox.sink = SocketSink(peer.outbox, IdleTransport(), fault, near.fileno())
        self.fan.publish()
        self.flusher.flush()
        self.octets = self.drained()

    def drained(self) -> bytes:
        """What the first of them got; the others the same. RuntimeError: they did not."""
        got = [one.recv(READ) for one in self.far]
        if len(set(got)) != 1 or not got[0]:
            raise RuntimeError(f"a flush that wrote {sorted({len(octets) for octets in got})} bytes to each socket")
        return got[0]

    def sendmsg(self) -> int:
        def write() -> None:
            for one in self.near:
                one.sendmsg(octets)

        octets, spent = [self.octets], 0
        for _ in range(REPEATS):
            spent += timed(write)
            self.drained()
        return spent

    def flush(self, with_fan_out: bool = False) -> int:
        spent = 0
        for _ in range(REPEATS):
            filling = self.fan.publish()
            spent += timed(self.flusher.flush) + (filling if with_fan_out else 0)
            self.drained()
        return spent

    def close(self) -> None:
        for one in (*self.near, *self.far):
            one.close()


def fault(outbox: Outbox, error: Exception | None = None) -> None:
    raise RuntimeError(f"an outbox of {outbox.size} bytes that was not flushed") from error


def groups(effort: Effort) -> Iterator[Group]:
    for name, (count, messages) in SHAPES.items():
        sockets = Sockets(count, messages)
        operations = count * messages * REPEATS
        try:
            yield Group(
                name,
                [
                    Case("sendmsg", operations, sockets.sendmsg),
                    Case("flush", operations, sockets.flush, ("sendmsg",)),
                    Case("both", operations, lambda: sockets.flush(with_fan_out=True), ("sendmsg",)),  # noqa: B023
                ],
                {"bytes_per_write": len(sockets.octets)},
            )
        finally:
            sockets.close()
