"""What is measured: the shapes of load, each under the name that the command line knows.

The shapes are those in which brokers are usually compared: one publisher to many subscribers, many disjoint
pairs, and wildcard subscriptions of which five match each message.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """One shape of load. Topics and filters are made from their numbers."""

    name: str
    title: str
    publishers: int
    subscribers: int
    topics: int
    topic: Callable[[int], str]
    filter: Callable[[int], str]  # of a subscriber
    window: int                   # deliveries outstanding, at most
    batch: int = 32               # messages of one write
    payload_bytes: int = 64
    receipts: bool = False
    rate: float = 0.0             # messages a second, for latency; 0: as fast as the window lets it
    syntax: str = "amqp"


# Five filters match each of the topics site.<0..99>.dev.<0..9>.temp; subscribers come in fives.
_WILDCARDS = ("site.*.dev.{}.temp", "site.*.dev.{}.#", "*.*.dev.{}.temp", "*.*.*.{}.*", "site.*.*.{}.#")

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "one-to-one", "1 publisher, 1 subscriber", 1, 1, 1,
            topic=lambda i: "plant.line1.value", filter=lambda i: "plant.line1.value", window=20_000,
            batch=256,  # a lone publisher that wrote less at a time would itself be the limit
        ),
        Scenario(
            "fan-out", "1 publisher, 100 subscribers", 1, 100, 1,
            topic=lambda i: "plant.line1.value", filter=lambda i: "plant.line1.value", window=100_000,
        ),
        Scenario(
            "pairs", "50 publishers, 50 subscribers, each its topic", 50, 50, 50,
            topic=lambda i: f"dev.{i}.temp", filter=lambda i: f"dev.{i}.temp", window=20_000,
        ),
        Scenario(
            "wildcard", "20 publishers, 1,000 topics, 50 wildcard subscribers, 5 match", 20, 50, 1_000,
            topic=lambda i: f"site.{i // 10}.dev.{i % 10}.temp",
            filter=lambda i: _WILDCARDS[i % 5].format(i // 5), window=40_000,
        ),
        Scenario(
            "receipts", "10 publishers with receipts, 10 subscribers", 10, 10, 10,
            topic=lambda i: f"dev.{i}.temp", filter=lambda i: f"dev.{i}.temp", window=20_000, receipts=True,
        ),
        Scenario(
            "latency", "10 publishers, 10 subscribers, 5,000 messages/s", 10, 10, 10,
            topic=lambda i: f"dev.{i}.temp", filter=lambda i: f"dev.{i}.temp", window=0, rate=5_000.0,
        ),
    )
}  # fmt: skip
