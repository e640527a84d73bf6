"""The queues behind exchanges that are bound to amq.topic, for messages of clients of other protocols (core/onward.py).

A message of an AMQP client is led there by `Exchanges.publish`, before it comes to the broker's topics.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.topics import SYNTAXES, reserved
from fanlight_broker.protocols.amqp.convert import write
from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges
from fanlight_broker.protocols.amqp.fields import TOPIC_EXCHANGE, key_of_topic, unpack_fields
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.properties import NO_PROPERTIES, BasicProperties
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.named_queue import NamedQueue


class OnwardQueues:
    """Those of one vhost."""

    def __init__(self, broker: Namespace, exchanges: Exchanges) -> None:
        self._broker = broker
        self._exchanges = exchanges

    def concerns(self, topic: bytes, syntax: int) -> bool:
        if reserved(topic, SYNTAXES[syntax]):
            return False
        key = key_of_topic(topic, syntax)
        return key is not None and self._exchanges.leads_onward(key)

    def queues(self, message: Message) -> Iterator[NamedQueue]:
        if reserved(message.topic, SYNTAXES[message.syntax]):
            return
        key = key_of_topic(message.topic, message.syntax)
        if key is None:
            return
        crossed = CrossedProperties(message)
        reached = self._exchanges.publish_onward(TOPIC_EXCHANGE, key, lambda: crossed.headers, crossed)
        for name in reached.queues:
            found = self._broker.queues.get(name)
            if found is not None:
                yield found.inside


class CrossedProperties:
    """The properties that AMQP consumers of a message see. They are made when an exchange looks at them."""

    def __init__(self, message: Message) -> None:
        self._message = message

    @cached_property
    def own(self) -> BasicProperties:
        message: Message | None = self._message
        assert message is not None
        if message.format is not FORMAT:
            content = message.format.read(message)
            message = write(FORMAT, content) if content is not None else None
        return unpack_fields(message.fields).properties if message is not None else NO_PROPERTIES

    @property
    def headers(self) -> Mapping[str, Any]:
        return self.own.headers or {}

    @property
    def message_id(self) -> str | None:
        return self.own.message_id

    @property
    def correlation_id(self) -> str | None:
        return self.own.correlation_id

    @property
    def timestamp(self) -> int | None:
        return self.own.timestamp
