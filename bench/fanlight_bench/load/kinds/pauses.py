"""How long is one client kept waiting when another subscribes to all topics that a broker knows, and gives it up again?

The stream of the scenario passes over its topics a few times, until the broker has seen them all and remembers what it
will. Then it stops. One client asks for an answer again and again, the next question as soon as the last is answered:
its longest wait is the longest turn of the broker. Another subscribes to the filter and gives it up, many times, with
as much time before each change as after it. What counts is the median of the longest waits after each change, because
a single one may be the machine's; the worst of all, and the same without a change, are beside it.
"""

import select
import time
from collections.abc import Callable, Sequence
from statistics import median

from fanlight_bench.load import connect
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.histogram import Histogram
from fanlight_bench.load.kinds import Pauses
from fanlight_bench.load.kinds.watch import Watch, close
from fanlight_bench.load.protocol import PING, Damaged
from fanlight_bench.load.requests import requests
from fanlight_bench.load.result import Result, faults, percentiles
from fanlight_bench.load.run import Plan, workers
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.target import Target
from fanlight_bench.load.workers import Workers

READ_BYTES = 65_536
NUMBER = 1_000_000     # of the subscription
SLICE_SECONDS = 0.2    # of the stream, between two looks at how far it is
STREAM_SECONDS = 120.0 # a broker that has not seen all topics by then is measured with what it has
ANSWER_SECONDS = 20.0  # after which a client has waited in vain


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it. Raises as `run` does."""
    options: Pauses = scenario.choices
    watch = Watch(scenario, target, plan)
    with workers(scenario, target, plan.processes) as load:
        watch.own = load.pids
        watch.begin("connecting")
        connections = load.connect()
        watch.begin("subscribing")
        subscriptions = load.subscribe()
        load.start()
        watch.begin("warming up")
        topics = _seen(load, watch, options.passes * scenario.topics)
        load.drain(plan.drain)
        clients = Clients(watch, options.filter)
        try:
            first = watch.begin("measuring")
            without, after = _waits(clients, options.times, plan.duration)
            last = watch.now()
        finally:
            clients.close()
        totals = load.shared.totals()
        for name, count in faults(totals).items():
            watch.faults[name] += count
        return watch.result(
            first,
            last,
            checked=totals["unique"],
            connections=connections + len(clients.connections),
            subscriptions=subscriptions,
            processes=load.shared.workers,
            latency_us=percentiles(clients.waits, 0),
            metrics={
                "topics_seen": min(topics / options.passes, scenario.topics),
                "pause_ms": median(after) * 1e3,
                "pause_ms_max": max(after) * 1e3,
                "pause_ms_without": median(without) * 1e3,
            },
        )


def _seen(load: Workers, watch: Watch, messages: int) -> int:
    """Publish at least this many messages; returns how many they were."""
    end = time.monotonic() + STREAM_SECONDS
    published = 0
    while published < messages and time.monotonic() < end:
        load.run(SLICE_SECONDS, watch.tick)
        totals = load.shared.totals()
        if totals["refused"] or totals["closed"]:
            break  # it is a fault of the run
        published = totals["published"]
    return published


def _waits(clients: "Clients", times: int, seconds: float) -> tuple[list[float], list[float]]:
    """The longest waits in seconds: without a change, and after each change."""
    window = seconds / times / 4
    without, after = [], []
    for _ in range(times):
        for change in (clients.subscribe, clients.unsubscribe):
            without.append(clients.longest(window))
            after.append(clients.longest(window, change))
    return without, after


class Clients:
    """Who asks, and who subscribes. Raises OSError, Refused."""

    def __init__(self, watch: Watch, pattern: str) -> None:
        self.waits = Histogram()
        self._speaker = watch.speaker()
        self._requests = requests(self._speaker)
        self._entries = [(NUMBER, self._requests.spelled(pattern))]
        self._asker, self._subscriber = self.connections = [Connection(f"bench-pause-{name}") for name in ("a", "s")]
        connect.talk(self.connections, self._speaker, watch.address())

    def subscribe(self) -> int:
        """Ask for the subscription; how many answers come."""
        return self._change(self._requests.subscribe)

    def unsubscribe(self) -> int:
        """Ask for its end; how many answers come."""
        return self._change(self._requests.unsubscribe)

    def longest(self, seconds: float, change: Callable[[], int] | None = None) -> float:
        """Ask for so long; the longest wait for an answer. The change is asked for first, and answered meanwhile."""
        end = time.monotonic() + seconds
        found = 0.0
        changed = change() if change is not None else 0
        while (now := time.monotonic()) < end:
            ping, answers = self._requests.ping()
            self._asker.socket.sendall(ping)
            self._answered(self._asker, answers)
            waited = time.monotonic() - now
            self.waits.record(round(waited * 1e9))
            found = max(found, waited)
        self._answered(self._subscriber, changed)
        return found

    def _change(self, ask: Callable[[Sequence[tuple[int, str]]], tuple[bytes, int]]) -> int:
        said, answers = ask(self._entries)
        self._subscriber.socket.sendall(said)
        return answers

    def _answered(self, connection: Connection, answers: int) -> None:
        """Read until this many answers have come."""
        end = time.monotonic() + ANSWER_SECONDS
        while answers > 0:
            if not select.select([connection.socket], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{connection.name} has waited {ANSWER_SECONDS:g} s for an answer")
            data = connection.socket.recv(READ_BYTES)
            if not data:
                raise Refused(f"the broker closed the connection of {connection.name}")
            connection.rest += data
            try:
                frames, used = self._speaker.dialect.frames(connection.rest, deliveries=False)
            except Damaged as error:
                raise Refused(str(error)) from None
            del connection.rest[:used]
            for kind, frame in frames:
                if kind == PING:
                    connection.socket.sendall(self._speaker.dialect.reply(frame))
                elif self._requests.is_answer(kind, frame):
                    answers -= 1

    def close(self) -> None:
        close(self.connections, self._speaker)
