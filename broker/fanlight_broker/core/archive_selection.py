"""Archive selection: which topics are kept as they pass, and where they go (`wire.ArchiveTap`).

Asked once a topic, when its route is built. The filters are those of the settings and do not change while the broker
runs, so no route has to be forgotten for them.
"""

from collections.abc import Iterable, Sequence

import matchcore
from fanlight_broker.core.errors import InvalidFilter
from fanlight_broker.core.limits import TOPIC_WORDS_CEILING
from fanlight_broker.core.topics import SYNTAXES, namespace_prefix, reserved, sees_reserved
from fanlight_broker.wire.archive_tap import ArchiveTap


class TopicSelection:
    """Some topics, by filters: (text, syntax). Raises InvalidFilter."""

    def __init__(self, filters: Iterable[tuple[bytes, str]]) -> None:
        self.filters = list(filters)
        self._index = matchcore.FilterIndex(max_words=TOPIC_WORDS_CEILING)
        for number, (text, syntax) in enumerate(self.filters):
            try:
                self._index.insert(text, number, syntax=syntax)
            except matchcore.InvalidFilter as error:
                raise InvalidFilter(f"{text.decode(errors='replace')!r} is no {syntax} filter: {error}") from error

    def matching(self, topic: bytes, syntax: str) -> tuple[int, ...]:
        """Which of the filters match a valid topic, by the rules that subscriptions follow: their numbers."""
        found = self._index.match(topic, syntax=syntax)
        if found and reserved(topic, syntax):
            found = tuple(i for i in found if sees_reserved(*self.filters[i], topic, syntax))
        return found

    def wants(self, topic: bytes, syntax: str) -> bool:
        """Is a valid topic among them?"""
        return bool(self.matching(topic, syntax))


class ArchiveSelection(TopicSelection):
    """The topics that are kept, and the tap that takes their messages."""

    def __init__(self, tap: ArchiveTap, filters: Iterable[tuple[bytes, str]], namespace: str = "") -> None:
        super().__init__(filters)
        self._whole, self._before = tap, tuple(namespace_prefix(namespace, syntax) for syntax in SYNTAXES)
        self.tap = tap.within(self._before) if namespace else tap
        if not namespace:
            self._before = (b"",) * len(SYNTAXES)

    def within(self, namespace: str) -> "ArchiveSelection":
        """The same topics in a namespace, which stands before them in the archive. "": the root."""
        return ArchiveSelection(self._whole, self.filters, namespace) if namespace else self

    @property
    def whole(self) -> ArchiveTap:
        """The tap that takes everything, and counts it."""
        return self._whole

    def below(self, before: Sequence[bytes]) -> ArchiveTap:
        """A tap whose messages have this before their topics, by the numbers of syntaxes."""
        return self._whole.within(tuple(first + second for first, second in zip(self._before, before, strict=True)))
