"""The matcher in plain Python: the oracle of the property tests, and the definition of the rules.

Written to be read and to be right, and sharing nothing with the compiled code: it has its own
grammar, matches by recursion on lists of words, and an index is a dict that is scanned. The rules:

    AMQP, native  words between dots   `*` one word      `#` zero or more words, anywhere
    MQTT          levels between `/`   `+` one level     `#` zero or more levels, last only

The empty AMQP key has no words; an MQTT topic has at least one. A wildcard of MQTT does not match a
first word that begins with `$`, however the topic was written; one of AMQP does.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from matchcore.errors import InvalidFilter, InvalidTopic, TopicError
from matchcore.kleene import Fields, holds, key_of, topic_fields, with_topic
from matchcore.normal_form import Leaf, Normal, normal_form
from matchcore.patterns import Where, selector_of
from matchcore.selector import And, AtLeast, Attribute, Or, Selector

__all__ = [
    "ReferenceFilterIndex", "ReferenceNameIndex", "ReferenceRuleIndex", "covers", "intersects", "matches",
]  # fmt: skip

Text = str | bytes

SEPARATORS = {"amqp": b".", "mqtt": b"/"}
ONE = {"amqp": b"*", "mqtt": b"+"}
MANY = b"#"


def matches(
    filter: Text, filter_syntax: str, topic: Text, topic_syntax: str, max_words: int = 128, max_bytes: int = 65_535
) -> bool:
    """Whether `filter` matches `topic`; raises InvalidFilter or InvalidTopic."""
    wanted = filter_words(filter, filter_syntax, max_words, max_bytes)
    words = topic_words(topic, topic_syntax, max_words, max_bytes)
    wild_first = bool(wanted) and wanted[0] in (ONE[filter_syntax], MANY)
    if filter_syntax == "mqtt" and wild_first and words and words[0].startswith(b"$"):
        return False
    return _matches(wanted, words, ONE[filter_syntax])


def _matches(wanted: list[bytes], words: list[bytes], one: bytes) -> bool:
    @cache  # each pair of rests once: without it, several `#` take exponential time
    def rest_matches(i: int, j: int) -> bool:
        if i == len(wanted):
            return j == len(words)
        if wanted[i] == MANY:
            return rest_matches(i + 1, j) or (j < len(words) and rest_matches(i, j + 1))
        if j == len(words):
            return False
        return wanted[i] in (one, words[j]) and rest_matches(i + 1, j + 1)

    return rest_matches(0, 0)


def covers(a: Text, a_syntax: str, b: Text, b_syntax: str) -> bool:
    """Whether `a` matches every topic that `b` matches, of those that can be written in either syntax."""
    return not any(by_b and not by_a for by_a, by_b in _matched(a, a_syntax, b, b_syntax))


def intersects(a: Text, a_syntax: str, b: Text, b_syntax: str) -> bool:
    """Whether both match some topic, of those that can be written in either syntax."""
    return any(by_a and by_b for by_a, by_b in _matched(a, a_syntax, b, b_syntax))


def _matched(a: Text, a_syntax: str, b: Text, b_syntax: str) -> Iterator[tuple[bool, bool]]:
    """Whether `a` matches and whether `b` does, for topics that `b` may match, each case once.

    All topics at once: word by word, over all words that either filter names and two that neither does, with the
    tokens that each may have come to. In exponential time at worst.
    """
    named = {*filter_words(a, a_syntax), *filter_words(b, b_syntax)}
    unnamed = b"x" * (max(map(len, named), default=0) + 1)
    words = [*named, unnamed, b"$" + unnamed]
    writable = {
        "amqp": [word for word in words if b"." not in word],
        "mqtt": [word for word in words if not any(mark in word for mark in (b"/", b"+", b"#", b"\0"))],
    }
    for syntax in writable:
        yield from _walked(_Walk(a, a_syntax), _Walk(b, b_syntax), syntax, writable[syntax])


def _walked(a: "_Walk", b: "_Walk", topic_syntax: str, words: list[bytes]) -> Iterator[tuple[bool, bool]]:
    met = {("none", a.places, b.places)}
    open_ = [("none", a, b)]
    while open_:
        so_far, mine, theirs = open_.pop()
        # No text is the empty word alone, and in MQTT none has no word.
        if so_far == "some" or (so_far == "none" and topic_syntax == "amqp"):
            yield mine.at_end, theirs.at_end
        for word in words:
            then = "empty" if so_far == "none" and not word else "some"
            next_mine, next_theirs = mine.after(word, so_far == "none"), theirs.after(word, so_far == "none")
            state = (then, next_mine.places, next_theirs.places)
            if next_theirs.places and state not in met:
                met.add(state)
                open_.append((then, next_mine, next_theirs))


class _Walk:
    """The tokens of a filter that may be next, after some words of a topic."""

    def __init__(self, filter: Text, syntax: str, places: frozenset[int] | None = None) -> None:
        self._filter, self._syntax = filter, syntax
        self._wanted = filter_words(filter, syntax)
        self.places = self._without_more_words({0}) if places is None else places

    @property
    def at_end(self) -> bool:
        return len(self._wanted) in self.places

    def _without_more_words(self, places: set[int]) -> frozenset[int]:
        reached = set(places)
        for i, token in enumerate(self._wanted):
            if i in reached and token == MANY:
                reached.add(i + 1)
        return frozenset(reached)

    def after(self, word: bytes, is_first: bool) -> "_Walk":
        places = set[int]()
        wild = {ONE[self._syntax], MANY}
        if not (is_first and word.startswith(b"$") and self._syntax == "mqtt" and {*self._wanted[:1]} & wild):
            for i in self.places - {len(self._wanted)}:
                if self._wanted[i] == MANY:
                    places.add(i)
                elif self._wanted[i] in (ONE[self._syntax], word):
                    places.add(i + 1)
        return _Walk(self._filter, self._syntax, self._without_more_words(places))


def topic_words(topic: Text, syntax: str, max_words: int = 128, max_bytes: int = 65_535) -> list[bytes]:
    """The words of a topic name; raises InvalidTopic."""
    text = _encoded(topic)
    words = _split(InvalidTopic, text, syntax, max_words, max_bytes)
    if syntax == "mqtt":
        for forbidden in (b"+", b"#", b"\0"):
            if forbidden in text:
                at = text.index(forbidden)
                raise InvalidTopic(text, syntax, at, f"{forbidden!r} in a topic name", "leave it out")
    return words


def filter_words(filter: Text, syntax: str, max_words: int = 128, max_bytes: int = 65_535) -> list[bytes]:
    """The words of a topic filter, wildcards among them; raises InvalidFilter."""
    text = _encoded(filter)
    words = _split(InvalidFilter, text, syntax, max_words, max_bytes)
    if syntax == "mqtt":
        start = 0
        for i, word in enumerate(words):
            for wildcard in (b"+", b"#"):
                if wildcard in word and word != wildcard:
                    at = start + word.index(wildcard)
                    raise InvalidFilter(text, syntax, at, f"{wildcard!r} in a level", "give it a level")
            if word == MANY and i != len(words) - 1:
                raise InvalidFilter(text, syntax, start, "'#' before the end", "put it last")
            if b"\0" in word:
                at = start + word.index(b"\0")
                raise InvalidFilter(text, syntax, at, "NUL", "leave it out")
            start += len(word) + 1
    return words


def is_exact(filter: Text, syntax: str) -> bool:
    """Whether the filter has no wildcard, and so matches one sequence of words."""
    return not {ONE[syntax], MANY} & set(filter_words(filter, syntax))


def _encoded(text: Text) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _split(error: type[TopicError], text: bytes, syntax: str, max_words: int, max_bytes: int) -> list[bytes]:
    if len(text) > max_bytes:
        raise error(text, syntax, max_bytes, f"over {max_bytes} bytes", "shorten it")
    if not text:
        if syntax == "mqtt":
            raise error(text, syntax, 0, "empty", "give it a level")
        return []
    words = text.split(SEPARATORS[syntax])
    if len(words) > max_words:
        at = sum(len(word) + 1 for word in words[:max_words])
        raise error(text, syntax, at, f"over {max_words} words", "use fewer")
    return words


class _ReferenceIndex:
    """(text, syntax) -> the text as first given, and its ids."""

    def __init__(self, max_words: int = 128, max_bytes: int = 65_535) -> None:
        self._limits = (max_words, max_bytes)
        self._held: dict[tuple[bytes, str], tuple[Text, set[int]]] = {}

    def _insert(self, text: Text, id: int, syntax: str) -> bool:
        if not 0 <= id < 2**32:
            raise ValueError(f"id {id} is not within 0..2**32-1")
        _, ids = self._held.setdefault((_encoded(text), syntax), (text, set()))
        if id in ids:
            return False
        ids.add(id)
        return True

    def _remove(self, text: Text, id: int, syntax: str) -> bool:
        if not 0 <= id < 2**32:
            raise ValueError(f"id {id} is not within 0..2**32-1")
        key = (_encoded(text), syntax)
        if key not in self._held or id not in self._held[key][1]:
            return False
        self._held[key][1].remove(id)
        if not self._held[key][1]:
            del self._held[key]
        return True

    def __len__(self) -> int:
        return sum(len(ids) for _, ids in self._held.values())

    def _entries(self) -> Iterator[tuple[Text, str, int]]:
        for (_, syntax), (text, ids) in self._held.items():
            for id in sorted(ids):
                yield text, syntax, id


class ReferenceFilterIndex(_ReferenceIndex):
    """`matchcore.FilterIndex`, by scanning."""

    def __init__(self, max_words: int = 128, max_bytes: int = 65_535) -> None:
        super().__init__(max_words, max_bytes)
        self._wanted: dict[tuple[bytes, str, int], Selector] = {}  # of the subscriptions that have a selector

    def insert(self, filter: Text, id: int, *, where: Where | None = None, syntax: str = "amqp") -> bool:
        """Whether that changed the index. An id has one selector under a filter, or none: the later replaces it."""
        filter_words(filter, syntax, *self._limits)
        selector = None if where is None else selector_of(where)
        key = (_encoded(filter), syntax, id)
        changed = self._insert(filter, id, syntax) or self._wanted.get(key) != selector
        self._wanted.pop(key, None)
        if selector is not None:
            self._wanted[key] = selector
        return changed

    def remove(self, filter: Text, id: int, *, syntax: str = "amqp") -> bool:
        filter_words(filter, syntax, *self._limits)
        self._wanted.pop((_encoded(filter), syntax, id), None)
        return self._remove(filter, id, syntax)

    def match(self, topic: Text, *, fields: Fields | None = None, syntax: str = "amqp") -> tuple[int, ...]:
        found = set[int]()
        values = with_topic(fields or {}, topic_words(topic, syntax, *self._limits))
        for id, selector in self._matching(topic, syntax):
            if selector is None or holds(selector, values) is True:
                found.add(id)
        return tuple(sorted(found))

    def match_any(self, topic: Text, *, fields: Fields | None = None, syntax: str = "amqp") -> bool:
        return bool(self.match(topic, fields=fields, syntax=syntax))

    def match_many(self, topics: Iterable[Text], *, syntax: str = "amqp") -> tuple[Any, Any]:
        """Lists instead of arrays: (offsets, ids)."""
        offsets, ids = [0], list[int]()
        for topic in topics:
            ids += self.match(topic, syntax=syntax)
            offsets.append(len(ids))
        return offsets, ids

    def asked(self, topic: Text, *, syntax: str = "amqp") -> tuple[str | Attribute, ...]:
        """The keys of `fields` that a selector reads, of the filters that match; not those that the topic gives."""
        given = topic_fields([b""] * 128)
        selectors = [selector for _, selector in self._matching(topic, syntax) if selector is not None]
        keys = {key for selector in selectors for key in _read(normal_form(selector))} - given.keys()
        return tuple(sorted(keys, key=str))

    def hits(self, fields: Fields) -> dict[int, int]:
        """Of each id how many criteria of its selector are true, the most if it has several; without those of none.

        The criteria are the parts of the outermost AND, OR or AT LEAST: all of them is AND, one or more is OR
        ("High-speed message matching", iMatix, 2005: field matching).
        """
        hits: dict[int, int] = {}
        for (_, _, id), selector in self._wanted.items():
            parts = selector.parts if isinstance(selector, And | Or | AtLeast) else (selector,)
            if count := sum(holds(part, fields) is True for part in parts):
                hits[id] = max(count, hits.get(id, 0))
        return hits

    def filters(self) -> Iterator[tuple[Text, str, int]]:
        return self._entries()

    def _matching(self, topic: Text, syntax: str) -> Iterator[tuple[int, Selector | None]]:
        """The ids of the filters that match, each with its selector."""
        topic_words(topic, syntax, *self._limits)
        for (filter, filter_syntax), (_, ids) in self._held.items():
            if matches(filter, filter_syntax, topic, syntax, *self._limits):
                for id in ids:
                    yield id, self._wanted.get((filter, filter_syntax, id))


def _read(normal: Normal) -> set[str | Attribute]:
    """The keys of what is looked at: nothing for what is always true, or never."""
    if isinstance(normal, Leaf):
        return {key_of(normal.test.attribute)}
    return {key for part in normal.parts for key in _read(part)}


class ReferenceNameIndex(_ReferenceIndex):
    """`matchcore.NameIndex`, by scanning."""

    def insert(self, name: Text, id: int, *, syntax: str = "amqp") -> bool:
        topic_words(name, syntax, *self._limits)
        return self._insert(name, id, syntax)

    def remove(self, name: Text, id: int, *, syntax: str = "amqp") -> bool:
        topic_words(name, syntax, *self._limits)
        return self._remove(name, id, syntax)

    def match(self, filter: Text, *, syntax: str = "amqp") -> tuple[int, ...]:
        filter_words(filter, syntax, *self._limits)
        found: set[int] = set()
        for (name, name_syntax), (_, ids) in self._held.items():
            if matches(filter, syntax, name, name_syntax, *self._limits):
                found |= ids
        return tuple(sorted(found))

    def names(self) -> Iterator[tuple[Text, str, int]]:
        return self._entries()


class ReferenceRuleIndex:
    """`matchcore.RuleIndex`, by scanning: which rules match a fact, the smallest salience first."""

    def __init__(self) -> None:
        self._rules: dict[int, tuple[int | float, int, Selector, Text, str]] = {}
        self._next = 0

    def insert(
        self, where: Where, *, salience: int | float = 0, topic: Text | None = None, syntax: str = "amqp"
    ) -> int:
        """The number of the rule: rules are counted from 0."""
        filter, syntax = (MANY, "amqp") if topic is None else (topic, syntax)
        number = self._next
        self._rules[number] = (salience, number, selector_of(where), filter, syntax)
        self._next += 1
        return number

    def remove(self, number: int) -> bool:
        return self._rules.pop(number, None) is not None

    def __len__(self) -> int:
        return len(self._rules)

    def matches(self, fact: Fields, *, topic: Text = "", syntax: str = "amqp") -> list[int]:
        values = with_topic(fact, topic_words(topic, syntax))
        return [
            number
            for _, number, selector, filter, filter_syntax in sorted(self._rules.values(), key=lambda rule: rule[:2])
            if matches(filter, filter_syntax, topic, syntax) and holds(selector, values) is True
        ]
