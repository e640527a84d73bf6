"""`python -m bench.micro.subscribe`: what a subscription costs without its socket, in time and in memory.

    index     the filter index alone: what the others cannot be cheaper than
    mqtt      SUBSCRIBE packets of 100 filters through an MQTT connection, SUBACK included
    native    SUBSCRIBE frames through a native connection, 100 in a read, OK included

Each in a process of its own, while the routes of 1,000 other topics are cached:

    subscribe_ns      a new subscription to a filter with wildcards
    bytes             what the process grew by, a subscription
    unsubscribe_ns    of a tenth of them
    end_ns            of the others, when their client goes
    worst_ms          the longest turn of all these

Processor time of this thread; JSON on standard output. Compare ratios, not nanoseconds.
"""

import gc
import logging
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from time import thread_time_ns

import structlog

from bench.micro import reporting
from bench.micro.publish import NoSocket, frame
from bench.micro.publish import connect as connect_native
from bench.procfs import resident_bytes
from broker.core.broker import Broker
from broker.core.limits import Limits
from broker.protocols.mqtt.codec import encode
from broker.protocols.mqtt.connection import MqttConnection
from broker.protocols.mqtt.options import Counts, Options
from broker.protocols.mqtt.packets import Connect, Packet, Subscribe, Subscription, Unsubscribe
from broker.protocols.mqtt.version import V3
from broker.protocols.native.connection import NativeConnection
from broker.wire.inbox import ReceiveBuffer
from matchcore import FilterIndex

Figures = dict[str, float | None]
Turns = Iterator[Callable[[], object]]  # to be called one after the other, each timed

COUNT = 200_000
TOGETHER = 100  # filters in a packet, frames in a read
ROUTES = 1_000


def filters(count: int, separator: str, one: str) -> list[str]:
    return [separator.join(("fleet", str(n // 1_000), one, f"s{n % 1_000}", "#")) for n in range(count)]


def figures(count: int, subscribe: Turns, unsubscribe: Turns, end: Turns) -> Figures:
    worst = 0

    def took(turns: Turns) -> int:
        nonlocal worst
        total = 0
        for turn in turns:
            start = thread_time_ns()
            turn()
            spent = thread_time_ns() - start
            total += spent
            worst = max(worst, spent)
        return total

    gc.collect()
    before = resident_bytes(os.getpid())
    made = took(subscribe)
    after = resident_bytes(os.getpid())
    removed, ended = took(unsubscribe), took(end)
    return {
        "subscribe_ns": round(made / count),
        "bytes": None if before is None or after is None else round((after - before) / count),
        "unsubscribe_ns": round(removed / (count // 10)),
        "end_ns": round(ended / (count - count // 10)),
        "worst_ms": round(worst / 1e6, 2),
    }


def index(count: int) -> Figures:
    held, texts = FilterIndex(), [text.encode() for text in filters(count, "/", "+")]

    def change(call: Callable[..., bool], begin: int, end: int) -> Turns:
        for at in range(begin, end):
            yield lambda at=at: call(texts[at], at, syntax="mqtt")  # type: ignore[misc]

    def together(call: Callable[..., bool], begin: int, end: int) -> Turns:
        for at in range(begin, end, TOGETHER):
            yield lambda at=at: [turn() for turn in change(call, at, at + TOGETHER)]  # type: ignore[misc]

    gone = count // 10
    return figures(
        count, together(held.insert, 0, count), together(held.remove, 0, gone), together(held.remove, gone, count)
    )


def connected(
    count: int, broker: Broker, connection: MqttConnection | NativeConnection, subscribe: list[bytes],
    unsubscribe: list[bytes], later: list[Callable[[], object]],
) -> Figures:
    """The figures of a connection: from what is read from it, in parts. `later` gets what the broker puts off."""
    wire = connection.wire
    assert isinstance(wire, NoSocket)
    for n in range(ROUTES):
        broker.route(b"plant.%d.x.temp" % n, "amqp")

    def reads(parts: list[bytes]) -> Turns:
        for part in parts:
            connection.inbox.feed(part)
            yield lambda: connection.receive(0.0)
            while wire.go_on is not None:
                go_on, wire.go_on = wire.go_on, None
                yield go_on
            while connection.outbox.size:
                connection.outbox.take()
            broker.ledger.take_dirty()
            connection.outbox.clean()

    def gone() -> Turns:
        yield lambda: connection.lost("over")
        while later:
            yield later.pop(0)

    found = figures(count, reads(subscribe), reads(unsubscribe), gone())
    assert len(broker.router) == 0
    assert broker.subscribes == broker.unsubscribes == count
    return found


def new_broker() -> tuple[Broker, list[Callable[[], object]]]:
    later: list[Callable[[], object]] = []
    return Broker(Limits(subscriptions_per_client_max=10_000_000), lambda: None, later.append), later


def mqtt(count: int) -> Figures:
    broker, later = new_broker()
    connection = MqttConnection(Options(), Counts(), broker, NoSocket(), ReceiveBuffer(), 0.0)
    connection.inbox.feed(encode(Connect("bench", V3), V3))
    connection.receive(0.0)
    connection.authenticated("", 0.0)
    texts = filters(count, "/", "+")

    def packets(packet: Callable[[list[str]], Packet], end: int) -> list[bytes]:
        return [encode(packet(texts[at : at + TOGETHER]), V3) for at in range(0, end, TOGETHER)]

    return connected(
        count, broker, connection,
        packets(lambda part: Subscribe(1, tuple(map(Subscription, part))), count),
        packets(lambda part: Unsubscribe(1, tuple(part)), count // 10),
        later,
    )


def native(count: int) -> Figures:
    broker, later = new_broker()
    connection = connect_native(broker, ReceiveBuffer())
    texts = filters(count, ".", "*")

    def reads(made: Callable[[int], bytes], end: int) -> list[bytes]:
        return [b"".join(map(made, range(at, at + TOGETHER))) for at in range(0, end, TOGETHER)]

    return connected(
        count, broker, connection,
        reads(lambda n: frame(6, n, n, texts[n]), count), reads(lambda n: frame(8, n, n), count // 10), later,
    )


CASES = {"index": index, "mqtt": mqtt, "native": native}


def run(name: str, count: int) -> Figures:
    # Connecting is logged; a JSON document is all that belongs on standard output.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    return CASES[name](count)


def main(arguments: list[str] | None = None) -> int:
    parser = reporting.parser("subscribe", __doc__)
    parser.add_argument("--count", type=int, default=COUNT, help=f"subscriptions (default {COUNT})")
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; by default all")
    options = parser.parse_args(arguments)
    if options.count % (10 * TOGETHER):
        parser.error(f"--count is a multiple of {10 * TOGETHER}")
    results = {}
    for name in options.cases or CASES:
        with multiprocessing.get_context("spawn").Pool(1) as alone:  # memory is measured by what the process grows by
            results[name] = alone.apply(run, (name, options.count))
    return reporting.report("subscribe", results)


if __name__ == "__main__":
    sys.exit(main())
