"""Direct: a message reaches what is bound with its key (3.1.3.1). A look-up in a dict."""

from collections.abc import Mapping
from typing import Any

from fanlight_broker.protocols.amqp.exchanges.arguments import Arguments
from fanlight_broker.protocols.amqp.exchanges.bag import Held, pour, with_destination, without_destination
from fanlight_broker.protocols.amqp.exchanges.exchange import Destination, Search


class DirectTable:
    """Destinations by key."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[str, Held] = {}

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        """Any key, any arguments."""

    def add(self, destination: Destination, key: str, arguments: Arguments) -> None:
        self._keys[key] = with_destination(self._keys.get(key), destination)

    def remove(self, destination: Destination, key: str, arguments: Arguments) -> None:
        left = without_destination(self._keys[key], destination)
        if left is None:
            del self._keys[key]
        else:
            self._keys[key] = left

    def find(self, search: Search) -> None:
        search.by_key = True
        for key in search.keys:
            pour(self._keys.get(key), search)
