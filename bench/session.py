"""Opening the connections of a load: sockets, handshakes, subscriptions and the frames to publish.

All of it is plain blocking Python, once per connection; the compiled generator is handed the open sockets.
"""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench import frames
from bench.generator import Generator
from bench.scenarios import Scenario
from matchcore.reference import matches

CONNECT_SECONDS = 10.0  # for one connect or one answer; a broker on this machine that needs longer is stuck


@dataclass(frozen=True)
class Target:
    """A server to load: `broker_pid` is whose processor time is measured, None if it is not known."""

    host: str
    port: int
    broker_pid: int | None = None
    null: bool = False  # the null broker, which knows only one subscription number


@contextlib.contextmanager
def load(target: Target, scenario: Scenario) -> Iterator[Generator]:
    """A generator with all connections of the scenario open and all subscriptions in force.

    Raises OSError when the server cannot be reached, frames.Refused when it says no.
    """
    generator = Generator(
        payload_bytes=scenario.payload_bytes,
        window=scenario.window,
        batch=scenario.batch,
        receipts=scenario.receipts,
        latency=scenario.rate > 0,
    )
    with contextlib.ExitStack() as stack:
        filters = [scenario.filter(subscriber) for subscriber in range(scenario.subscribers)]
        for number, pattern in enumerate(filters):
            connection = stack.enter_context(_connect(target, f"bench-sub-{number}"))
            # Numbers that differ show a copy whose number was not patched.
            subscription = frames.NULL_SUBSCRIPTION if target.null else 1_000 + number
            connection.sendall(frames.subscribe(1, subscription, pattern, scenario.syntax))
            frames.expect(connection, frames.OK)
            connection.setblocking(False)
            generator.add_subscriber(connection.fileno(), subscription)
        for number in range(scenario.publishers):
            connection = stack.enter_context(_connect(target, f"bench-pub-{number}"))
            connection.setblocking(False)
            generator.add_publisher(connection.fileno())
        for publisher, topic in streams(scenario):
            frame, spelled, payload_at = frames.publish(
                topic, scenario.payload_bytes, scenario.syntax, receipt=scenario.receipts
            )
            subscribers = expected(topic, filters, scenario.syntax)
            generator.add_stream(publisher, spelled, frame, payload_at, subscribers)
        generator.start()
        yield generator


def streams(scenario: Scenario) -> list[tuple[int, str]]:
    """(publisher, topic) of every stream: all topics dealt out to the publishers, each of whom has one."""
    count = max(scenario.publishers, scenario.topics)
    return [(i % scenario.publishers, scenario.topic(i % scenario.topics)) for i in range(count)]


def expected(topic: str, filters: Sequence[str], syntax: str) -> list[int]:
    """The subscribers that a message on this topic must reach, by the oracle of the matcher's own tests."""
    answers: dict[str, bool] = {}
    for pattern in filters:
        if pattern not in answers:
            answers[pattern] = matches(pattern, syntax, topic, syntax)
    return [number for number, pattern in enumerate(filters) if answers[pattern]]


def _connect(target: Target, name: str) -> socket.socket:
    connection = socket.create_connection((target.host, target.port), timeout=CONNECT_SECONDS)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(frames.hello(name))
        frames.expect(connection, frames.WELCOME)
    except BaseException:
        connection.close()
        raise
    return connection
