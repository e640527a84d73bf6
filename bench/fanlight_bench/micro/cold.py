"""A publish where the route cache is no help, beside one where it is: ns a publish, the cache full.

    warm    5,000 topics in turn, as many as there is room for
    once    topics that are used once
    beyond  20,000 topics in turn
    churn   warm; every 200 messages a filter that matches all of them comes or goes, its own time included
    one     one topic, to the same 100 subscribers
    mixed   32 topics in turn to these: a batch has them all

Beside warm, or one: the others.
"""

from collections.abc import Iterator
from itertools import cycle

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import PAYLOAD, frame
from fanlight_bench.micro.publish import MESSAGES, PublishSetup, take_all

ROUTES = 5_000  # more than enter the cache at their first sighting
BEYOND = 20_000
EVERY = 200     # messages between two changes
TOGETHER = 32


def publish(number: int) -> bytes:
    return frame(3, None, f"stock.nasdaq.AAPL.{number:09}", PAYLOAD)


def publishes(first: int, many: int) -> bytes:
    return b"".join(publish(first + i) for i in range(many))


def in_turn(topics: int) -> Iterator[bytes]:
    return cycle([publishes(first, MESSAGES) for first in range(0, topics, MESSAGES)])


def once() -> Iterator[bytes]:
    first = 10 * BEYOND
    while True:
        yield publishes(first, MESSAGES)
        first += MESSAGES


def few(topics: int) -> Iterator[bytes]:
    return cycle([b"".join(publish(i % topics) for i in range(MESSAGES))])


class ColdSetup(PublishSetup):
    """Its cache is full, and holds the first topics."""

    def __init__(self, subscribers: int, batches: Iterator[bytes]) -> None:
        super().__init__(subscribers, in_turn(ROUTES), routes_max=ROUTES)
        for _ in range(3 * ROUTES // MESSAGES + 1):
            self.turn()
        self.batches = batches

    def churn(self) -> int:
        """`turn`, with changes in between."""
        batch, spent, changer = next(self.batches), 0, self.connections[-1]
        size = len(batch) // MESSAGES * EVERY
        for number, at in enumerate(range(0, len(batch), size)):
            self.publisher.inbox.feed(batch[at : at + size])
            spent += timed(self.publish)
            changer.inbox.feed(frame(8, None, 9) if number % 2 else frame(6, None, 9, "stock.#"))
            spent += timed(changer.receive, 0.0)
        take_all(self.broker, self.connections)
        return spent


def groups(effort: Effort) -> Iterator[Group]:
    for subscribers in (1, 2):
        warm = ColdSetup(subscribers, in_turn(ROUTES))
        yield Group(f"{subscribers} subscribers", [
            Case("warm", MESSAGES, warm.turn),
            Case("once", MESSAGES, ColdSetup(subscribers, once()).turn, ("warm",)),
            Case("beyond", MESSAGES, ColdSetup(subscribers, in_turn(BEYOND)).turn, ("warm",)),
            Case("churn", MESSAGES, ColdSetup(subscribers, in_turn(ROUTES)).churn, ("warm",)),
        ])  # fmt: skip
    yield Group("100 subscribers", [
        Case("one", MESSAGES, ColdSetup(100, few(1)).turn),
        Case("mixed", MESSAGES, ColdSetup(100, few(TOGETHER)).turn, ("one",)),
    ])  # fmt: skip
