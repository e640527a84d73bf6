"""What a broker has to hold: bindings, ready messages, idle connections. Each a row with bars of its own."""

import contextlib
import itertools
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fanlight_bench.amqp.link import CHANNEL, AmqpLink, Confirms, Deliveries, publish, short, table
from fanlight_bench.amqp.loads import BODY, settled, until
from fanlight_bench.durable.couriers import method
from fanlight_bench.procfs import process_seconds, resident_bytes

EXCHANGE: Final = "bench.holding"
QUEUES: Final = 100  # that bindings and idle consumers are spread over
CONFIRMED: Final = 1_000  # messages that may be unconfirmed
PREFETCH: Final = 1_000
SMALL_RESIDENT: Final = 100 * 1024 * 1024

Measure = Callable[[int, int, int], dict[str, float]]


@dataclass(frozen=True, slots=True)
class HoldingBar:
    """Of one figure: at most so much; or so many times RabbitMQ's figure, which is better the higher it is."""

    figure: str
    most: float | None = None
    times: float | None = None


@dataclass(frozen=True, slots=True)
class HoldingLoad:
    """messages: how many things, for Fanlight, and for RabbitMQ. measure: port, process, how many -> figures.

    alone: in a new process, as its whole memory is measured. data: whether Fanlight has a folder.
    """

    name: str
    messages: tuple[int, int]
    measure: Measure
    bars: tuple[HoldingBar, ...]
    alone: bool = False
    data: bool = True


def figure_of(pid: int, read: Callable[[int | None], float | None]) -> float:
    return read(pid) or 0.0


@contextlib.contextmanager
def declared(port: int, queues: int, *, durable: bool = False) -> Iterator[AmqpLink]:
    """A connection; its queues and a topic exchange exist until the end."""
    link, bits = AmqpLink(port), bytes([2 if durable else 0])
    link.ask(method(CHANNEL, 40, 10, b"\0\0" + short(EXCHANGE) + short("topic") + bits + table({})), 40, 11)
    names = [queue_name(number) for number in range(queues)]
    for name in names:
        link.ask(method(CHANNEL, 50, 10, b"\0\0" + name + bits + table({})), 50, 11)
    try:
        yield link
    finally:
        for name in names:
            link.ask(method(CHANNEL, 50, 40, b"\0\0" + name + b"\0"), 50, 41)
        link.ask(method(CHANNEL, 40, 20, b"\0\0" + short(EXCHANGE) + b"\0"), 40, 21)
        link.close()


def queue_name(number: int) -> bytes:
    return short(f"bench.{number:03}")


def binding(number: int, *, waits: bool) -> bytes:
    """queue.bind: half of the patterns end with a wildcard, half have one inside."""
    key = short(f"site.{number:06}.*.kind" if number % 2 else f"site.{number:06}.#")
    asked = b"\0\0" + queue_name(number % QUEUES) + short(EXCHANGE) + key + bytes([not waits]) + table({})
    return method(CHANNEL, 50, 20, asked)


def make_bindings(port: int, pid: int, count: int) -> dict[str, float]:
    """One behind the other without an answer; the last one is answered."""
    asked = b"".join(binding(number, waits=number == count - 1) for number in range(count))
    with declared(port, QUEUES) as link:
        return measured(pid, count, lambda: link.ask(asked, 50, 21))


def make_bindings_in_turn(port: int, pid: int, count: int) -> dict[str, float]:
    """Each waits for the answer to the one before, as most clients do."""
    asked = [binding(number, waits=True) for number in range(count)]
    with declared(port, QUEUES) as link:

        def make() -> None:
            for each in asked:
                link.ask(each, 50, 21)

        return measured(pid, count, make)


def measured(pid: int, count: int, make: Callable[[], None]) -> dict[str, float]:
    used, taken, begun = figure_of(pid, process_seconds), figure_of(pid, resident_bytes), time.monotonic()
    make()
    return {
        "seconds": time.monotonic() - begun, "cpu_seconds": figure_of(pid, process_seconds) - used,
        "bytes_each": (figure_of(pid, resident_bytes) - taken) / count,
    }  # fmt: skip


def at_least(counting: Confirms | Deliveries, count: int) -> Callable[[], bool]:
    return lambda: counting.count >= count


