"""What is said to a broker once per connection, subscription or stream: the plain half of a protocol.

A Speaker makes bytes and judges answers; it touches no socket (connect.py does). The compiled half, for what is
done once per message, is its Dialect.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fanlight_bench.frames import Refused
from fanlight_bench.load.protocol import Dialect
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.spelling import expand
from fanlight_bench.load.target import Target

__all__ = ["FrameTemplate", "Publish", "Refused", "Speaker"]


@dataclass(frozen=True)
class FrameTemplate:
    """A publish to repeat: see Template in streams.pxd. The offsets are 0 where there is nothing to patch."""

    octets: bytes
    payload_at: int
    number_at: int = 0
    digits_at: int = 0

    def fields(self) -> tuple[bytes, int, int, int]:
        """As the compiled half takes it."""
        return self.octets, self.payload_at, self.number_at, self.digits_at


@dataclass(frozen=True)
class Publish:
    """How a stream is published. topic: as deliveries spell it; digits_at: of {n} in it, -1 if it has none."""

    topic: bytes
    frame: FrameTemplate
    later: FrameTemplate | None = None
    digits_at: int = -1
    properties: bytes = b""


class Speaker(ABC):
    """One protocol. `names_subscriptions`: a delivery says which subscription it is for; `qos_max`: what it can do."""

    names_subscriptions = False
    parent = True  # `a/#` matches `a`
    qos_max = 2
    subscriber_aliases = 0  # topics that the broker may give a number to, on a subscriber's connection

    def __init__(self, dialect: Dialect, target: Target, scenario: Scenario) -> None:
        """Raises Refused when the protocol cannot do what the scenario needs."""
        self.dialect = dialect
        self.target = target
        self.scenario = scenario
        if scenario.qos > self.qos_max:
            raise Refused(f"{scenario.name} is of QoS {scenario.qos}; {target.protocol} has up to {self.qos_max}")
        if scenario.retain and target.protocol not in ("mqtt", "mqtt5"):
            raise Refused(f"{target.protocol} has no retained messages")
        if (scenario.aliases or scenario.properties) and target.protocol != "mqtt5":
            raise Refused(f"{scenario.name} needs topic aliases or properties: mqtt5://, not {target.protocol}://")
        if (scenario.headers or scenario.background.where) and target.protocol not in ("fanlight", "mqtt5"):
            raise Refused(f"{scenario.name} needs headers or selectors: fanlight://, mqtt5://, not {target.protocol}://")

    @abstractmethod
    def hello(self, client: str) -> bytes:
        """What opens a connection, to be answered once."""

    @abstractmethod
    def subscribe(self, filters: Iterable[tuple[int, str]]) -> Iterator[tuple[bytes, int]]:
        """Subscriptions of one connection as (number, filter), in pieces: bytes, and answers to expect."""

    def subscribe_where(self, filters: Iterable[tuple[int, str, str]]) -> Iterator[tuple[bytes, int]]:
        """The same for (number, filter, selector)."""
        raise Refused(f"{self.target.protocol} has no selectors")

    @abstractmethod
    def is_answer(self, kind: int, frame: bytes) -> bool:
        """Whether this frame is the answer to the above. Raises Refused when it says no."""

    @abstractmethod
    def publish(self, topic: str, alias: int, index: int = 0) -> Publish:
        """How to publish on a topic of the scenario.

        alias: its number on its publisher's connection, from 1; index: among the topics, for the headers.
        """

    @abstractmethod
    def explain(self, frame: bytes) -> str:
        """An error from the broker, in words."""

    def headers(self, index: int) -> dict[str, object]:
        """Of the messages of the topic with this index."""
        given = self.scenario.headers.items()
        return {name: expand(value, index) if isinstance(value, str) else value for name, value in given}

    def goodbye(self) -> bytes:
        """What ends a connection in good order."""
        return b""

    def subscription(self, number: int) -> int:
        """The number that deliveries of subscription `number` carry; 0 if there is none."""
        return number if self.names_subscriptions else 0
