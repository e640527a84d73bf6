"""Retained messages: store many, then ask for some by subscribing, and wait until the last of them has come.

Each look-up is a subscription whose filter matches `per_filter` of the stored topics; each message must come once,
unchanged, and no other. Timed are the first and the last message of each look-up.
"""

import contextlib
import select
import struct
import time
from collections.abc import Iterator

from fanlight_bench.load import connect, spelling
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.histogram import Histogram
from fanlight_bench.load.kinds import Retained
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.protocol import DELIVERY, PING
from fanlight_bench.load.requests import ClientRequests, requests
from fanlight_bench.load.result import Result
from fanlight_bench.load.run import Plan
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.target import Target
from fanlight_bench.load.usage import each, spent

READ_BYTES = 262_144
PIECE = 500              # messages of one write while storing
TICK_SECONDS = 0.1


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it. Raises Refused where there are no retained messages, and as `run` does."""
    options: Retained = scenario.choices
    watch = Watch(scenario, target, plan)
    speaker = watch.speaker()
    says = requests(speaker)
    store = Store(says, scenario, options)
    writer = Connection("bench-store")
    askers = [Asker(Connection(f"bench-ask-{number}"), says, store) for number in range(options.connections)]
    connections = [writer, *(asker.connection for asker in askers)]
    left_there = False
    try:
        watch.begin("connecting")
        connect.talk(connections, speaker, watch.address())
        watch.remember("connected")
        before = watch.begin("storing")
        left_there = True
        writer.say(_stored(store, says, watch))
        connect.talk([writer], says)
        stored = watch.now()
        watch.remember("stored")
        first = watch.begin("looking up")
        looked_up = _look_up(askers, store, watch, plan)
        last = watch.now()
        watch.begin("draining")
        left_there = False
        _clear(writer, store, says)
        delivered = sum(asker.received for asker in askers)
        firsts, lasts = Histogram(), Histogram()
        for asker in askers:
            firsts.merge(asker.first)
            lasts.merge(asker.last)
            for name, count in asker.faults.items():
                watch.faults[name] += count
        return watch.result(
            first,
            last,
            delivered=delivered,
            checked=sum(asker.right for asker in askers),
            connections=len(connections),
            subscriptions=looked_up,
            metrics={
                "stored_per_second": options.stored / (stored.wall - before.wall),
                "broker_us_per_stored": each(spent(before.broker, stored.broker), options.stored, 1e6),
                "bytes_per_stored": each(spent(watch.memory["connected"], watch.memory["stored"]), options.stored),
                "look_ups": looked_up,
                "first_ms_p50": firsts.quantile(0.5) / 1e6,
                "first_ms_p99": firsts.quantile(0.99) / 1e6,
                "last_ms_p50": lasts.quantile(0.5) / 1e6,
                "last_ms_p99": lasts.quantile(0.99) / 1e6,
            },
        )
    finally:
        if left_there:  # it broke off, or was interrupted; somebody's broker is not left with all that
            with contextlib.suppress(OSError, Refused):  # it has gone; another error reports that
                _clear(writer, store, says)
        for connection in connections:
            connection.close(speaker.goodbye())


class Store:
    """What is stored: the topic and payload of message `number`, and which of them a filter asks for."""

    def __init__(self, says: ClientRequests, scenario: Scenario, options: Retained) -> None:
        self.count = options.stored
        self.per_filter = options.per_filter
        self.filters = options.stored // options.per_filter
        if not self.filters:
            raise Refused(f"{options.stored} messages stored; a filter asks for {options.per_filter}")
        self._topic = spelling.Expander(scenario.topic)
        self._filter = spelling.Expander(options.filters)
        self._says = says
        self._filler = bytes(97 + at % 26 for at in range(scenario.payload_bytes - 4))

    def topic(self, number: int) -> str:
        return self._says.spelled(self._topic(number))

    def payload(self, number: int) -> bytes:
        return struct.pack(">I", number) + self._filler

    def filter(self, number: int) -> str:
        """The filter that asks for the messages of `asked_for`."""
        return self._says.spelled(self._filter(number))

    def asked_for(self, number: int) -> range:
        return range(number * self.per_filter, (number + 1) * self.per_filter)


class Asker:
    """A connection that makes one look-up after the other: subscribe, all the messages, unsubscribe."""

    def __init__(self, connection: Connection, says: ClientRequests, store: Store) -> None:
        self.connection = connection
        self.first, self.last = Histogram(), Histogram()
        self.received = self.right = 0
        self.faults = dict.fromkeys(("lost", "repeated", "misrouted", "damaged"), 0)
        self.busy = False
        self._says = says
        self._store = store
        self._number = 0
        self._missing: set[int] = set()
        self._asked_for = range(0)
        self._answers = 0
        self._started = 0

    def ask(self, number: int) -> None:
        """Begin a look-up."""
        self.busy = True
        self._number = number
        self._asked_for = self._store.asked_for(number)
        self._missing = set(self._asked_for)
        said, self._answers = self._says.subscribe([(number + 1, self._store.filter(number))])
        self._started = time.monotonic_ns()
        self.connection.socket.sendall(said)

    def receive(self) -> None:
        """Process what has arrived. When all has arrived, end the subscription; after its answer the asker is free."""
        data = self.connection.socket.recv(READ_BYTES)
        if not data:
            raise Refused("the broker closed a connection")
        rest = self.connection.rest
        rest += data
        dialect = self._says.dialect
        frames, used = dialect.frames(rest)
        del rest[:used]
        now = time.monotonic_ns()
        for kind, frame in frames:
            if kind == DELIVERY:
                self._check(frame, now)
            elif kind == PING:
                self.connection.socket.sendall(dialect.reply(frame))
            elif self._says.is_answer(kind, frame):
                self._answers -= 1
                if not self._answers and not self._asked_for:
                    self.busy = False
        if not self._missing and not self._answers and self._asked_for:
            self.last.record(now - self._started)
            self._asked_for = range(0)
            said, self._answers = self._says.unsubscribe([(self._number + 1, self._store.filter(self._number))])
            self.connection.socket.sendall(said)

    def give_up(self) -> None:
        """What has not come is lost."""
        self.faults["lost"] += len(self._missing)

    def _check(self, frame: bytes, now: int) -> None:
        said = self._says.dialect.delivery(frame)
        payload = said["payload"]
        assert isinstance(payload, bytes)
        self.received += 1
        number = int.from_bytes(payload[:4])
        known = number < self._store.count and payload == self._store.payload(number)
        if not known or said["topic"] != self._store.topic(number).encode():
            self.faults["damaged"] += 1
        elif number in self._missing:
            if len(self._missing) == len(self._asked_for):
                self.first.record(now - self._started)
            self._missing.remove(number)
            self.right += 1
        else:
            self.faults["repeated" if number in self._asked_for else "misrouted"] += 1


def _stored(store: Store, says: ClientRequests, watch: Watch) -> Iterator[tuple[bytes, int]]:
    for start in range(0, store.count, PIECE):
        numbers = range(start, min(store.count, start + PIECE))
        ping, answers = says.ping()
        yield b"".join(says.store(store.topic(number), store.payload(number)) for number in numbers) + ping, answers
        watch.counters["stored"] = numbers.stop
        watch.tick()


def _clear(writer: Connection, store: Store, says: ClientRequests) -> None:
    """Leave the broker as it was found. Raises OSError, Refused."""
    writer.say(_forgotten(store, says))
    connect.talk([writer], says)


def _forgotten(store: Store, says: ClientRequests) -> Iterator[tuple[bytes, int]]:
    """An empty retained message removes the one there was (MQTT 5, 3.3.1.3)."""
    for start in range(0, store.count, PIECE):
        numbers = range(start, min(store.count, start + PIECE))
        ping, answers = says.ping()
        yield b"".join(says.store(store.topic(number), b"") for number in numbers) + ping, answers


def _look_up(askers: list[Asker], store: Store, watch: Watch, plan: Plan) -> int:
    """Look-ups on all connections until the time is over; how many."""
    end = time.monotonic() + plan.duration
    shown = 0.0
    by_number = {asker.connection.socket.fileno(): asker for asker in askers}
    made = 0
    with select.epoll() as epoll:
        for number in by_number:
            epoll.register(number, select.EPOLLIN)
        while (now := time.monotonic()) < end or any(asker.busy for asker in askers):
            for asker in askers:
                if not asker.busy and now < end:
                    asker.ask(made * 7_919 % store.filters)  # a prime: filters in no order that a cache would like
                    made += 1
            for number, _ in epoll.poll(TICK_SECONDS):
                by_number[number].receive()
            if now > end + plan.drain:
                for asker in askers:
                    asker.give_up()
                break
            if now - shown > TICK_SECONDS:
                shown = now
                watch.counters["looked_up"] = made
                watch.tick()
    return made
