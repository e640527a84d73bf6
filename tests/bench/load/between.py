"""A generator between sockets whose other ends are the test's: what it publishes is read, what it gets is written."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fanlight_bench.load import shared_counters
from fanlight_bench.load.generator import Generator
from fanlight_bench.load.result import FAULTS, faults
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import Speaker
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.spelling import expand
from fanlight_bench.load.streams import Streams
from fanlight_bench.load.target import parse
from tests.bench.load.wire import Wire

Pairs = list[tuple[socket.socket, socket.socket]]

SUBSCRIPTION = 77
TOPIC = "plant/line1/value"


@dataclass
class Bench:
    """A generator with one publisher and two subscribers, of whom the first gets the only stream."""

    wire: Wire
    speaker: Speaker
    generator: Generator
    publisher: socket.socket
    subscriber: socket.socket
    bystander: socket.socket

    def published(self) -> list[bytes]:
        """The frames that the generator has sent so far."""
        data = bytearray()
        self.publisher.setblocking(False)
        try:
            while part := self.publisher.recv(1 << 20):
                data += part
        except BlockingIOError:
            pass
        return self.wire.split(bytes(data))

    def deliveries(self) -> list[bytes]:
        """What a faultless broker would send for them."""
        return [self.wire.delivery(frame, SUBSCRIPTION) for frame in self.published()]

    def counters(self) -> dict[str, int]:
        return self.generator.streams.shared.totals()

    def faults(self) -> dict[str, int]:
        self.generator.drain(0.01)
        found = faults(self.counters())
        return {name: found[name] for name in FAULTS if found[name]}


def make(
    wire: Wire,
    pairs: Pairs,
    *,
    topic: str = TOPIC,
    qos: int = 0,
    slow: bool = False,
    aliases: int = 0,
    properties: Mapping[str, Any] | None = None,
) -> Bench:
    scenario = Scenario("test", "test", topic, filters=("#",), qos=qos, window=4, batch=4, properties=properties or {})
    speaks = speaker(parse(wire.url), scenario)
    streams = Streams(shared_counters.private(1), 0, scenario.payload_bytes)
    generator = Generator(
        speaks.dialect, streams, 0, window=4, batch=4, inflight=4 if qos else 0, slow_bytes_per_second=1e6
    )
    generator.add_subscriber(pairs[0][0].fileno(), slow=slow, aliases=aliases)
    generator.add_subscriber(pairs[1][0].fileno())
    generator.add_publisher(pairs[2][0].fileno())
    said = speaks.publish(expand(topic, 0), 1)
    streams.add_stream(
        said.topic,
        0 if slow else 1,
        reach=1,
        digits_at=said.digits_at,
        properties=said.properties,
        frame=said.frame.fields(),
    )
    streams.expect(0, 0, speaks.subscription(SUBSCRIPTION))
    generator.publish_on(0, 0)
    generator.start()
    return Bench(wire, speaks, generator, publisher=pairs[2][1], subscriber=pairs[0][1], bystander=pairs[1][1])


def fill(bench: Bench) -> None:
    """Publish until the window is full, and go on for 20 ms: no longer on a machine that is not busy."""
    while bench.counters()["published"] < 4:
        bench.generator.run(0.02)
