"""The loads: what is declared, published and taken, and the broker's processor time for it."""

import select
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from fanlight_bench.amqp.link import CHANNEL, AmqpLink, Confirms, Deliveries, publish, short, table
from fanlight_bench.durable.couriers import method
from fanlight_bench.procfs import process_seconds, resident_bytes

BODY: Final = b"x" * 100
STALLED_SECONDS: Final = 30.0
SETTLED_LOOKS: Final = 150  # half a minute
STRIDE: Final = 7_919  # a prime: bindings in an order in which none is near the one before
CONSUME_OK_BYTES: Final = 17  # with a tag of four bytes; among deliveries it is counted as what it is


@dataclass(frozen=True, slots=True)
class AmqpLoad:
    """One row. messages: published to Fanlight, and to RabbitMQ, which takes longer for each.

    bindings: 0: each queue once, and every message reaches every queue. fewer: bindings for RabbitMQ, and its keys at
    most; it takes minutes to make so many and to let them go, and its messages do not cost it less for that. first:
    they are all stored before anybody consumes. bar: how many times less processor time than RabbitMQ's is asked for.
    rate_bar: how many times its messages a second; 0: not asked.
    """

    name: str
    messages: tuple[int, int]
    bar: float
    type: str = "direct"
    queues: int = 1
    links: int = 1
    bindings: int = 0
    fewer: int = 0
    keys: int = 1
    prefetch: int = 0  # 0: acknowledged by being sent
    confirms: int = 0  # messages that may be unconfirmed; 0: no confirms
    window: int = 2_000  # messages that may be on their way
    durable: bool = False
    first: bool = False
    rate_bar: float = 0

    def for_rabbitmq(self) -> "AmqpLoad":
        if not self.fewer:
            return self
        return replace(self, bindings=self.fewer, keys=min(self.keys, self.fewer))


LOADS: Final = (
    AmqpLoad("one-to-one", (200_000, 30_000), 40),
    AmqpLoad("acknowledged", (100_000, 20_000), 30, prefetch=100, confirms=1_000),
    AmqpLoad("fan-out", (50_000, 3_000), 100, type="topic", queues=100, links=10, window=100),
    AmqpLoad("fan-out-stored", (1_000, 200), 20, type="topic", queues=100, links=10, first=True),
    AmqpLoad("durable", (20_000, 4_000), 10, prefetch=100, confirms=100, durable=True, rate_bar=4),
    AmqpLoad("wildcards", (100_000, 10_000), 60, type="topic", bindings=100_000, keys=1_000),
    AmqpLoad("wildcards-cold", (50_000, 10_000), 20, type="topic", bindings=100_000, fewer=10_000, keys=100_000),
    AmqpLoad("headers", (50_000, 100), 5_000, type="headers", bindings=10_000, keys=1_000),
    AmqpLoad("headers-cold", (50_000, 100), 5_000, type="headers", bindings=10_000, keys=50_000),
    AmqpLoad("headers-100", (50_000, 2_000), 0, type="headers", bindings=100, keys=100),
)


def run(load: AmqpLoad, port: int, pid: int, messages: int) -> dict[str, Any]:
    """One run. Raises BrokerAnswered, TimeoutError."""
    publisher = AmqpLink(port)
    bound = _declare(load, publisher, pid)
    counting = Confirms(publisher)
    if load.confirms:
        publisher.ask(method(CHANNEL, 85, 10, b"\0"), 85, 11)
    consumers = [] if load.first else _consumers(load, port)
    made = _messages(load)
    settled(pid)  # a broker that has just started writes its store's files, 128 MiB: 0.2 s of a processor
    before, begun = process_seconds(pid), time.monotonic()
    _publish(load, messages, made, publisher, counting, consumers)
    if load.first:
        settled(pid)
        consumers = _consumers(load, port)
    _drain(load, messages, counting, consumers)
    used = (process_seconds(pid) or 0.0) - (before or 0.0)
    seconds = time.monotonic() - begun
    deliveries = messages * _copies(load)
    for each in consumers:
        each.acknowledge()
        each.link.close()
    for number in range(load.queues):
        publisher.ask(method(CHANNEL, 50, 40, b"\0\0" + short(f"bench.{number:03}") + b"\0"), 50, 41)
    publisher.ask(method(CHANNEL, 40, 20, b"\0\0" + short(_exchange(load)) + b"\0"), 40, 21)
    publisher.close()
    return {
        "messages": messages, "us_per_message": used / messages * 1e6, "us_per_delivery": used / deliveries * 1e6,
        "messages_per_second": messages / seconds, **bound,
    }  # fmt: skip


def _exchange(load: AmqpLoad) -> str:
    return f"bench.{load.name}"


def _copies(load: AmqpLoad) -> int:
    return 1 if load.bindings else load.queues


def _declare(load: AmqpLoad, link: AmqpLink, pid: int) -> dict[str, float]:
    durable = 2 if load.durable else 0
    name = _exchange(load)
    declared = b"\0\0" + short(name) + short(load.type) + bytes([durable]) + table({})
    link.ask(method(CHANNEL, 40, 10, declared), 40, 11)
    for number in range(load.queues):
        queue = short(f"bench.{number:03}")
        link.ask(method(CHANNEL, 50, 10, b"\0\0" + queue + bytes([durable]) + table({})), 50, 11)
    count = load.bindings or load.queues
    before, memory = process_seconds(pid), resident_bytes(pid)
    octets = []
    for number in range(count):
        key, arguments = _binding(load, number)
        queue = short(f"bench.{number % load.queues:03}")
        said = b"\0\0" + queue + short(name) + short(key) + bytes([number != count - 1]) + table(arguments)
        octets.append(method(CHANNEL, 50, 20, said))
    link.ask(b"".join(octets), 50, 21)
    if not load.bindings:
        return {}
    used = (process_seconds(pid) or 0.0) - (before or 0.0)
    taken = (resident_bytes(pid) or 0) - (memory or 0)
    return {"us_per_binding": used / count * 1e6, "bytes_per_binding": taken / count}


