"""Delayed messages of AMQP: an exchange of the type x-delayed-message holds a message for the milliseconds of its
header `x-delay`, and routes it then. The core has it until that time (core/delayed.py), and asks where it goes.

A consumer finds the header with its sign turned, so a message that it publishes again is not delayed. BCC keys are not
kept, and a message that is delayed is never returned.
"""

from collections.abc import Mapping
from typing import Any, Final

from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.exchange import Destinations
from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges
from fanlight_broker.protocols.amqp.field_table import encode_value, joined_entries, raw_entries
from fanlight_broker.protocols.amqp.fields import SYNTAX, TOPIC_EXCHANGE, texts, unpack_fields
from fanlight_broker.protocols.amqp.permitted_keys import permitted_when_due
from fanlight_broker.protocols.amqp.properties import joined_properties, raw_properties
from fanlight_broker.protocols.amqp.routing import route_of
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.route import Route

DELAY: Final = "x-delay"


def delay_of(exchanges: Exchanges, exchange: str, headers: Mapping[str, Any]) -> int:
    """Milliseconds for which a message to an exchange is held; 0: it is routed at once."""
    found = exchanges.find(exchange)
    return found.delay(headers) if found is not None else 0


def turned(encoded: bytes, delay: int) -> bytes:
    """Flags and properties with the sign of x-delay turned."""
    properties = raw_properties(encoded)
    entries = raw_entries(properties["headers"])
    entries[DELAY] = encode_value(-delay)
    properties["headers"] = joined_entries(entries)
    return joined_properties(properties)


class DelayedRoutes:
    """Where messages go whose time has come."""

    def __init__(self, broker: Namespace, exchanges: Exchanges) -> None:
        self._broker = broker
        self._exchanges = exchanges

    def route(self, message: Message) -> Route | None:
        """None: to the subscriptions of its topic."""
        fields = unpack_fields(message.fields)
        exchange, key = fields.exchange[1:].decode(), fields.routing_key[1:].decode()
        if exchange == TOPIC_EXCHANGE:
            return None
        properties = fields.properties
        headers = properties.headers or {}
        try:
            reached = self._exchanges.publish(
                exchange, key, headers, properties, tuple(texts(headers.get("CC"))), by_broker=True
            )
        except AmqpError:  # the exchange has gone
            reached = Destinations(())
        reached = permitted_when_due(self._broker.enforcement, reached, message)
        found = route_of(reached, self._broker)
        if found is not None:
            return found
        return self._broker.router.route(reached.topics[0].encode(), SYNTAXES[SYNTAX])
