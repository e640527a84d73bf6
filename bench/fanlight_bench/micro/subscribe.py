"""A subscription without its socket: ns each to make it, to end it, and to end it with its client.

    index   the filter index alone: the floor
    MQTT    SUBSCRIBE and UNSUBSCRIBE packets of 100 filters, answers included
    native  SUBSCRIBE and UNSUBSCRIBE frames, 100 in a read, answers included

Filters with wildcards, while the routes of 1,000 other topics are cached. Beside index: the others. `bytes` is what the
process grows by, a subscription; `worst_turn_ms` the longest that the loop is held when a client with all of them goes.
"""

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from typing import Protocol

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import frame
from fanlight_bench.micro.publish import NoSocket
from fanlight_bench.micro.publish import connect as connect_native
from fanlight_bench.procfs import resident_bytes
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.identity import ANONYMOUS
from fanlight_broker.core.limits import Limits
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.protocols.mqtt.packets import Connect, Packet, Subscribe, Subscription, Unsubscribe
from fanlight_broker.protocols.mqtt.version import V3
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from matchcore import FilterIndex

SIZE = 50_000
TOGETHER = 100  # filters in a packet, frames in a read
ROUTES = 1_000


def filters(count: int, separator: str, one: str) -> list[str]:
    return [separator.join(("fleet", str(n // 1_000), one, f"s{n % 1_000}", "#")) for n in range(count)]


class Held(Protocol):
    """What holds subscriptions: each call is timed."""

    def subscribe(self) -> None: ...
    def unsubscribe(self) -> None: ...
    def end(self) -> int:
        """ns of the longest turn."""
        ...


class Index:
    def __init__(self, texts: list[bytes]) -> None:
        self.index, self.texts = FilterIndex(), texts

    def subscribe(self) -> None:
        insert = self.index.insert
        for id, text in enumerate(self.texts):
            insert(text, id, syntax="mqtt")

    def unsubscribe(self) -> None:
        remove = self.index.remove
        for id, text in enumerate(self.texts):
            remove(text, id, syntax="mqtt")

    def end(self) -> int:
        return timed(self.unsubscribe)


class Connected:
    """A connection and what is read from it."""

    connection: MqttConnection | NativeConnection

    def __init__(self, made: list[bytes], removed: list[bytes]) -> None:
        self.made, self.removed = made, removed
        self.later: list[Callable[[], object]] = []
        self.broker = Broker(Limits(subscriptions_per_client_max=10_000_000), lambda: None, self.later.append)
        for n in range(ROUTES):
            self.broker.router.route(b"plant.%d.x.temp" % n, "amqp")

    def read(self, parts: list[bytes]) -> None:
        connection, wire = self.connection, self.connection.transport
        assert isinstance(wire, NoSocket)
        for part in parts:
            connection.inbox.feed(part)
            connection.receive(0.0)
            wire.turn()
            while connection.outbox.size:
                connection.outbox.read()
            self.broker.ledger.pop_dirty()
            connection.outbox.clean()

    def subscribe(self) -> None:
        self.read(self.made)

    def unsubscribe(self) -> None:
        self.read(self.removed)

    def end(self) -> int:
        worst = timed(self.connection.lost, "over")
        while self.later:
            worst = max(worst, timed(self.later.pop()))
        if len(self.broker.router):
            raise ValueError(f"{len(self.broker.router)} subscriptions are left")
        return worst


class Mqtt(Connected):
    def __init__(self, made: list[bytes], removed: list[bytes]) -> None:
        super().__init__(made, removed)
        self.connection = MqttConnection(MqttOptions(), Counts(), self.broker, NoSocket(), ReceiveBuffer(), 0.0)
        self.connection.inbox.feed(encode(Connect("bench", V3), V3))
        self.connection.receive(0.0)
        self.connection.authenticated(ANONYMOUS, 0.0)


class Native(Connected):
    def __init__(self, made: list[bytes], removed: list[bytes]) -> None:
        super().__init__(made, removed)
        self.connection = connect_native(self.broker, ReceiveBuffer())


Makers = dict[str, Callable[[], Held]]


def makers(count: int) -> Makers:
    """Each with what it reads made beforehand."""
    slashes, dots = filters(count, "/", "+"), filters(count, ".", "*")
    octets = [text.encode() for text in slashes]

    def packets(packet: Callable[[list[str]], Packet]) -> list[bytes]:
        return [encode(packet(slashes[at : at + TOGETHER]), V3) for at in range(0, count, TOGETHER)]

    def frames(one: Callable[[int], bytes]) -> list[bytes]:
        return [b"".join(map(one, range(at, min(at + TOGETHER, count)))) for at in range(0, count, TOGETHER)]

    subscribes = packets(lambda part: Subscribe(1, tuple(map(Subscription, part))))
    unsubscribes = packets(lambda part: Unsubscribe(1, tuple(part)))
    made, removed = frames(lambda n: frame(6, n, n, dots[n])), frames(lambda n: frame(8, n, n))
    return {
        "index": lambda: Index(octets),
        "MQTT": lambda: Mqtt(subscribes, unsubscribes),
        "native": lambda: Native(made, removed),
    }


def subscribed(make: Callable[[], Held]) -> Held:
    held = make()
    held.subscribe()
    return held


def group(name: str, count: int, make: Makers, turn: Callable[[Callable[[], Held]], int]) -> Group:
    def case(name: str, make: Callable[[], Held]) -> Case:
        return Case(name, count, lambda: turn(make), ("index",) if name != "index" else ())

    return Group(name, [case(*each) for each in make.items()])


def resident() -> int:
    """Bytes, after what is free was given back to the system; 0 where there is no /proc."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
    return resident_bytes(os.getpid()) or 0


def held_by(name: str, count: int) -> dict[str, object]:
    make = makers(count)[name]
    before = resident()
    held = subscribed(make)
    grown = resident() - before
    return {f"bytes {name}": round(grown / count), f"worst_turn_ms {name}": round(held.end() / 1e6, 1)}


def memory(count: int, names: Iterable[str]) -> Group:
    """Each in a process of its own: what another one has given back would count for nothing."""
    facts: dict[str, object] = {}
    for name in names:
        with get_context("spawn").Pool(1) as alone:
            facts |= alone.apply(held_by, (name, count))
    return Group(f"{count:,} held", facts=facts)


def groups(effort: Effort) -> Iterator[Group]:
    count = effort.sized(SIZE, 1_000)
    make = makers(count)
    yield memory(count, make)
    yield group("subscribe", count, make, lambda one: timed(one().subscribe))
    yield group("unsubscribe", count, make, lambda one: timed(subscribed(one).unsubscribe))
    yield group("end", count, make, lambda one: timed(subscribed(one).end))
