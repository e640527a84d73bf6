"""The queues behind exchanges that are bound to amq.topic, for messages of clients of other protocols (core/onward.py).

A message of an AMQP client is led there by `Exchanges.publish`, before it comes to the broker's topics.
"""

from collections.abc import Mapping
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
from fanlight_broker.wire.route import QueuesBehind


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

    def queues(self, message: Message) -> QueuesBehind:
        if reserved(message.topic, SYNTAXES[message.syntax]):
            return QueuesBehind([])
        key = key_of_topic(message.topic, message.syntax)
        if key is None:
            return QueuesBehind([])
        crossed = CrossedProperties(message)
        reached = self._exchanges.publish_onward(TOPIC_EXCHANGE, key, lambda: crossed.headers, crossed)
        if isinstance(reached.prepared, QueuesBehind):
            return reached.prepared
        found = (self._broker.queues.get(name) for name in reached.queues)
        made = QueuesBehind([each.inside for each in found if each is not None])
        if reached.valid:  # the exchanges keep it, and end it with the first change of a binding
            made.valid, reached.prepared = True, made
        return made


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
