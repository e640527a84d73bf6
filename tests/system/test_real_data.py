"""All of the real data through a running broker: 619,040 stock prices and two days of bus positions.

One publisher a file, at full speed, and subscribers whose filters overlap, in both spellings. Every delivery is
compared with the oracle's answer: under the pause policy all must come, once and in order; under the drop policies
the counters must account for exactly what is missing.
"""

import asyncio
import contextlib
import json
import socket
import urllib.request
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass

import pytest
import uvloop

import fanlight
from fanlight.codec import Decoder, Encoder
from fanlight.frames import Delivery, Frame, Ok, Pong, Welcome
from tests import require
from tests.conftest import StartBroker, TestBroker
from tests.system.feeds import MARK, Feed, Syntax, market, transit

SECONDS = 80.0  # without any progress; a whole run takes as long as the machine wants
WHOLE_SECONDS = 3600.0
PROGRESS = 10_000  # messages received between two looks at the clock

Filter = tuple[str, Syntax]
SUBSCRIBERS: list[list[Filter]] = [
    [("#", "mqtt")],
    [("stock.#", "amqp")],
    [("stock.nasdaq.*", "amqp")],
    [("stock/nyse/+", "mqtt")],
    [("#.AAPL", "amqp"), ("stock.*.AAPL", "amqp"), ("stock.nasdaq.AAPL", "amqp")],
    [("stock/+/BRK.B", "mqtt"), ("stock.*.BRK.B", "amqp")],
    [("transit.austin.*.*", "amqp")],
    [("transit/austin/801/#", "mqtt"), ("*.austin.801.#", "amqp")],
    [("transit.#.803.*", "amqp"), ("+/+/803/+", "mqtt")],
    [("stock/nyse/BRK.B", "mqtt"), ("transit/+/7/+", "mqtt"), ("nothing.#", "amqp")],
]


@pytest.fixture(scope="module")
def feeds() -> list[Feed]:
    prices, buses = require.data("market"), require.data("transit")
    days = sorted(buses.glob("austin_vehicles_*.csv.gz"))
    return [market(prices, 0), transit(days[0], 1, "amqp"), transit(days[1], 2, "mqtt")]


class Expected:
    """What one subscription must get: of each feed, which numbers, in order."""

    def __init__(self, feeds: list[Feed], pattern: str, syntax: Syntax) -> None:
        self.feeds = feeds
        self.pattern = pattern
        self.wanted = [feed.wanted(pattern, syntax) for feed in feeds]
        self.total = sum(
            count for feed, wanted in self.pairs() for count, want in zip(feed.counts, wanted, strict=True) if want
        )
        self._next = [feed.numbers(wanted) for feed, wanted in self.pairs()]
        self._last = [-1 for _ in feeds]

    def pairs(self) -> Iterator[tuple[Feed, list[bool]]]:
        return zip(self.feeds, self.wanted, strict=True)

    def take_next(self, topic: object, payload: bytes) -> None:
        """The delivery must be the next one of its feed: none lost, none twice, none overtaken."""
        feed, number = self._check(topic, payload)
        due = next(self._next[feed.number], None)
        assert number == due, f"{self.pattern}: number {number} of feed {feed.number} came; {due} was due"

    def take_later(self, topic: object, payload: bytes) -> None:
        """The delivery must be one of those expected, behind all that came before: some may be missing."""
        feed, number = self._check(topic, payload)
        assert self.wanted[feed.number][feed.topic_of[number]], f"{self.pattern}: {topic!r} does not match"
        assert number > self._last[feed.number], f"{self.pattern}: {number} came after {self._last[feed.number]}"
        self._last[feed.number] = number

    def ends(self) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
        """(feed, number) of the first and of the last message expected of each feed."""
        numbers = [(feed.number, list(feed.numbers(wanted))) for feed, wanted in self.pairs()]
        return {(feed, n[0]) for feed, n in numbers if n}, {(feed, n[-1]) for feed, n in numbers if n}

    def _check(self, topic: object, payload: bytes) -> tuple[Feed, int]:
        number_of_feed, number = MARK.unpack_from(payload)
        feed = self.feeds[number_of_feed]
        assert payload == feed.payloads[number], f"{self.pattern}: the payload was changed"
        assert topic == feed.topics[feed.topic_of[number]][0], f"{self.pattern}: the topic was changed"
        return feed, number


