"""A recording is published again: the same topics, sizes, publishers and gaps, at its own speed or another.

Open loop, at a speed above 0: a message is due when the recording says, and its latency counts from then (coordinated
omission). Closed loop, at speed 0: one after the other, as fast as the window lets it. A payload is as long as the
recorded one, and at least 21 bytes:

     0         4          12              payload_bytes
     +---------+----------+----------------+     number: of the message in the recording; integers big-endian
     | number  | time, ns | filler a..z    |     time: when it was due, or sent
     +---------+----------+----------------+

Plain Python: some ten thousand messages a second. Beyond that the result says that the generator was the limit.
"""

import dataclasses
import select
import struct
import time
from collections.abc import Sequence

from fanlight_bench.load import connect, spelling
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.histogram import Histogram
from fanlight_bench.load.kinds import Replay, recording
from fanlight_bench.load.kinds.recording import Event
from fanlight_bench.load.kinds.watch import Watch, close
from fanlight_bench.load.protocol import DELIVERY, PING, REFUSAL, Damaged
from fanlight_bench.load.requests import requests
from fanlight_bench.load.result import Result, percentiles
from fanlight_bench.load.run import Plan
from fanlight_bench.load.scenario import PAYLOAD_BYTES_MIN, Scenario
from fanlight_bench.load.speaker import Speaker
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.target import Target

