"""Queues that a protocol leads messages of topics on to: those behind the exchanges that are bound to amq.topic.

The route of such a topic has `ruled` set, as where a routing rule may act, so that Python decides on its messages; the
other topics stay compiled. What is found for one message is made part of its route, so a queue gets one copy, and room,
receipts and marks are those of any other route. If it is the same for every message of the topic, the route keeps it,
and the lanes need no Python until a binding changes; so it is with the lane of a protocol that knows the queues itself.
"""

from typing import Protocol

from fanlight_broker.wire.message import Message
from fanlight_broker.wire.route import QueuesBehind, Route


class Onward(Protocol):
    def concerns(self, topic: bytes, syntax: int) -> bool:
        """May messages of this topic be led on? Asked once a topic, and kept with its route."""
        ...

    def queues(self, message: Message) -> QueuesBehind:
        """Where this message goes beside the subscriptions of its topic; valid: all messages of the topic do."""
        ...


def led_on(route: Route, wanted: Route, message: Message, onward: Onward) -> Route:
    """The route of one message with those queues; the same one if there are no more than it has.

    route  of its topic. wanted: of this message, by what it says
    """
    found = onward.queues(message)
    route.behind = found if found.valid else None
    if set(wanted.groups).issuperset(found.queues):
        return wanted
    route.hits += 1
    return wanted.with_queues(found.queues)
