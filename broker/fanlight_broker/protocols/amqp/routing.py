"""Who gets a message that exchanges have routed: a route of queues, of the subscriptions of topics, or of both."""

from typing import Any

from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.protocols.amqp.exchanges.exchange import Destinations
from fanlight_broker.protocols.amqp.fields import SYNTAX
from fanlight_broker.wire.route import Route


def route_of(reached: Destinations, broker: Namespace) -> Route | None:
    """None: the subscriptions of the topic. Else the queues, and the subscriptions of the topics, if there are any.

    A queue that has ended since is left out.
    """
    if reached.topics and not reached.queues and len(reached.topics) == 1:
        return None
    targets: dict[Any, None] = {}
    groups: dict[Any, None] = {}
    for name in reached.queues:
        found = broker.queues.get(name)
        if found is not None:
            groups[found.inside] = None
    tap = screens = None
    for topic in reached.topics:
        route = broker.router.route(topic.encode(), SYNTAXES[SYNTAX])
        targets |= dict.fromkeys(route.targets)
        groups |= dict.fromkeys(route.groups)
        tap, screens = tap or route.tap, screens or route.screens
    made = Route(b"", list(targets), list(groups), screens)
    made.tap = tap
    return made
