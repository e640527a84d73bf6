"""Recording: which topics are kept as they pass, and where they go (`wire.Tap`).

Asked once a topic, when its route is built. The filters are those of the settings and do not change while the broker
runs, so no route has to be forgotten for them.
"""

from collections.abc import Iterable

import matchcore
from broker.core.errors import InvalidFilter
from broker.core.limits import TOPIC_WORDS_CEILING
from broker.core.topics import reserved, sees_reserved
from broker.wire.tap import Tap


class Recording:
    """filters: (text, syntax) of what is kept. Raises InvalidFilter."""

    def __init__(self, tap: Tap, filters: Iterable[tuple[str, str]]) -> None:
        self.tap = tap
        self.filters = [(text.encode(), syntax) for text, syntax in filters]
        self._index = matchcore.FilterIndex(max_words=TOPIC_WORDS_CEILING)
        for number, (text, syntax) in enumerate(self.filters):
            try:
                self._index.insert(text, number, syntax=syntax)
            except matchcore.InvalidFilter as error:
                raise InvalidFilter(f"{text.decode()!r} is no {syntax} filter: {error}") from error

    def wants(self, topic: bytes, syntax: str) -> bool:
        """Is a valid topic kept?"""
        found = self._index.match(topic, syntax=syntax)
        if found and reserved(topic):
            found = tuple(i for i in found if sees_reserved(*self.filters[i], topic, syntax))
        return bool(found)