def _binding(load: AmqpLoad, number: int) -> tuple[str, dict[str, Any]]:
    if load.type == "headers":
        return "", {"x-match": "all", "kind": "k", "id": number}
    if not load.bindings:
        return ("site.*.kind.#" if load.type == "topic" else "key"), {}
    return (f"site.{number:06}.*.kind" if number % 2 else f"site.{number:06}.#"), {}


def _messages(load: AmqpLoad) -> list[bytes]:
    """One for each key, in the order in which they are published."""
    made = []
    for at in range(load.keys):
        number = at * load.bindings // load.keys
        headers: dict[str, Any] = {"id": number, "kind": "k"} if load.type == "headers" else {}
        if headers and load.keys > load.bindings:  # no two messages have the same headers
            headers = {"id": at * STRIDE % load.bindings, "kind": "k", "number": at}
        key = "" if headers else f"site.{number:06}.a.kind" if load.bindings else "key"
        if load.type == "topic" and not load.bindings:
            key = "site.7.kind.a"
        made.append(publish(_exchange(load), key, BODY, durable=load.durable, headers=headers))
    return made


def _delivery_bytes(load: AmqpLoad) -> int:
    """Of one delivery: the frames of the publish, but for other arguments of the method."""
    tag = len("c000")
    # The method has consumer tag, delivery tag and redelivered in place of the reserved word and the bits.
    return len(_messages(load)[0]) + tag + 1 + 9 - 3


def _consumers(load: AmqpLoad, port: int) -> list[Deliveries]:
    size, found = _delivery_bytes(load), []
    for at in range(load.links):
        link = AmqpLink(port)
        if load.prefetch:
            link.ask(method(CHANNEL, 60, 10, struct.pack(">IHB", 0, load.prefetch, 0)), 60, 11)
        bits = b"\0" if load.prefetch else b"\2"
        for number in range(at, load.queues, load.links):
            queue, tag = short(f"bench.{number:03}"), short(f"c{number:03}")
            asked = method(CHANNEL, 60, 20, b"\0\0" + queue + tag + bits + table({}))
            link.send(asked)
            if not load.first:
                link.wait(60, 21)
        taken = len(range(at, load.queues, load.links)) if load.first else 0
        found.append(Deliveries(link, size, load.prefetch // 2, taken * CONSUME_OK_BYTES))
    return found


def _publish(
    load: AmqpLoad,
    messages: int,
    made: list[bytes],
    publisher: AmqpLink,
    confirms: Confirms,
    consumers: list[Deliveries],
) -> None:
    sent, step = 0, max(1, min(load.window, load.confirms or load.window) // (1 if load.durable else 4))
    while sent < messages:
        step = min(step, messages - sent)
        rest = sent % load.keys
        chunk = [made[(rest + at) % load.keys] for at in range(step)]
        publisher.send(b"".join(chunk))
        sent += step
        if load.confirms:
            until(confirms, consumers, _confirmed(confirms, sent + step - load.confirms))
        if consumers:
            until(confirms, consumers, _taken(load, consumers, sent + step - load.window))


def _least(load: AmqpLoad, consumers: list[Deliveries]) -> int:
    """Messages that all have got."""
    return sum(each.count for each in consumers) // _copies(load)


def _confirmed(confirms: Confirms, messages: int) -> Callable[[], bool]:
    return lambda: confirms.count >= messages


def _taken(load: AmqpLoad, consumers: list[Deliveries], messages: int) -> Callable[[], bool]:
    return lambda: _least(load, consumers) >= messages


def _drain(load: AmqpLoad, messages: int, confirms: Confirms, consumers: list[Deliveries]) -> None:
    until(confirms, consumers, _taken(load, consumers, messages), last=True)
    if load.confirms:
        until(confirms, consumers, _confirmed(confirms, messages))


def until(confirms: Confirms, consumers: list[Deliveries], enough: Callable[[], bool], *, last: bool = False) -> None:
    """Read until it is enough. last: acknowledge what is left when nothing comes. Raises TimeoutError."""
    links: dict[Any, Confirms | Deliveries] = {confirms.link.socket: confirms}
    links.update((each.link.socket, each) for each in consumers)
    deadline = time.monotonic() + STALLED_SECONDS
    while not enough():
        ready, _, _ = select.select(list(links), [], [], 0.05)
        for each in ready:
            links[each].read()
        if ready:
            deadline = time.monotonic() + STALLED_SECONDS
        elif last:
            for consumer in consumers:
                consumer.acknowledge()
        if time.monotonic() > deadline:
            came = sum(each.count for each in consumers)
            raise TimeoutError(f"nothing came for {STALLED_SECONDS:g} s: {came} deliveries, {confirms.count} confirms")


def settled(pid: int) -> None:
    """Wait until the broker has done what it was sent, or is busy with something of its own."""
    before = -1.0
    for _ in range(SETTLED_LOOKS):
        now = process_seconds(pid) or 0.0
        if now - before <= 0.002:
            break
        before = now
        time.sleep(0.2)
