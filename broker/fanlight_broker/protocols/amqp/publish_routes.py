"""Makes the sites of basic.publish for the lane: where messages with these arguments go, if the key alone decides; and
the routes of topic and headers exchanges, by which it finds the others itself.

None is for what Python decides on for each message, or refuses: an exchange that is not there or internal, one that
holds messages back, a key that no queue of the default exchange has, a stream: its confirm waits for the archive.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

import matchcore
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.topics import check_publisher
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.protocols.amqp.data_types import UINT16
from fanlight_broker.protocols.amqp.exchange_routes import ExchangeRoutes, is_live
from fanlight_broker.protocols.amqp.exchanges.exchange import AmqpExchange
from fanlight_broker.protocols.amqp.exchanges.headers import HeadersTable
from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges
from fanlight_broker.protocols.amqp.exchanges.topic import TopicTable
from fanlight_broker.protocols.amqp.fields import TOPIC_EXCHANGE, exchange_prefix, exchange_topic
from fanlight_broker.protocols.amqp.publish_sites import PublishSite, PublishSites
from fanlight_broker.wire.route import Route

MANDATORY: Final = 1  # of the bits of basic.publish
FIND_IDS: Final = matchcore.FilterIndex.find_ids()


class Publishable(Protocol):
    """A vhost: what a site is made of."""

    broker: Namespace
    exchanges: Exchanges
    sites: PublishSites


def site_of(vhost: Publishable, arguments: bytes) -> PublishSite | None:
    """arguments: of basic.publish, after its ids. What is malformed is for Python, too."""
    if arguments[-1] & ~MANDATORY:
        return None
    names = arguments[UINT16.size : -1]
    key_at = 1 + names[0] if names else 0
    if len(names) < 2 or key_at >= len(names) or key_at + 1 + names[key_at] != len(names):
        return None
    route: Route | None
    onward = None
    try:
        exchange, key = names[1:key_at].decode(), names[key_at + 1 :].decode()
        reached = vhost.exchanges.publish(exchange, key)
    except (UnicodeDecodeError, FanlightError):
        return None
    if not exchange:
        queue = vhost.broker.queues.get(key)
        if queue is None or queue.options.stream is not None:
            return None
        return PublishSite(exchange_topic(exchange, key), names, route_of_queues(vhost, [queue]), None)
    found = vhost.exchanges.find(exchange)
    if found is None or found.delayed:
        return None
    routes = None if found.is_shared else routes_of(vhost, found, names[:key_at])
    if routes is not None and routes.conditions is not None:
        return PublishSite(exchange_topic(exchange, key), names, None, routes, routes)
    if not reached.valid:
        return None
    if reached.topics:
        if exchange != TOPIC_EXCHANGE or reached.topics != (key,):
            return None
        topic: bytes = key.encode()
        route = None
        if reached.queues:
            onward = route_to(vhost, reached.queues)
            if onward is None:
                return None
    else:
        topic = exchange_topic(exchange, key)
        # One for all keys of a fanout exchange, which may have thousands of queues.
        route = reached.prepared if isinstance(reached.prepared, Route) else None
        if route is None or not is_live(route):
            route = reached.prepared = route_to(vhost, reached.queues)
        if route is None:
            return None
    try:
        check_publisher(topic)
    except FanlightError:
        return None
    return PublishSite(topic, names, route, reached, onward=onward)


def route_to(vhost: Publishable, names: tuple[str, ...]) -> Route | None:
    """Of these queues alone. None: there is a stream among them."""
    queues = [queue for name in names if (queue := vhost.broker.queues.get(name)) is not None]
    if any(queue.options.stream is not None for queue in queues):
        return None
    return route_of_queues(vhost, queues)


def route_of_queues(vhost: Publishable, queues: Sequence[WorkQueue]) -> Route:
    """No topic's, so the router does not say what is asked about its messages."""
    route = Route(b"", [], [queue.inside for queue in queues])
    if vhost.broker.publishing.traces:
        route.trace()
    return route


def routes_of(vhost: Publishable, exchange: AmqpExchange, name: bytes) -> ExchangeRoutes | None:
    """The lane's of a topic or headers exchange with bindings. name: its own, as a short string."""
    if isinstance(exchange.routes, ExchangeRoutes) and exchange.routes.valid:
        return exchange.routes
    table = exchange.table
    made = partial(
        ExchangeRoutes, exchange_prefix(exchange.name), partial(route_by_numbers, vhost, exchange), vhost.sites.room
    )
    if isinstance(table, HeadersTable):
        routes = made(conditions=table.index)
    elif isinstance(table, TopicTable) and table.index is not None:
        routes = made(filters=table.index, find_ids=FIND_IDS)
    else:
        return None
    vhost.exchanges.keep_routes(exchange, routes)
    vhost.sites.add(name, routes)
    return routes


def route_by_numbers(vhost: Publishable, exchange: AmqpExchange, numbers: tuple[int, ...]) -> Route | None:
    names = vhost.exchanges.queues_by_numbers(exchange, numbers)
    return None if names is None else route_to(vhost, names)
