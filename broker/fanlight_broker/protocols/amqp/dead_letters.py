"""Dead letters: what a queue with `x-dead-letter-exchange` has discarded is published to that exchange, of any type.

The core hands a dead message to `DeadLetters`, which is the owner of these letters (core/burial.py). It goes with its
own routing key and its CC keys, or with the queue's `x-dead-letter-routing-key`, and CC is removed then. Headers say
what happened: deaths.py. A queue that it was in already does not get it, if no consumer has rejected it since: so a
cycle of queues in which it expires ends. An exchange that is not there drops it.

In the core's options the exchange is written `$exchange.NAME`, and with a key `$exchange.NAME.KEY`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker.core.burial import DeadMessage
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.publication import Publication
from fanlight_broker.protocols.amqp.deaths import DEATHS_MAX, REASONS, REJECTED, Death, buried, deaths_of, is_cycle
from fanlight_broker.protocols.amqp.delays import delay_of, turned
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.exchange import Destinations
from fanlight_broker.protocols.amqp.fields import (
    SYNTAX,
    exchange_prefix,
    exchange_topic,
    name_and_key,
    pack_fields,
    texts,
    topic_of,
    unpack_fields,
)
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.permitted_keys import check_more_keys
from fanlight_broker.protocols.amqp.routing import route_of
from fanlight_broker.wire.message import Message

if TYPE_CHECKING:
    from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges

OWNER: Final = "exchange"  # of the letters, in the core's options


def dead_letter_option(known: Mapping[str, Any]) -> tuple[bytes, str] | None:
    """The core's option, of the arguments of a queue."""
    exchange, key = known.get("x-dead-letter-exchange"), known.get("x-dead-letter-routing-key")
    if exchange is None:
        return None
    return (exchange_prefix(exchange)[:-1] if key is None else exchange_topic(exchange, key)), OWNER


class DeadLetters:
    """Those of one vhost."""

    def __init__(self, broker: Namespace, exchanges: "Exchanges") -> None:
        self._broker = broker
        self._exchanges = exchanges

    def make(self, dead: DeadMessage) -> Publication | None:
        """The letter, and who gets it; None: nobody, or it cannot be written, or the message has died too often, or
        who has declared the queue may not publish it with all of its keys.
        """
        option = dead.queue.options.dead_letter
        message = as_amqp(dead.message)
        if option is None or message is None:
            return None
        exchange, override = name_and_key(option[0])
        fields = unpack_fields(message.fields)
        properties = fields.properties
        headers = properties.headers or {}
        key = fields.routing_key[1:].decode()
        copies = [each for each in texts(headers.get("CC")) if override is None]
        reason = REASONS[dead.why]
        before = deaths_of(headers)
        if len(before) >= DEATHS_MAX:
            return None
        death = Death(
            dead.queue.name, reason, fields.exchange[1:].decode(), [key, *texts(headers.get("CC"))], int(dead.wall),
            properties.expiration,
        )
        own_key = key if override is None else override
        try:
            encoded = buried(fields.encoded, before, death, without_copies=override is not None)
            delay = delay_of(self._exchanges, exchange, headers)
            if delay:
                encoded = turned(encoded, delay)
            reached = self._exchanges.publish(exchange, own_key, headers, properties, tuple(copies), by_broker=True)
        except (AmqpError, ValueError):
            return None  # there is no such exchange, or its headers are larger than tables can be
        if reason != REJECTED:
            deaths = [{"queue": death.queue, "reason": reason}, *before]
            queues = tuple(each for each in reached.queues if not is_cycle(each, deaths))
            reached = Destinations(queues, reached.topics)
        letter = Message(
            FORMAT, topic_of(exchange, own_key, reached), SYNTAX, message.payload,
            fields=pack_fields(exchange, own_key, encoded), qos=dead.message.qos, format_data=message.format_data,
        )
        if copies or reached.topics:
            keys = (own_key, *copies)
            try:
                check_more_keys(self._broker.enforcement, dead.queue.subscriber, exchange, keys, reached, letter)
            except FanlightError:  # counted and logged as a denial
                return None
        return Publication(
            letter, dead.queue.subscriber, ruled=False, route=route_of(reached, self._broker),
            due=self._broker.ledger.now + delay / 1_000 if delay else None,
        )


def as_amqp(message: Message) -> Message | None:
    """A message in AMQP's form; None if it has none there."""
    if message.format.family == FORMAT.family:
        return message
    content = message.format.read(message)
    return FORMAT.write(content) if content is not None else None
