"""The topics with most messages, of all namespaces of a broker."""

from collections.abc import Iterable, Iterator
from heapq import nlargest

from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.rates import Counts


def hottest(homes: Iterable[Namespace], limit: int, before: Counts) -> list[tuple[Namespace, bytes, int, int]]:
    """Most first: the namespace, the key of the route, messages, and those since an earlier reading.

    before: what `counts_of_all` has returned; empty: by the messages in all
    """
    found = (
        (home, key, messages, messages - before.get(known_as(home, key), 0))
        for home, key, messages in _all(homes)
    )
    return nlargest(limit, found, key=lambda each: (each[3], each[2]))


def counts_of_all(homes: Iterable[Namespace]) -> Counts:
    """Messages by route, of all of them: a reading."""
    return {known_as(home, key): messages for home, key, messages in _all(homes)}


def _all(homes: Iterable[Namespace]) -> Iterator[tuple[Namespace, bytes, int]]:
    for home in homes:
        for key, messages in home.router.messages_by_route().items():
            yield home, key, messages


def known_as(home: Namespace, key: bytes) -> int:
    """A topic of a namespace in a reading."""
    return hash((home.name, key))
