"""x-consistent-hash: each message reaches one destination, the same for the same key, in proportion to the weights.

A binding's key is its weight. As in RabbitMQ's plug-in the weights are buckets in a row, in the order of the bindings,
and jump consistent hashing (Lamping and Veach, 2014) chooses one: a binding more takes its share from all others, and
moves nothing between these. Which destination a key has differs from RabbitMQ's, whose hash is Erlang's own.
"""

from bisect import bisect_right
from collections.abc import Mapping
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Final

from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.arguments import Arguments, canonical, type_name
from fanlight_broker.protocols.amqp.exchanges.exchange import Destination, Search
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

HEADER: Final = "hash-header"
PROPERTY: Final = "hash-property"
PROPERTIES: Final = ("correlation_id", "message_id", "timestamp")
WEIGHT_MAX: Final = 1 << 31
MASK: Final = (1 << 64) - 1


class HashTable:
    """Weights of destinations, in the order in which they were bound. Raises AmqpError for its exchange's arguments."""

    __slots__ = ("_ends", "_header", "_order", "_property", "_weights")

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        for name in (HEADER, PROPERTY):
            if name in arguments and not isinstance(arguments[name], str):
                raise _refused(f"{name} is a {type_name(arguments[name])}, not a longstr")
        self._header: str | None = arguments.get(HEADER)
        self._property: str | None = arguments.get(PROPERTY)
        if self._header is not None and self._property is not None:
            raise _refused("hash-header and hash-property are mutually exclusive")
        if self._property is not None and self._property not in PROPERTIES:
            raise _refused(f"Unsupported property: {self._property}")
        self._weights: dict[tuple[Destination, str, Arguments], int] = {}
        self._ends: list[int] | None = None  # of the buckets of each; made when it is asked for
        self._order: list[Destination] = []

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        weight = _weight(key)
        if weight is None:
            shown = f'"{key}"' if key else ""
            raise _refused(f"The binding key must be an integer: <<{shown}>>")
        if weight < 1:
            raise _refused("The binding key must be greater than 0")
        if weight > WEIGHT_MAX:
            raise _refused(f"The binding key must not be greater than {WEIGHT_MAX}")

    def add(self, destination: Destination, key: str, arguments: Arguments) -> None:
        self._weights[destination, key, arguments] = _weight(key) or 1
        self._ends = None

    def remove(self, destination: Destination, key: str, arguments: Arguments) -> None:
        del self._weights[destination, key, arguments]
        self._ends = None

    def find(self, search: Search) -> None:
        if not self._weights:
            return
        if self._header is not None:
            search.by_message = True
            hashed = canonical(search.headers.get(self._header)).hex()
        elif self._property is not None:
            search.by_message = True
            hashed = str(getattr(search.properties, self._property, None))
        else:
            search.by_key = True
            hashed = search.keys[0]
        if self._ends is None:
            self._ends = list(accumulate(self._weights.values()))
            self._order = [destination for destination, _, _ in self._weights]
        search.reach(self._order[bisect_right(self._ends, jump(hash_of(hashed), self._ends[-1]))])


def hash_of(text: str) -> int:
    """64 bits that are the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def jump(hash: int, buckets: int) -> int:
    """The bucket of a hash, 0 to one less than their number: figure 1 of the paper."""
    bucket, after = -1, 0
    while after < buckets:
        bucket = after
        hash = (hash * 2862933555777941757 + 1) & MASK
        after = int((bucket + 1) * ((1 << 31) / ((hash >> 33) + 1)))
    return bucket


def _weight(key: str) -> int | None:
    """As Erlang reads an integer: digits with a sign at most."""
    digits = key[1:] if key[:1] in ("+", "-") else key
    return int(key) if digits.isascii() and digits.isdigit() else None


def _refused(text: str) -> AmqpError:
    return AmqpError(ReplyCode.PRECONDITION_FAILED, text)
