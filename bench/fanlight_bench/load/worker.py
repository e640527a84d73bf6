"""One worker of a load, in one process: its connections, its generator, and the calls that a run is made of.

Of N workers, worker k has every N-th connection of each kind, beginning with number k. All workers know all streams, so
that each can check whatever comes to its subscribers, whoever published it.
"""

import contextlib
import functools
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from fanlight_bench.load import connect, spelling
from fanlight_bench.load.carry import opened as carry_opened
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.generator import Generator
from fanlight_bench.load.requests import requests
from fanlight_bench.load.scenario import BadScenario, Scenario
from fanlight_bench.load.shared_counters import SharedCounters
from fanlight_bench.load.speaker import Publish, Refused
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.streams import Streams
from fanlight_bench.load.target import Target

SLOW_RECEIVE_BYTES = 4_096  # of a slow subscriber's receive buffer: so that the broker soon feels it
# Subscriptions are numbered from here on each connection, as clients do, who do not know of each other. No small
# numbers, so that one that was not patched shows.
SUBSCRIPTION_MIN = 1_000


class Worker:
    """A context manager: at its end the connections are closed.

    The calls come in this order, in all workers: connect, subscribe, start, run and begin as often as one likes, drain,
    outcome. They raise Refused, OSError and TimeoutError as `connect.talk` does.
    """

    def __init__(
        self, scenario: Scenario, target: Target, shared: SharedCounters, *, number: int = 0, wakers: Sequence[int] = ()
    ) -> None:
        self.scenario = scenario
        self.shared = shared
        self._number = number
        self._wakers = wakers
        self._target = target
        self._speaker = speaker(target, scenario)
        name = f"bench-{os.getpid()}"
        self._subscribers = self._own(f"{name}-s", scenario.subscribers)
        self._background = self._own(f"{name}-b", self._background_connections())
        self._publishers = self._own(f"{name}-p", scenario.publishers)
        self._idle = self._own(f"{name}-i", scenario.idle)
        self.generator: Generator | None = None

    # ------------------------------------------------------------------ the calls, in their order

    def connect(self) -> int:
        """Open all connections; how many."""
        everyone = self._everyone()
        connect.talk(everyone, self._speaker, connect.address(self._target.host, self._target.port))
        return len(everyone)

    def subscribe(self) -> int:
        """Subscribe all; how many subscriptions."""
        count = 0
        for number, connection in self._subscribers.items():
            connection.say(self._speaker.subscribe([(SUBSCRIPTION_MIN, self._spelled(self._filter(number)))]))
            count += 1
        for number, connection in self._background.items():
            connection.say(self._background_script(number))
            count += len(self._background_numbers(number))
        connect.talk([*self._subscribers.values(), *self._background.values()], self._speaker)
        return count

    def start(self) -> None:
        """Make the streams and the generator; after this nothing can be refused but by a broker that misbehaves."""
        scenario = self.scenario
        streams = Streams(self.shared, self._number, scenario.payload_bytes)
        generator = Generator(
            self._speaker.dialect,
            streams,
            self._number,
            window=scenario.window,
            batch=min(scenario.batch, scenario.inflight) if scenario.qos else scenario.batch,
            inflight=scenario.inflight if scenario.qos else 0,
            eager=scenario.eager,
            wakers=self._wakers,
            slow_bytes_per_second=scenario.slow_bytes_per_second,
        )
        aliases = self._speaker.subscriber_aliases
        at: dict[int, int] = {}
        for number, connection in self._subscribers.items():
            slow = number < scenario.slow
            if slow:
                _slow_down(connection)
            at[number] = generator.add_subscriber(
                connection.socket.fileno(), bytes(connection.rest), slow=slow, aliases=aliases,
                carrier=connection.carrier,
            )
        for number, connection in self._background.items():
            at[scenario.subscribers + number] = generator.add_subscriber(
                connection.socket.fileno(), bytes(connection.rest), aliases=aliases, carrier=connection.carrier
            )
        for connection in self._idle.values():  # nothing must come, but a broker may ping, or close
            generator.add_subscriber(connection.socket.fileno(), bytes(connection.rest), carrier=connection.carrier)
        self._add_streams(streams, at)
        for number, connection in self._publishers.items():
            publisher = generator.add_publisher(
                connection.socket.fileno(), bytes(connection.rest), carrier=connection.carrier
            )
            if number < scenario.streams:
                generator.publish_on(publisher, number)  # its first stream has its number
        generator.start()
        self.generator = generator

    def run(self, seconds: float) -> None:
        """Publish for so long, at this worker's share of the rate."""
        assert self.generator is not None
        share = len(self._publishers) / self.scenario.publishers if self.scenario.publishers else 0.0
        self.generator.run(seconds, self.scenario.rate * share)

    def begin(self) -> None:
        """What has been measured so far was the warm-up."""
        assert self.generator is not None
        self.generator.begin()

    def drain(self, seconds: float) -> bool:
        """Wait for what is still to come, to all workers; whether it has."""
        assert self.generator is not None
        return self.generator.drain(seconds)

    def broken(self) -> bool:
        """Whether the broker has closed a connection or refused something: then there is no use in going on."""
        assert self.generator is not None
        return self.generator.broken()

    def outcome(self) -> dict[str, Any]:
        """What only this worker knows, as values for JSON; not in the shared counters."""
        assert self.generator is not None
        latency = self.generator.streams.latency
        complaint = self.generator.complaint()
        return {
            "latency": {"steps": latency.steps(), "highest": latency.highest},
            "schedule_lag_ns": self.generator.schedule_lag_ns,
            "complaint": self._speaker.explain(complaint) if complaint else "",
        }

    def close(self) -> None:
        """Say goodbye on all connections and close them. What was retained is removed first."""
        if self.scenario.retain and self.generator is not None:
            with contextlib.suppress(OSError, Refused):  # the broker has gone, and another error reports that
                self._forget()
        for connection in self._everyone():
            connection.close(self._speaker.goodbye())

    def _forget(self) -> None:
        """Remove the retained messages of this worker's publishers (MQTT 5, 3.3.1.3). Raises OSError, Refused."""
        says = requests(self._speaker)
        for number, connection in self._publishers.items():
            own = range(number, self.scenario.topics, self.scenario.publishers)
            topics = (spelling.expand(self.scenario.topic, topic) for topic in own)
            ping, answers = says.ping()
            connection.say([(b"".join(says.store(self._spelled(topic), b"") for topic in topics) + ping, answers)])
        connect.talk(self._publishers.values(), says)

    # ------------------------------------------------------------------ who is who

    def _own(self, name: str, count: int) -> dict[int, Connection]:
        carry = functools.partial(carry_opened, self._target) if self._target.carrier else None
        return {
            number: Connection(f"{name}{number}", carry) for number in range(self._number, count, self.shared.workers)
        }

    def _everyone(self) -> list[Connection]:
        groups = (self._subscribers, self._background, self._idle, self._publishers)
        return [connection for group in groups for connection in group.values()]

    def _filter(self, subscriber: int) -> str:
        templates = self.scenario.filters
        return spelling.expand(templates[subscriber % len(templates)], subscriber // len(templates))

    def _background_connections(self) -> int:
        return self.scenario.background.connections if self.scenario.background.subscriptions else 0

    def _background_numbers(self, connection: int) -> range:
        every = self.scenario.background
        return range(
            every.subscriptions * connection // every.connections,
            every.subscriptions * (connection + 1) // every.connections,
        )

    def _background_filters(self, connection: int) -> Iterator[tuple[int, str]]:
        templates = [spelling.Expander(template) for template in self.scenario.background.filters]
        for number in self._background_numbers(connection):
            pattern = templates[number % len(templates)](number // len(templates))
            yield SUBSCRIPTION_MIN + number, self._spelled(pattern)

    def _background_script(self, connection: int) -> Iterator[tuple[bytes, int]]:
        filters = self._background_filters(connection)
        if not self.scenario.background.where:
            return self._speaker.subscribe(filters)
        where = spelling.Expander(self.scenario.background.where)
        return self._speaker.subscribe_where(
            (number, pattern, where(number - SUBSCRIPTION_MIN)) for number, pattern in filters
        )

    def _spelled(self, text: str) -> str:
        return spelling.spelled(text, self._target.protocol, self._target.syntax)

    # ------------------------------------------------------------------ who gets what

    def _add_streams(self, streams: Streams, at: dict[int, int]) -> None:
        """All streams; `at`: the generator's numbers of this worker's subscribers and background connections."""
        scenario = self.scenario
        topics = list(map(spelling.Expander(scenario.topic), range(scenario.topics)))
        audience = list(self._audience(topics))
        fan_out = [0] * scenario.topics
        reach = [0] * scenario.topics
        for subscriber, _, topic in audience:
            reach[topic] += 1
            fan_out[topic] += subscriber >= scenario.slow
        said: dict[int, Publish] = {}
        last: dict[int, int] = {}
        for stream in range(scenario.streams):
            publisher, topic = stream % scenario.publishers, stream % scenario.topics
            own = publisher in self._publishers
            alias = stream // scenario.publishers + 1
            if topic not in said or scenario.aliases:
                said[topic] = self._speaker.publish(topics[topic], alias, topic)
            publish = said[topic]
            streams.add_stream(
                publish.topic,
                fan_out[topic],
                reach=reach[topic],
                digits_at=publish.digits_at,
                properties=publish.properties,
                frame=publish.frame.fields() if own else None,
                later=publish.later.fields() if own and publish.later else None,
                last=last.get(publisher),
            )
            last[publisher] = stream
        of_topic: dict[int, list[int]] = {}
        for stream in range(scenario.streams):
            of_topic.setdefault(stream % scenario.topics, []).append(stream)
        for subscriber, subscription, topic in audience:
            if subscriber in at:
                for stream in of_topic.get(topic, ()):
                    try:
                        streams.expect(at[subscriber], stream, self._speaker.subscription(subscription))
                    except ValueError as error:  # brokers differ in how many copies they send then
                        raise BadScenario(f"{scenario.name}: {error}") from None

    def _audience(self, topics: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """(subscriber, its subscription, topic) of all subscribers; background connections are counted behind them."""
        scenario = self.scenario
        templates = (*scenario.filters, *scenario.background.filters)
        audience = spelling.Audience(topics, templates, parent=self._speaker.parent)
        for subscriber, pattern in enumerate(spelling.filters(scenario.filters, scenario.subscribers)):
            for topic in audience.topics(pattern):
                yield subscriber, SUBSCRIPTION_MIN, topic
        background = scenario.background
        patterns = spelling.filters(background.filters, background.subscriptions)
        wanted = {name: spelling.Expander(template) for name, template in background.met_by.items()}
        headers = [self._speaker.headers(topic) for topic in range(scenario.topics)] if wanted else []
        for number, pattern in enumerate(patterns if background.subscriptions else ()):
            met_by = {name: template(number) for name, template in wanted.items()}
            for topic in audience.topics(pattern):
                if any(headers[topic][name] != value for name, value in met_by.items()):
                    continue  # its selector is not true of them
                # The connection c of which n*c // m <= number < n*(c+1) // m, of n subscriptions and m connections.
                connection = ((number + 1) * background.connections - 1) // background.subscriptions
                yield scenario.subscribers + connection, SUBSCRIPTION_MIN + number, topic


def _slow_down(connection: Connection) -> None:
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_RECEIVE_BYTES)
