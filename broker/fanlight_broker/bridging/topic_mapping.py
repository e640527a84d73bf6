"""Which route of a bridge a message is of, and its topic on the other side.

A route has a filter, and a prefix on each side: here its topics begin with `local_prefix`, there with `remote_prefix`,
and what follows is the same and matches the filter. As in mosquitto's `topic`, an empty filter with both prefixes is a
route of one topic with another name on each side.

A message says by its Subscription Identifiers which routes it came for; where the other side has none (3.1.1), its
topic says it. What the far side says counts only where the topic is one of that route.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import matchcore

SYNTAX: Final = "mqtt"


class Direction(StrEnum):
    OUT = "out"
    IN = "in"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class BridgeRoute:
    """One [[bridge.route]]. where: a selector; retained: whether a retained message stays one on the other side."""

    filter: str
    direction: Direction = Direction.OUT
    qos: int = 1
    local_prefix: str = ""
    remote_prefix: str = ""
    where: str | None = None
    retained: bool = True

    @property
    def local_filter(self) -> str:
        return self.local_prefix + self.filter

    @property
    def remote_filter(self) -> str:
        return self.remote_prefix + self.filter

    @property
    def goes_out(self) -> bool:
        return self.direction is not Direction.IN

    @property
    def comes_in(self) -> bool:
        return self.direction is not Direction.OUT


@dataclass(frozen=True, slots=True)
class Mapped:
    """A message's topic on the other side, and how it goes there."""

    topic: str
    qos: int  # at most
    retained: bool


class TopicMapping:
    """The routes of one direction, each by its number: 1 is the first of the bridge, whatever its direction."""

    def __init__(self, routes: Sequence[BridgeRoute], *, outward: bool) -> None:
        self._outward = outward
        self._routes = {
            number: route for number, route in enumerate(routes, 1)
            if (route.goes_out if outward else route.comes_in)
        }
        self._index = matchcore.FilterIndex()
        for number, route in self._routes.items():
            self._index.insert(route.local_filter if outward else route.remote_filter, number, syntax=SYNTAX)

    def __len__(self) -> int:
        return len(self._routes)

    def items(self) -> list[tuple[int, BridgeRoute]]:
        return list(self._routes.items())

    def of(self, topic: str, identifiers: Sequence[int]) -> list[Mapped]:
        """Where a message goes: to each topic once, with the largest QoS of its routes."""
        numbers: Sequence[int] = identifiers
        if not identifiers or not self._outward:
            # The far side may say anything: what is not on a topic of the route does not come in by it.
            matched = self._index.match(topic, syntax=SYNTAX)
            numbers = [number for number in identifiers if number in matched] if identifiers else matched
        found: dict[str, Mapped] = {}
        for number in numbers:
            route = self._routes.get(number)
            if route is None:
                continue
            before, after = (route.local_prefix, route.remote_prefix)
            if not self._outward:
                before, after = after, before
            if not topic.startswith(before):
                continue
            mapped = Mapped(after + topic[len(before):], route.qos, route.retained)
            known = found.get(mapped.topic)
            if known is None or known.qos < mapped.qos:
                found[mapped.topic] = mapped
        return list(found.values())
