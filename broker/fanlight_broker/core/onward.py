"""Queues that a protocol leads messages of topics on to: those behind the exchanges that are bound to amq.topic.

The route of such a topic has `ruled` set, as where a routing rule may act, so that Python decides on each message,
unless the lane of its protocol knows the queues; the other topics stay compiled. What is found for one message is made
part of its route, so a queue gets one copy, and room, receipts and marks are those of any other route.
"""

from collections.abc import Iterable
from typing import Protocol

from fanlight_broker.wire.message import Message
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.route import Route


class Onward(Protocol):
    def concerns(self, topic: bytes, syntax: int) -> bool:
        """May messages of this topic be led on? Asked once a topic, and kept with its route."""
        ...

    def queues(self, message: Message) -> Iterable[NamedQueue]:
        """Where this message goes beside the subscriptions of its topic."""
        ...


def led_on(route: Route, message: Message, onward: Onward) -> Route:
    """The route of one message with those queues; the same one if there are no more than it has."""
    more = [each for each in onward.queues(message) if each not in route.groups]
    if not more:
        return route
    made = Route(b"", list(route.targets), [*route.groups, *more])
    made.tap = route.tap
    return made
