"""Payload formats: in which encoding bodies are that come without a content type, by topic.

    sensors.#=json, mqtt:factory/+/state=msgpack        the first filter that matches decides

Asked once a topic, when its route is built. The filters are those of the settings and do not change while the broker
runs, so no route has to be forgotten for them.
"""

from collections.abc import Iterator
from typing import Final

from fanlight_broker.core.archive_selection import TopicSelection
from fanlight_broker.core.errors import InvalidFilter
from fanlight_broker.core.topics import named_filter
from matchcore.body_reader import BODY_FORMATS

UNKNOWN: Final = 0


class PayloadFormats:
    """Some filters, each with the format of the bodies below it. Raises InvalidFilter."""

    def __init__(self, text: str | None = None) -> None:
        chosen = list(_chosen(text or ""))
        self._formats = [format for _, format in chosen]
        self._topics = TopicSelection(named_filter(filter) for filter, _ in chosen)

    def of(self, topic: bytes, syntax: str) -> int:
        """The number of the format of a valid topic's bodies: one of BODY_FORMATS, or 0."""
        found = self._topics.matching(topic, syntax) if self._formats else ()
        return self._formats[min(found)] if found else UNKNOWN


def _chosen(text: str) -> Iterator[tuple[str, int]]:
    for part in text.split(","):
        filter, equals, name = (piece.strip() for piece in part.rpartition("="))
        if not equals and not name:
            continue
        if name.lower() not in BODY_FORMATS or not filter:
            known = " or ".join(f"filter={format}" for format in BODY_FORMATS)
            raise InvalidFilter(f"{part.strip()!r}: write {known}")
        yield filter, BODY_FORMATS[name.lower()]
