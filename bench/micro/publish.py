"""`python -m bench.micro.publish`: what a publish costs without its sockets, by the way it takes.

    known      the route is in the cache: the compiled lane, from receive buffer to outbox
    receipt    the same, with a receipt
    plain      every publish through Python, its route in the cache: the lane's oracle
    cold       a topic nobody has used before: its route is worked out, and another forgotten

Processor time of this thread, the best of several passes; JSON on standard output. Compare ratios, not nanoseconds.
"""

import json
import logging
import struct
import sys
import time
from collections.abc import Callable, Iterator

import msgpack  # type: ignore[import-untyped]
import structlog

from broker.core.broker import Broker
from broker.core.limits import Limits, SlowPolicy
from broker.protocols.native.connection import NativeConnection
from broker.wire.inbox import ReceiveBuffer

MESSAGES = 2_000
PASSES = 7
PAYLOAD = bytes(64)


class NoSocket:
    """The transport side of a connection that stands still: frames collect in the outbox."""

    address = "127.0.0.1"
    go_on: Callable[[], None] | None = None

    def turn(self) -> None:
        """Let the protocol go on as often as it wants to."""
        while self.go_on is not None:
            go_on, self.go_on = self.go_on, None
            go_on()

    def now(self) -> float:
        return 0.0

    def authenticate(self, user: str | None, password: str | None) -> None: ...
    def close(self, reason: str = "") -> None: ...
    def abort(self, reason: str) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def next_turn(self, go_on: Callable[[], None]) -> None:
        self.go_on = go_on


def frame(*fields: object) -> bytes:
    body: bytes = msgpack.packb(fields)
    return struct.pack(">I", len(body)) + body


def connect(broker: Broker, shared: ReceiveBuffer) -> NativeConnection:
    connection = NativeConnection(broker, NoSocket(), shared, 0.0)
    connection.inbox.feed(frame(1, 1, {}))
    connection.receive(0.0)
    connection.authenticated("", 0.0)
    return connection


def measure(subscribers: int, batches: Iterator[bytes], plain: bool) -> float:
    """ns per publish, the best of PASSES batches of MESSAGES."""
    broker = Broker(Limits(slow_policy=SlowPolicy.DROP_NEWEST, routes_max=MESSAGES), lambda: None)
    shared = ReceiveBuffer()
    publisher = connect(broker, shared)
    publisher.lane.plain = plain
    wire = publisher.wire
    assert isinstance(wire, NoSocket)
    receivers = [connect(broker, shared) for _ in range(subscribers)]
    for receiver in receivers:
        receiver.inbox.feed(frame(6, None, 1, "stock.*.AAPL.#"))
        receiver.receive(0.0)
    best = float("inf")
    for _ in range(PASSES):
        publisher.inbox.feed(next(batches))
        start = time.thread_time_ns()
        publisher.receive(0.0)
        wire.turn()
        best = min(best, (time.thread_time_ns() - start) / MESSAGES)
        for connection in (publisher, *receivers):
            while connection.outbox.size:
                connection.outbox.take()
        broker.ledger.take_dirty()
        for connection in (publisher, *receivers):
            connection.outbox.clean()
    return best


def same(publish: bytes) -> Iterator[bytes]:
    while True:
        yield publish * MESSAGES


def cold() -> Iterator[bytes]:
    number = 0
    while True:
        batch = [frame(3, None, f"stock.nasdaq.AAPL.{number + i}", PAYLOAD) for i in range(MESSAGES)]
        number += MESSAGES
        yield b"".join(batch)


def main() -> None:
    # Connecting is logged; a JSON document is all that belongs on standard output.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    known = frame(3, None, "stock.nasdaq.AAPL", PAYLOAD)
    receipt = frame(3, 7, "stock.nasdaq.AAPL", PAYLOAD)
    cases: dict[str, Callable[[int], float]] = {
        "known": lambda n: measure(n, same(known), plain=False),
        "receipt": lambda n: measure(n, same(receipt), plain=False),
        "plain": lambda n: measure(n, same(known), plain=True),
        "cold": lambda n: measure(n, cold(), plain=False),
    }
    result = {}
    for subscribers in (1, 100):
        times = {name: measure_case(subscribers) for name, measure_case in cases.items()}
        result[f"{subscribers} subscribers"] = {
            name: {"ns_per_publish": round(ns, 1), "times_known": round(ns / times["known"], 2)}
            for name, ns in times.items()
        }
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
