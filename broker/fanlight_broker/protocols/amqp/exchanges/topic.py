"""Topic: a message reaches what is bound with a filter that matches its key (3.1.3.3, RabbitMQ's `#` anywhere).

Filters are in a `matchcore.FilterIndex`, in AMQP's spelling, with the numbers of destinations as ids: so an index
answers with each destination once, however many of its filters match. The index comes with the first binding.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import matchcore
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.arguments import Arguments
from fanlight_broker.protocols.amqp.exchanges.exchange import AmqpExchange, Destination, Search
from fanlight_broker.protocols.amqp.exchanges.ports import ExchangeLimits
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

WORDS_MAX: Final = 256  # of a key of 255 bytes: empty words count
KEY_BYTES_MAX: Final = 255


class TopicTable:
    """Filters. by_number: the destinations of the vhost."""

    __slots__ = ("_again", "_by_number", "_index", "_limits", "_searching")

    def __init__(self, by_number: Sequence[Destination | None], limits: ExchangeLimits) -> None:
        self._by_number = by_number
        self._limits = limits
        self._index: matchcore.FilterIndex | None = None
        self._again: dict[tuple[int, str], int] = {}  # bindings beside the first, which differ in arguments
        self._searching = 0  # bindings with several #

    @property
    def index(self) -> matchcore.FilterIndex | None:
        """Of the filters, as long as there are any."""
        return self._index

    @property
    def nbytes(self) -> int:
        """Of the index."""
        return self._index.nbytes if self._index is not None else 0

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        hashes = _hashes(key)
        if hashes > self._limits.hashes_max:
            raise AmqpError(
                ReplyCode.PRECONDITION_FAILED,
                f"a binding key with {hashes} words #; at most {self._limits.hashes_max} are allowed",
            )
        if hashes > 1 and self._searching >= self._limits.searching_max:
            raise AmqpError(
                ReplyCode.PRECONDITION_FAILED,
                f"an exchange has at most {self._limits.searching_max} binding keys with several words #",
            )

    def add(self, destination: Destination, key: str, arguments: Arguments) -> None:
        if self._index is None:
            self._index = matchcore.FilterIndex(max_words=WORDS_MAX, max_bytes=KEY_BYTES_MAX)
        if not self._index.insert(key, destination.number):
            place = (destination.number, key)
            self._again[place] = self._again.get(place, 0) + 1
        elif _hashes(key) > 1:
            self._searching += 1

    def remove(self, destination: Destination, key: str, arguments: Arguments) -> None:
        again = self._again.pop((destination.number, key), 0)
        if again > 1:
            self._again[destination.number, key] = again - 1
        if again or self._index is None:
            return
        self._index.remove(key, destination.number)
        self._searching -= _hashes(key) > 1
        if not len(self._index):
            self._index = None

    def find(self, search: Search) -> None:
        search.by_key = True
        if self._index is None:
            return
        for key in search.keys:
            for number in self._index.match(key):
                destination = self._by_number[number]
                if isinstance(destination, AmqpExchange):
                    search.exchanges.append(destination)
                elif destination is not None:
                    search.queues[destination.name] = None
                search.found = True


def _hashes(key: str) -> int:
    return key.split(".").count("#") if "#" in key else 0