def stats(broker: TestBroker) -> dict[str, int]:
    with urllib.request.urlopen(f"{broker.http_url}/stats", timeout=60) as answer:
        found: dict[str, int] = json.load(answer)
        return found


# Nothing lost, nothing twice, order kept.


async def replay(broker: TestBroker, feeds: list[Feed]) -> int:
    """All feeds to all subscribers, at full speed; the number of deliveries, each of them checked."""
    url = broker.url
    everything: list[tuple[fanlight.Subscription, Expected]] = []
    async with contextlib.AsyncExitStack() as stack, asyncio.timeout(SECONDS) as stalled:
        clients = []
        for filters in SUBSCRIBERS:
            connecting = fanlight.connect(url, slow_policy="pause", reconnect=False)
            client = await stack.enter_async_context(connecting)
            clients.append(client)
            for pattern, syntax in filters:
                subscription = await client.subscribe(pattern, syntax=syntax, pending_messages=1_000)
                everything.append((subscription, Expected(feeds, pattern, syntax)))
        publishers = [await stack.enter_async_context(fanlight.connect(url, reconnect=False)) for _ in feeds]
        async with asyncio.TaskGroup() as tasks:
            # The one that gets everything takes nothing until the broker calls it slow: publishers are paused.
            tasks.create_task(receive_all(*everything[0], stalled, after=asyncio.to_thread(wait_until_slow, broker)))
            for subscription, expected in everything[1:]:
                tasks.create_task(receive_all(subscription, expected, stalled))
            for publisher, feed in zip(publishers, feeds, strict=True):
                tasks.create_task(publish_all(publisher, feed))
        # What comes twice, or too much, stands before the answer to this.
        for client in clients:
            await client.flush()
        for subscription, expected in everything:
            assert subscription.stats.delivered == expected.total, expected.pattern
    return sum(expected.total for _, expected in everything)


def wait_until_slow(broker: TestBroker) -> None:
    broker.wait_for_line('"slow_consumer"', SECONDS)


async def receive_all(
    subscription: fanlight.Subscription,
    expected: Expected,
    stalled: asyncio.Timeout,
    after: Awaitable[None] | None = None,
) -> None:
    if after is not None:
        await after
    left = expected.total
    if left:
        async for message in subscription:
            expected.take_next(message.topic, message.payload)
            left -= 1
            if left % PROGRESS == 0:
                stalled.reschedule(asyncio.get_running_loop().time() + SECONDS)
            if not left:
                break


async def publish_all(publisher: fanlight.Client, feed: Feed) -> None:
    for topic, syntax, payload in feed.messages():
        await publisher.publish(topic, payload, syntax=syntax)
    await publisher.flush(WHOLE_SECONDS)


def test_every_subscriber_gets_exactly_what_the_oracle_says(start_broker: StartBroker, feeds: list[Feed]) -> None:
    broker = start_broker(
        slow_policy="pause", pause_seconds_max=3600, frame_bytes_max="64KiB", outbox_bytes_max="1MiB"
    )
    deliveries = uvloop.run(replay(broker, feeds))
    counted = stats(broker)
    assert deliveries > 1_900_000
    assert counted["messages_in"] == sum(len(feed) for feed in feeds)
    assert counted["messages_out"] == deliveries
    assert counted["publishers_paused"] > 0
    assert {name: count for name, count in counted.items() if name.startswith("dropped") and count} == {}


# What is missing is counted.


@dataclass(frozen=True)
class Slow:
    """A subscriber that reads a little after each chunk that is published, and the rest at the end."""

    policy: str
    filter: Filter


SLOW = [
    Slow("drop_newest", ("#", "mqtt")),
    Slow("drop_newest", ("stock/nyse/+", "mqtt")),
    Slow("drop_oldest", ("stock.#", "amqp")),
    Slow("drop_oldest", ("transit.#", "amqp")),
]
CHUNK = 20_000           # messages of each feed, after which the slow ones may read
READ_BYTES = 100_000     # that they read then
RECEIVE_BUFFER = 65_536  # of their sockets, so that the kernel does not hide how slow they are


