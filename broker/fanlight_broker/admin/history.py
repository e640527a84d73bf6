"""The last hour of the broker's most important metrics, for the charts of the dashboard: /history.

    sources --every SECONDS--> one column of a ring of PLACES --(/history?after=N)--> what is newer than sample N

A sample is one whole number for each series: as counted since the start for counters, so that a reader that missed
some samples loses detail but no message; as it is at that moment for gauges. The table has a fixed size, 8 bytes a
place, and the oldest sample is overwritten. An answer has at most POINTS samples of each series: of an hour every
third one, of a counter exactly, of a gauge the largest of the three.
"""

import asyncio
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import OFFSET_MAX, Answer, Query, number_of

SECONDS: Final = 5.0  # between samples; one takes some 0.2 ms
PLACES: Final = 720   # an hour
POINTS: Final = 240   # of an answer: a chart has fewer pixels, and more would be over 2 ms of the loop

# Counters, beside all that begin with dropped_. What a broker does not have (AMQP turned off) is left out.
COUNTERS: Final = (
    "messages_in", "messages_out", "bytes_in", "bytes_out", "messages_unroutable", "messages_expired", "dead_letters",
    "connections_accepted", "connections_refused", "route_hits", "route_misses",
)
DROPPED: Final = "dropped_"
GAUGES: Final = (
    "connections", "sessions", "sessions_away", "subscriptions", "retained_messages", "queues", "queue_waiting",
    "queue_unacknowledged", "delayed_messages", "stored_messages", "publishers_held", "outboxes_blocking",
    "outbox_bytes", "inbox_bytes", "tls_bytes", "session_bytes", "subscription_bytes", "route_bytes", "stored_bytes",
    "retained_bytes", "delayed_bytes",
)
MILLIONTHS: Final = ("loop_lag_recent_seconds",)  # gauges in seconds; kept and answered as microseconds
SERIES_MAX: Final = 64


class History:
    """sources  where the metrics are, asked for each sample
    process  of the process: name -> whole number; `cpu_microseconds` is a counter, the others are gauges
    clock    seconds since 1970
    """

    def __init__(
        self, sources: Sequence[MetricSource], process: Callable[[], Mapping[str, int]] = dict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.count = 0  # samples taken so far; the last PLACES of them are kept
        self._sources, self._process, self._clock = tuple(sources), process, clock
        self._times = array("q", bytes(8 * PLACES))  # milliseconds since 1970
        self._counters: dict[str, array[int]] = {}
        self._gauges: dict[str, array[int]] = {}
        self._began = int(clock() * 1_000)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Take a sample now, and one every SECONDS."""
        self.sample()
        self._timer = asyncio.get_running_loop().call_later(SECONDS, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def sample(self) -> None:
        place = self.count % PLACES
        self._times[place] = int(self._clock() * 1_000)
        process = dict(self._process())
        if (used := process.pop("cpu_microseconds", None)) is not None:
            self._put(self._counters, "cpu_microseconds", place, used)
        for name, value in process.items():
            self._put(self._gauges, name, place, value)
        for source in self._sources:
            for name, count in source.counters().items():
                if name in COUNTERS or name.startswith(DROPPED):
                    self._put(self._counters, name, place, count)
            for name, level in source.gauges().items():
                if name in GAUGES:
                    self._put(self._gauges, name, place, int(level))
                elif name in MILLIONTHS:
                    self._put(self._gauges, name.replace("_seconds", "_microseconds"), place, int(level * 1e6))
        self.count += 1

    def view(self, query: Query) -> Answer:
        """Samples from number `after` on, the oldest first. `next` is what to ask for then, while `began` is the same:
        after a restart of the broker it is another one.
        """
        after = number_of(query, "after", 0, 0, OFFSET_MAX)
        oldest = max(0, self.count - PLACES)
        first = max(after, oldest) if after <= self.count else oldest
        places = [number % PLACES for number in range(first, self.count)]
        step = -(-len(places) // POINTS) or 1
        groups = [places[max(0, end - step):end] for end in range(len(places), 0, -step)][::-1]
        answer: dict[str, Any] = {
            "began": self._began, "next": self.count, "seconds": SECONDS,
            "times": [self._times[group[-1]] for group in groups],
            "counters": {name: [ring[group[-1]] for group in groups] for name, ring in self._counters.items()},
            "gauges": {
                name: [ring[group[0]] if step == 1 else max(ring[place] for place in group) for group in groups]
                for name, ring in self._gauges.items()
            },
        }
        return 200, answer

    def _put(self, table: dict[str, "array[int]"], name: str, place: int, value: int) -> None:
        ring = table.get(name)
        if ring is None:
            if len(self._counters) + len(self._gauges) >= SERIES_MAX:
                return
            ring = table[name] = array("q", bytes(8 * PLACES))
        ring[place] = value