HEADER = 12
READ_BYTES = 262_144
UNSENT_BYTES = 1 << 22  # of a connection: a broker that reads nothing is not written to beyond that
PIECE = 200           # messages of a turn, after which deliveries are read
IDLE_SECONDS = 0.005
TICK_SECONDS = 0.1
FILLER = bytes(97 + at % 26 for at in range(recording.BYTES_MAX))


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it, until the recording ends or the duration is over. Raises Refused and as `run` does."""
    options: Replay = scenario.choices
    events = copies(recording.load(options.file, -(-options.messages // options.scale)), options.scale)
    prefix = "+/" if options.scale > 1 else ""
    filters = [prefix + each for each in spelling.filters(scenario.filters, scenario.subscribers)]
    watch = Watch(scenario, target, plan)
    player = Player(watch, events, [prefix + each for each in scenario.filters], filters)
    try:
        watch.begin("connecting")
        player.connect()
        first = watch.begin("measuring")
        player.play(plan.duration, options.speed)
        last = watch.now()
        delivered, published, behind = player.received, player.published, player.behind
        watch.begin("draining")
        player.drain(plan.drain)
        return watch.result(
            first,
            last,
            published=published,
            delivered=delivered,
            checked=player.unique,
            connections=len(player.connections),
            subscriptions=len(filters),
            latency_us=percentiles(player.latency) if player.latency.total else {},
            complaint=player.complaint,
            metrics={"recorded": len(events), "replayed": published, "behind_seconds": behind},
        )
    finally:
        close(player.connections, player.speaker)


def copies(events: Sequence[Event], count: int) -> list[Event]:
    """So many copies of a recording at once, each below a topic level of its own and by publishers of its own."""
    if count == 1:
        return list(events)
    return [
        dataclasses.replace(event, publisher=f"{event.publisher} of {copy}", topic=f"copy{copy}/{event.topic}")
        for event in events
        for copy in range(count)
    ]


class Player:
    """Publishes a recording over the scenario's connections, and checks what comes of it."""

    def __init__(self, watch: Watch, events: Sequence[Event], templates: Sequence[str], filters: Sequence[str]) -> None:
        self.latency = Histogram()
        self.published = self.received = self.unique = self.expected = 0
        self.behind = 0.0
        self.complaint = ""
        self._watch = watch
        self._events = events
        self.speaker = self._speaker(PAYLOAD_BYTES_MIN)
        self._requests = requests(self.speaker)
        publishers = max(1, watch.scenario.publishers)
        self._publishers = [Connection(f"bench-replay-{number}") for number in range(publishers)]
        self._subscribers = [Connection(f"bench-listen-{number}") for number in range(len(filters))]
        self.connections = [*self._publishers, *self._subscribers]
        # Publishers are dealt out to the connections in the order in which they first speak.
        voices: dict[str, int] = {}
        self._voice = [voices.setdefault(event.publisher, len(voices)) % publishers for event in events]
        topics = list(dict.fromkeys(event.topic for event in events))
        audience = spelling.Audience(topics, templates, parent=self.speaker.parent)
        self._filters = filters
        self._gets = [{topics[at] for at in audience.topics(each)} for each in filters]
        self._fan_out = {topic: sum(topic in gets for gets in self._gets) for topic in topics}
        self._spelled = {topic: self._requests.spelled(topic).encode() for topic in topics}
        self._frames: dict[tuple[str, int], tuple[bytes, bytes]] = {}
        self._speakers: dict[int, Speaker] = {}
        self._seen = [bytearray(len(events)) for _ in filters]
        self._latest: list[dict[int, int]] = [{} for _ in filters]
        self._unsent = [bytearray() for _ in self._publishers]
        self._epoll = select.epoll()
        self._by_number: dict[int, tuple[int, Connection]] = {}
        self._shown = 0.0

    def connect(self) -> None:
        """Open all connections and subscribe."""
        connect.talk(self.connections, self.speaker, self._watch.address())
        for number, (connection, pattern) in enumerate(zip(self._subscribers, self._filters, strict=True)):
            connection.say([self._requests.subscribe([(number + 1, self._requests.spelled(pattern))])])
        connect.talk(self._subscribers, self._requests)
        for number, connection in enumerate([*self._subscribers, *self._publishers]):
            self._by_number[connection.socket.fileno()] = (number, connection)
            self._epoll.register(connection.socket, select.EPOLLIN)

    def play(self, seconds: float, speed: float) -> None:
        """Publish until the recording ends or the time is over; behind: how late the last message was."""
        started = time.monotonic_ns()
        end = started + int(seconds * 1e9)
        while self.published < len(self._events) and (now := time.monotonic_ns()) < end and not self._broken():
            due = self._due(now, started, speed)
            for number in range(self.published, due):
                at = started + int(self._events[number].at / speed * 1e9) if speed else now
                self._publish(number, at)
                self.behind = max(0.0, (now - at) / 1e9)
            self._flush()
            self._receive(0.0 if due > self.published or any(self._unsent) else IDLE_SECONDS)

    def drain(self, seconds: float) -> None:
        """Wait for outstanding deliveries; those that do not arrive are lost."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._broken() and (self.unique < self.expected or any(self._unsent)):
            self._flush()
            self._receive(IDLE_SECONDS)
        self._receive(IDLE_SECONDS)
        self._watch.faults["lost"] = self.expected - self.unique
        self._epoll.close()

    def _due(self, now: int, started: int, speed: float) -> int:
        """Up to which number messages are due, at most PIECE further than now."""
        if any(len(unsent) > UNSENT_BYTES for unsent in self._unsent):
            return self.published  # what is late is seen in the latency
        most = min(len(self._events), self.published + PIECE)
        if not speed:
            return most if self.expected - self.received < self._watch.scenario.window else self.published
        number, so_far = self.published, (now - started) / 1e9 * speed
        while number < most and self._events[number].at <= so_far:
            number += 1
        return number

    def _publish(self, number: int, at: int) -> None:
        event = self._events[number]
        size = max(PAYLOAD_BYTES_MIN, event.payload_bytes)
        before, behind = self._frame(event.topic, size)
        self._unsent[self._voice[number]] += b"".join(
            (before, struct.pack(">IQ", number, at), FILLER[: size - HEADER], behind)
        )
        self.published += 1
        self.expected += self._fan_out[event.topic]

    def _frame(self, topic: str, size: int) -> tuple[bytes, bytes]:
        """What stands before and behind the payload of a publish."""
        found = self._frames.get((topic, size))
        if found is None:
            if size not in self._speakers:
                self._speakers[size] = self._speaker(size)
            frame = self._speakers[size].publish(topic, 1).frame
            found = frame.octets[: frame.payload_at], frame.octets[frame.payload_at + size :]
            self._frames[topic, size] = found
        return found

    def _speaker(self, payload_bytes: int) -> Speaker:
        scenario = self._watch.scenario
        return speaker(self._watch.target, dataclasses.replace(scenario, qos=0, payload_bytes=payload_bytes))

    def _flush(self) -> None:
        for unsent, connection in zip(self._unsent, self._publishers, strict=True):
            if unsent:
                try:
                    del unsent[: connection.socket.send(unsent)]
                except BlockingIOError:
                    continue  # the next turn tries again
                except OSError as error:
                    unsent.clear()
                    self._lose(connection, error)

    def _receive(self, seconds: float) -> None:
        for at, _ in self._epoll.poll(seconds):
            number, connection = self._by_number[at]
            try:
                data = connection.socket.recv(READ_BYTES)
                if not data:
                    raise ConnectionError(f"the broker closed the connection of {connection.name}")
                self._take(number, connection, data)
            except (Damaged, OSError) as error:
                self._epoll.unregister(at)
                self._lose(connection, error)
        if (now := time.monotonic()) - self._shown > TICK_SECONDS:
            self._shown = now
            self._watch.counters.update(published=self.published, received=self.received)
            self._watch.tick()

    def _take(self, number: int, connection: Connection, data: bytes) -> None:
        connection.rest += data
        frames, used = self.speaker.dialect.frames(connection.rest)
        del connection.rest[:used]
        now = time.monotonic_ns()
        for kind, frame in frames:
            if kind == DELIVERY:
                self.received += 1
                self._check(number, frame, now)
            elif kind == PING:
                connection.socket.send(self.speaker.dialect.reply(frame))
            elif kind == REFUSAL:
                self._watch.faults["refused"] += 1
                self.complaint = self.complaint or self.speaker.explain(frame)

    def _check(self, subscriber: int, frame: bytes, now: int) -> None:
        faults = self._watch.faults
        said = self.speaker.dialect.delivery(frame)
        payload = said["payload"]
        assert isinstance(payload, bytes)
        number, at = struct.unpack_from(">IQ", payload) if len(payload) >= HEADER else (len(self._events), 0)
        if number >= self.published or not self._is_whole(self._events[number], said["topic"], payload):
            faults["damaged"] += 1
        elif subscriber >= len(self._gets) or self._events[number].topic not in self._gets[subscriber]:
            faults["misrouted"] += 1
        elif self._seen[subscriber][number]:
            faults["repeated"] += 1
        else:
            self._seen[subscriber][number] = 1
            self.unique += 1
            self.latency.record(max(0, now - at))
            voice = self._voice[number]
            if number < self._latest[subscriber].get(voice, -1):
                faults["reordered"] += 1
            else:
                self._latest[subscriber][voice] = number

    def _is_whole(self, event: Event, topic: object, payload: bytes) -> bool:
        size = max(PAYLOAD_BYTES_MIN, event.payload_bytes)
        return (
            len(payload) == size
            and topic == self._spelled[event.topic]
            and payload[HEADER:] == FILLER[: size - HEADER]
        )

    def _broken(self) -> bool:
        return bool(self._watch.faults["closed"] or self._watch.faults["refused"])

    def _lose(self, connection: Connection, error: Exception) -> None:
        self._watch.faults["closed"] += 1
        self.complaint = self.complaint or f"{connection.name}: {error}"