class Connection:
    """The SDK's codec over a plain socket: it reads when it is told to, and never else."""

    def __init__(self, broker: TestBroker, **options: object) -> None:
        self.encoder = Encoder()
        self._decoder = Decoder()
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self._socket.settimeout(60)
        self._socket.connect(("127.0.0.1", broker.port))
        self.send(self.encoder.hello(options))
        self.read_until(Welcome)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read_until(self, kind: type[Frame], received: list[Delivery] | None = None) -> Frame:
        """The next frame of this kind, the deliveries before it into `received`."""
        while True:
            for frame in self._read(65_536):
                if isinstance(frame, Delivery):
                    assert received is not None
                    received.append(frame)
                elif isinstance(frame, kind):
                    return frame
                else:
                    raise AssertionError(f"the broker sent {frame}")

    def read_bytes(self, size: int) -> list[Delivery]:
        """What is there, up to so many bytes, without waiting for more."""
        received: list[Delivery] = []
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(size // 1_000):
                for frame in self._read(1_000):
                    assert isinstance(frame, Delivery), frame
                    received.append(frame)
        self._socket.settimeout(60)
        return received

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> list[Frame]:
        data = self._socket.recv(size)
        assert data, "the broker closed the connection"
        return self._decoder.feed(data)


class SlowSubscriber:
    """One slow connection and what it got."""

    def __init__(self, broker: TestBroker, slow: Slow, expected: Expected) -> None:
        self.slow = slow
        self.expected = expected
        self.received: list[Delivery] = []
        self._connection = Connection(broker, client="slow", slow_policy=slow.policy)
        pattern, syntax = slow.filter
        options = {"syntax": ("amqp", "mqtt").index(syntax)}
        self._connection.send(self._connection.encoder.subscribe(1, 1, pattern, options))
        self._connection.read_until(Ok)

    def read_a_little(self) -> None:
        self.received += self._connection.read_bytes(READ_BYTES)

    def finish(self) -> dict[str, int]:
        """Unsubscribe, read everything that comes before the answer, and return what the answer says."""
        self._connection.send(self._connection.encoder.unsubscribe(2, 1))
        answer = self._connection.read_until(Ok, self.received)
        assert isinstance(answer, Ok)
        assert answer.result is not None
        self._connection.close()
        return answer.result


def publish_in_chunks(broker: TestBroker, feeds: list[Feed]) -> Iterator[None]:
    """Publish all feeds at full speed; stops after each chunk, when the broker has routed it."""
    publishers = [Connection(broker) for _ in feeds]
    for start in range(0, max(len(feed) for feed in feeds), CHUNK):
        for publisher, feed in zip(publishers, feeds, strict=True):
            frames = [
                publisher.encoder.publish(topic, payload, None, ("amqp", "mqtt").index(syntax), None, None)
                for topic, syntax, payload in feed.messages(start, start + CHUNK)
            ]
            publisher.send(b"".join(frames) + publisher.encoder.ping(start))
        for publisher in publishers:
            publisher.read_until(Pong)
        yield
    for publisher in publishers:
        publisher.close()


def test_counters_account_for_exactly_what_slow_subscribers_miss(start_broker: StartBroker, feeds: list[Feed]) -> None:
    broker = start_broker(frame_bytes_max="64KiB", outbox_bytes_max="256KiB", burst_seconds_max=0)
    subscribers = [SlowSubscriber(broker, slow, Expected(feeds, *slow.filter)) for slow in SLOW]
    for _ in publish_in_chunks(broker, feeds):
        for subscriber in subscribers:
            subscriber.read_a_little()
    dropped = {"drop_newest": 0, "drop_oldest": 0}
    for subscriber in subscribers:
        result = subscriber.finish()
        expected = subscriber.expected
        for message in subscriber.received:
            expected.take_later(message.topic, message.payload)
        assert result["delivered"] == len(subscriber.received), subscriber.slow
        assert result["delivered"] + result["dropped"] == expected.total, subscriber.slow
        assert result["dropped"] > 0, "a subscriber so slow must miss something, else this shows nothing"
        dropped[subscriber.slow.policy] += result["dropped"]
        # Each policy keeps what it says: the oldest of what waits, or the newest.
        got = {MARK.unpack_from(message.payload) for message in subscriber.received}
        first, last = expected.ends()
        assert (first if subscriber.slow.policy == "drop_newest" else last) & got, subscriber.slow
    counted = stats(broker)
    assert counted["dropped_newest"] == dropped["drop_newest"]
    assert counted["dropped_oldest"] == dropped["drop_oldest"]
    assert counted["messages_in"] == sum(len(feed) for feed in feeds)
    assert counted["messages_out"] == sum(len(subscriber.received) for subscriber in subscribers)
    assert counted["slow_consumers"] == len(SLOW)
    assert counted["publishers_paused"] == 0
