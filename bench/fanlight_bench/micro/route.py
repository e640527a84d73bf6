"""The route of a topic, found in the cache: ns a look-up.

    lookup  RouteCache.lookup, as called from Python; the lanes call the same without Python
    miss    the same, of topics without a route
    dict    a dict that has the same topics
    lane    a whole publish of 3.1.1 on each of the topics in turn, with nobody on its route: parse and look-up

Beside dict: look-ups. Topics come as new bytes, whose hash is not known yet, as they come from a socket; each is asked
once a turn, in an order that no cache of the processor foresees.
"""

import random
from collections import deque
from collections.abc import Iterator
from itertools import repeat

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import GIB, MicroClient, key, packet
from fanlight_broker.protocols.mqtt.version import V3
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache

SEED = 20_171
MQTT = 1
ASKED = 20_000  # in a turn
BATCH = 500     # fed to the lane at once


def topic(number: int) -> bytes:
    return b"site/%d/floor/%d/dev/%d" % (number // 100, number % 20, number)


def drain(answers: Iterator[object]) -> None:
    """Ask them all, in C."""
    deque(answers, maxlen=0)


class RoutedTopics:
    """So many topics with a route each, and what is asked of them."""

    def __init__(self, count: int) -> None:
        dice = random.Random(SEED)
        self.routes = RouteCache(count)
        self.dict = {}
        for number in range(count):
            route = Route(key(V3, topic(number)), [], [])
            self.routes.add(route)
            self.dict[topic(number)] = route
        self.order = [dice.randrange(count) for _ in range(ASKED)]
        self.count = count
        ledger = Ledger(GIB, lambda: None)
        self.peer = MicroClient(ledger, self.routes, V3)
        publishes = [packet(V3, topic(number)) for number in self.order]
        self.batches = [b"".join(publishes[at : at + BATCH]) for at in range(0, ASKED, BATCH)]

    def topics(self, beyond: int = 0) -> list[bytes]:
        """New objects each time."""
        return [topic(number + beyond) for number in self.order]

    def lookup(self, beyond: int = 0) -> int:
        return timed(drain, map(self.routes.lookup, repeat(MQTT), self.topics(beyond)))

    def miss(self) -> int:
        return self.lookup(beyond=self.count)

    def in_dict(self) -> int:
        return timed(drain, map(self.dict.get, self.topics()))

    def lane(self) -> int:
        spent = 0
        for batch in self.batches:
            self.peer.inbox.feed(batch)
            spent += timed(self.peer.run)
        return spent


def groups(effort: Effort) -> Iterator[Group]:
    for count in (1, effort.sized(20_000, 1_000)) if effort.quick or effort.size else (1, 1_000, 20_000):
        asked = RoutedTopics(count)
        yield Group(
            f"{count:,} topics",
            [
                Case("dict", ASKED, asked.in_dict),
                Case("lookup", ASKED, asked.lookup, ("dict",)),
                Case("miss", ASKED, asked.miss, ("dict",)),
                Case("lane", ASKED, asked.lane),
            ],
        )
