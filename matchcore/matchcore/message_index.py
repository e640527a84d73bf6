"""An index of messages: a FrozenRecordIndex whose records are the messages of one segment of an archive.

    $topic[amqp], $topic[mqtt]     the topics in either syntax, with the rows of each
    fields                         their numbers
    notes                          which segment it is of; "times": (end of rows, latest time in them), ...;
                                   "body_formats": how bodies without a content type were read

`MessageLookup` says which rows may match a filter and a selector: never less than what matches, so that what it finds
has to be asked again, message by message. `IndexedSegments` asks the indexes of segments: one that is not there, is
damaged, is of another version or of another segment says nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, Final, Generic, TypeVar

from matchcore.errors import InvalidFrozenIndex
from matchcore.frozen_records import FrozenRecordIndex
from matchcore.grammar import parse_filter
from matchcore.record_columns import Interval
from matchcore.selector import Attribute, Selector, Source

__all__ = ["TOPIC", "IndexedSegments", "MessageLookup", "prefixes_of"]

SEPARATORS: Final = {"amqp": b".", "mqtt": b"/"}
TOPIC: Final = {syntax: Attribute(Source.MESSAGE, ("topic", syntax)) for syntax in SEPARATORS}
DENSE: Final = 2  # if every second row may match, the segment is read as a whole

Segment = TypeVar("Segment")


def prefixes_of(filter: str | bytes, syntax: str) -> dict[str, bytes]:
    """By syntax the octets that each topic begins with that a filter matches. Raises InvalidFilter."""
    leading = takewhile(lambda token: isinstance(token, bytes), parse_filter(filter, syntax).tokens)
    words = [token for token in leading if isinstance(token, bytes)]
    # Whatever the syntax of a topic, its words are the same.
    return {one: separator.join(words) for one, separator in SEPARATORS.items()}


class MessageLookup:
    """What is looked for.

    wants         whether a topic in a syntax is wanted; None: all are
    prefixes      by syntax what all wanted topics begin with
    selector      that is to be true
    body_formats  as the index must have it for the numbers in it to be asked
    """

    def __init__(
        self, wants: Callable[[bytes, str], bool] | None = None, prefixes: Mapping[str, bytes] = {},
        selector: Selector | None = None, body_formats: str = "",
    ) -> None:
        self._wants, self._prefixes = wants, prefixes
        self._selector, self._body_formats = selector, body_formats

    def rows_of(self, index: FrozenRecordIndex) -> Sequence[int] | None:
        """Rows, ascending, among which all are that match; None: any row may. Raises InvalidFrozenIndex."""
        among: dict[Attribute, Sequence[Interval]] = {}
        for syntax, attribute in TOPIC.items() if self._wants is not None else ():
            if (words := index.texts(attribute)) is not None:
                wants = partial(self._wants_topic, syntax)
                among[attribute] = words.matching(wants, self._prefixes.get(syntax, b""))
        selector = self._selector if index.notes.get("body_formats") == self._body_formats else None
        if selector is None and all(self._is_all(index, *each) for each in among.items()):
            return None
        ids = index.candidates(selector, among=among or None).ids
        return None if len(ids) * DENSE >= index.records else ids.tolist()

    @staticmethod
    def _is_all(index: FrozenRecordIndex, attribute: Attribute, found: Sequence[Interval]) -> bool:
        return sum(last - first + 1 for first, last in found) == len(index.texts(attribute) or ())

    def _wants_topic(self, syntax: str, topic: bytes) -> bool:
        assert self._wants is not None
        return self._wants(topic, syntax)


class IndexedSegments(Generic[Segment]):
    """Which rows of segments are to be read.

    read    the index of a segment, and the notes that it has if it is its own; None: there is none. OSError is reported
    report  called with a segment whose index was not asked, and the reason
    """

    def __init__(
        self, read: Callable[[Segment], tuple[bytes, Mapping[str, Any]] | None], lookup: MessageLookup,
        report: Callable[[Segment, object], None],
    ) -> None:
        self._read, self._lookup, self._report = read, lookup, report

    def select(self, segment: Segment) -> Sequence[int] | None:
        """Rows of a segment, ascending, among which all are that match; None: all of it."""
        index = self._opened(segment)
        try:
            return None if index is None else self._lookup.rows_of(index)
        except InvalidFrozenIndex as error:
            self._report(segment, error)
            return None

    def first_since(self, segment: Segment, time: int) -> int:
        """The row of a segment before which no message is as late as a time."""
        index = self._opened(segment)
        first = 0
        for end, latest in index.notes["times"] if index is not None else ():
            if latest >= time:
                break
            first = end
        return first

    def _opened(self, segment: Segment) -> FrozenRecordIndex | None:
        try:
            found = self._read(segment)
            if found is None:
                return None
            data, wanted = found
            index = FrozenRecordIndex(data)
        except (OSError, InvalidFrozenIndex) as error:
            self._report(segment, error)
            return None
        if {name: index.notes.get(name) for name in wanted} != wanted:
            self._report(segment, "it is of another segment")
            return None
        return index
