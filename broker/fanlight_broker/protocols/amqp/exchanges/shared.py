"""amq.topic as the broker's own topics: bindings of queues are the owner's subscriptions, and are in no index here.

What is bound to it in place of a queue, an exchange, is in an index as for other topic exchanges.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fanlight_broker.protocols.amqp.exchanges.arguments import Arguments
from fanlight_broker.protocols.amqp.exchanges.exchange import AmqpExchange, Destination
from fanlight_broker.protocols.amqp.exchanges.ports import ExchangeLimits, TopicSpace
from fanlight_broker.protocols.amqp.exchanges.topic import TopicTable


class SharedTable(TopicTable):
    """bound: of its exchange; `add` is called before a binding is in it, `remove` after it has left."""

    __slots__ = ("_bound", "_topics", "_watched", "_with_arguments")

    def __init__(
        self, by_number: Sequence[Destination | None], limits: ExchangeLimits, topics: TopicSpace,
        bound: Mapping[Destination, tuple[Any, ...] | set[Any]],
    ) -> None:
        super().__init__(by_number, limits)
        self._topics = topics
        self._bound = bound
        self._watched: dict[str, int] = {}  # bindings of exchanges by key
        self._with_arguments: dict[tuple[Destination, str], int] = {}

    def add(self, destination: Destination, key: str, arguments: Arguments) -> None:
        if isinstance(destination, AmqpExchange):
            if key not in self._watched:
                self._topics.watch(key)
            self._watched[key] = self._watched.get(key, 0) + 1
            super().add(destination, key, arguments)
            return
        if not self._has(destination, key):
            self._topics.bind(destination.name, key)
        if arguments:
            self._with_arguments[destination, key] = self._with_arguments.get((destination, key), 0) + 1

    def remove(self, destination: Destination, key: str, arguments: Arguments) -> None:
        if isinstance(destination, AmqpExchange):
            super().remove(destination, key, arguments)
            self._watched[key] -= 1
            if not self._watched[key]:
                del self._watched[key]
                self._topics.unwatch(key)
            return
        if arguments:
            left = self._with_arguments.pop((destination, key)) - 1
            if left:
                self._with_arguments[destination, key] = left
        if not self._has(destination, key):
            self._topics.unbind(destination.name, key)

    def _has(self, destination: Destination, key: str) -> bool:
        """Is the queue bound with the key, whatever the arguments?"""
        return key in self._bound.get(destination, ()) or (destination, key) in self._with_arguments
