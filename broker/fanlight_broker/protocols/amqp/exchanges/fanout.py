"""Fanout: a message reaches all that is bound, whatever its key (3.1.3.2)."""

from collections.abc import Mapping
from typing import Any

from fanlight_broker.protocols.amqp.exchanges.arguments import Arguments
from fanlight_broker.protocols.amqp.exchanges.bag import Bag
from fanlight_broker.protocols.amqp.exchanges.exchange import Destination, Search


class FanoutTable:
    """Destinations."""

    __slots__ = ("_bag",)

    def __init__(self) -> None:
        self._bag = Bag()

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        """Any key, any arguments."""

    def add(self, destination: Destination, key: str, arguments: Arguments) -> None:
        self._bag.add(destination)

    def remove(self, destination: Destination, key: str, arguments: Arguments) -> None:
        self._bag.remove(destination)

    def find(self, search: Search) -> None:
        if self._bag.queues or self._bag.exchanges:
            self._bag.reached_by(search)
