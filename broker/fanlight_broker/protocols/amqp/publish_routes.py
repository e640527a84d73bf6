"""Makes the sites of basic.publish for the lane: where messages with these arguments go, if the key alone decides.

None is for what Python decides on for each message, or refuses: an exchange that is not there or internal, one that
looks at headers or holds messages back, a key that no queue of the default exchange has.
"""

from typing import Final, Protocol

from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.topics import check_publisher
from fanlight_broker.protocols.amqp.data_types import UINT16
from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges
from fanlight_broker.protocols.amqp.fields import TOPIC_EXCHANGE, exchange_topic
from fanlight_broker.protocols.amqp.publish_sites import PublishSite
from fanlight_broker.wire.route import Route

MANDATORY: Final = 1  # of the bits of basic.publish


class Publishable(Protocol):
    """A vhost: what a site is made of."""

    broker: Namespace
    exchanges: Exchanges


def site_of(vhost: Publishable, arguments: bytes) -> PublishSite | None:
    """arguments: of basic.publish, after its ids. What is malformed is for Python, too."""
    if arguments[-1] & ~MANDATORY:
        return None
    names = arguments[UINT16.size : -1]
    key_at = 1 + names[0] if names else 0
    if len(names) < 2 or key_at >= len(names) or key_at + 1 + names[key_at] != len(names):
        return None
    try:
        exchange, key = names[1:key_at].decode(), names[key_at + 1 :].decode()
        reached = vhost.exchanges.publish(exchange, key)
    except (UnicodeDecodeError, FanlightError):
        return None
    if not exchange:
        queue = vhost.broker.queues.get(key)
        if queue is None:
            return None
        return PublishSite(exchange_topic(exchange, key), names, Route(b"", [], [queue.inside]), None)
    found = vhost.exchanges.find(exchange)
    if not reached.valid or found is None or found.delayed:
        return None
    if reached.topics:
        if exchange != TOPIC_EXCHANGE or reached.queues or reached.topics != (key,):
            return None
        topic, route = key.encode(), None
    else:
        topic = exchange_topic(exchange, key)
        queues = [vhost.broker.queues.get(name) for name in reached.queues]
        route = Route(b"", [], [queue.inside for queue in queues if queue is not None])
    try:
        check_publisher(topic)
    except FanlightError:
        return None
    return PublishSite(topic, names, route, reached)