def hold_ready(port: int, pid: int, count: int, *, durable: bool) -> dict[str, float]:
    """All are published, with confirms, before a consumer comes, which acknowledges by half its prefetch."""
    message = publish("", "bench.000", BODY, durable=durable, headers={})
    with declared(port, 1, durable=durable) as link:
        link.ask(method(CHANNEL, 85, 10, b"\0"), 85, 11)
        confirms, none = Confirms(link), list[Deliveries]()
        used, begun = figure_of(pid, process_seconds), time.monotonic()
        for sent in range(0, count, CONFIRMED // 2):
            step = min(CONFIRMED // 2, count - sent)
            link.send(message * step)
            until(confirms, none, at_least(confirms, sent + step - CONFIRMED // 2))
        until(confirms, none, at_least(confirms, count))
        published = time.monotonic() - begun
        settled(pid)
        ready = figure_of(pid, resident_bytes)
        reader = AmqpLink(port)
        reader.ask(method(CHANNEL, 60, 10, struct.pack(">IHB", 0, PREFETCH, 0)), 60, 11)
        # The method of a delivery has consumer tag, delivery tag and redelivered for the reserved word and the bits.
        deliveries = Deliveries(reader, len(message) + len("c000") + 1 + 9 - 3, PREFETCH // 2)
        begun = time.monotonic()
        asked = b"\0\0" + queue_name(0) + short("c000") + b"\0" + table({})
        reader.ask(method(CHANNEL, 60, 20, asked), 60, 21)
        until(confirms, [deliveries], at_least(deliveries, count), last=True)
        drained = time.monotonic() - begun
        deliveries.acknowledge()
        settled(pid)
        after = figure_of(pid, resident_bytes)
        used = figure_of(pid, process_seconds) - used
        reader.close()
        return {
            "published_per_second": count / published, "drained_per_second": count / drained,
            "us_per_message": used / count * 1e6, "resident_bytes": ready, "resident_bytes_after": after,
        }  # fmt: skip


def hold_idle(port: int, pid: int, count: int) -> dict[str, float]:
    """Connections with one channel and one consumer each, which acknowledges."""
    with declared(port, QUEUES) as link, contextlib.ExitStack() as stack:
        used, taken = figure_of(pid, process_seconds), figure_of(pid, resident_bytes)
        names = itertools.cycle([queue_name(number) for number in range(QUEUES)])
        for name in itertools.islice(names, count):
            one = AmqpLink(port)
            stack.callback(one.close)
            consume = b"\0\0" + name + short("c") + b"\0" + table({})
            one.ask(method(CHANNEL, 60, 20, consume), 60, 21)
        settled(pid)
        figures = {
            "us_to_open": (figure_of(pid, process_seconds) - used) / count * 1e6,
            "bytes_each": (figure_of(pid, resident_bytes) - taken) / count,
        }
        stack.close()
        link.ask(method(CHANNEL, 60, 10, struct.pack(">IHB", 0, 1, 0)), 60, 11)  # they have gone before queues do
        return figures


def hold_transient(port: int, pid: int, count: int) -> dict[str, float]:
    return hold_ready(port, pid, count, durable=False)


def hold_durable(port: int, pid: int, count: int) -> dict[str, float]:
    return hold_ready(port, pid, count, durable=True)


BINDINGS_BARS: Final = (HoldingBar("seconds", most=2.0), HoldingBar("bytes_each", most=400))
READY_BARS: Final = (HoldingBar("drained_per_second", times=10), HoldingBar("resident_bytes", most=SMALL_RESIDENT))
IDLE_BARS: Final = (HoldingBar("bytes_each", most=12 * 1024), HoldingBar("us_to_open", most=400))

HOLDING: Final = (
    HoldingLoad("bindings", (100_000, 10_000), make_bindings, BINDINGS_BARS),
    HoldingLoad("bindings-in-turn", (100_000, 5_000), make_bindings_in_turn, BINDINGS_BARS),
    HoldingLoad("ready", (1_000_000, 300_000), hold_transient, READY_BARS, alone=True),
    HoldingLoad("ready-no-data", (1_000_000, 0), hold_transient, READY_BARS[1:], alone=True, data=False),
    HoldingLoad("ready-durable", (1_000_000, 100_000), hold_durable, READY_BARS, alone=True),
    HoldingLoad("idle", (10_000, 1_000), hold_idle, IDLE_BARS),
)


def bars_of(runs: list[dict[str, Any]], load: HoldingLoad, brokers: Sequence[str]) -> dict[str, dict[str, float]]:
    """Of each figure with a bar: what the brokers have, the mean of their runs, and the bar. brokers: ours is first;
    the others' best is what is compared.
    """
    found: dict[str, dict[str, float]] = {}
    for bar in load.bars:
        each = found[bar.figure] = {}
        for name in brokers:
            figures = [row[bar.figure] for row in runs if (row["load"], row["broker"]) == (load.name, name)
                       and "error" not in row]  # fmt: skip
            if figures:
                each[name] = sum(figures) / len(figures)
        others = [each[name] for name in brokers[1:] if name in each]
        if bar.most is not None:
            each["most"] = bar.most
        elif others and brokers[0] in each:
            each |= {"ratio": each[brokers[0]] / max(others), "bar": bar.times or 0.0}
    return found
