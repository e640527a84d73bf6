"""What a Python user would reach for instead: paho-mqtt's MQTTMatcher, hyperscan, pyroaring, a loop of `re`.

Each as its documentation would have one use it, with as little Python around it as we could manage. The first
three are of the dependency group `bench`; a contender whose library is not installed is not offered.
"""

import importlib
import importlib.util
import re
from typing import Any

from fanlight_matchers.protocol import Text

SEPARATORS = {"amqp": b".", "mqtt": b"/"}
ONE = {"amqp": b"*", "mqtt": b"+"}
MANY = b"#"


def installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False


def _bytes(given: Text) -> bytes:
    return given.encode() if isinstance(given, str) else given


def expression(filter: bytes, syntax: str) -> bytes:
    """A regular expression for a topic with a separator before each of its words, the first one too."""
    separator = re.escape(SEPARATORS[syntax])
    word = b"[^" + separator + b"]*"
    parts = filter.split(SEPARATORS[syntax]) if filter else []
    made = b""
    for i, part in enumerate(parts):
        first = b"(?:[^$" + separator + b"]" + word + b")?" if syntax == "mqtt" and i == 0 else word
        if part == MANY and syntax == "mqtt" and i == 0:
            made += separator + first + b"(?:" + separator + word + b")*"
        elif part == MANY:
            made += b"(?:" + separator + word + b")*"
        else:
            made += separator + (first if part == ONE[syntax] else re.escape(part))
    return b"^" + made + b"\\z"


class Expressions:
    """One compiled regular expression a filter, tried one after the other."""

    def __init__(self, syntax: str) -> None:
        self.syntax = syntax
        self.held: dict[tuple[bytes, int], re.Pattern[bytes]] = {}

    def insert(self, filter: Text, id: int) -> bool:
        key = (_bytes(filter), id)
        if key in self.held:
            return False
        # Python spells the end of the text \Z, others \z.
        self.held[key] = re.compile(expression(key[0], self.syntax).removesuffix(b"\\z") + b"\\Z", re.DOTALL)
        return True

    def remove(self, filter: Text, id: int) -> bool:
        return self.held.pop((_bytes(filter), id), None) is not None

    def match(self, topic: Text) -> tuple[int, ...]:
        text = prefixed(_bytes(topic), self.syntax)
        return tuple(sorted({id for (_, id), pattern in self.held.items() if pattern.match(text)}))


def prefixed(topic: bytes, syntax: str) -> bytes:
    return SEPARATORS[syntax] + topic if topic or syntax == "mqtt" else topic


class Hyperscan:
    """All filters as one database of Intel's regular expression scanner; any change compiles all of it anew.

    It misses matches (0.9.1): with the filters `#.a` and `#.b` it finds neither in a topic of 18 bytes or more.
    """

    def __init__(self, syntax: str) -> None:
        self.library: Any = importlib.import_module("hyperscan")
        self.syntax = syntax
        self.held: dict[tuple[bytes, int], None] = {}
        self.database: Any = None  # None: to be compiled
        self.ids: list[int] = []

    def insert(self, filter: Text, id: int) -> bool:
        key = (_bytes(filter), id)
        if key in self.held:
            return False
        self.held[key] = None
        self.database = None
        return True

    def remove(self, filter: Text, id: int) -> bool:
        key = (_bytes(filter), id)
        if key not in self.held:
            return False
        del self.held[key]
        self.database = None
        return True

    def compile(self) -> None:
        hs = self.library
        self.database = hs.Database(mode=hs.HS_MODE_BLOCK)
        self.ids = [id for _, id in self.held]
        self.database.compile(
            expressions=[expression(filter, self.syntax) for filter, _ in self.held],
            ids=list(range(len(self.held))),
            elements=len(self.held),
            flags=hs.HS_FLAG_DOTALL | hs.HS_FLAG_SINGLEMATCH | hs.HS_FLAG_ALLOWEMPTY,
        )

    def match(self, topic: Text) -> tuple[int, ...]:
        if not self.held:
            return ()
        if self.database is None:
            self.compile()
        found: list[int] = []

        def matched(number: int, start: int, end: int, flags: int, context: object) -> None:
            found.append(number)

        text = prefixed(_bytes(topic), self.syntax)
        if not text:  # hyperscan reports nothing in an empty text
            return tuple(sorted({id for filter, id in self.held if not filter.strip(b".#")}))
        self.database.scan(text, match_event_handler=matched)
        return tuple(sorted({self.ids[number] for number in found}))


class Paho:
    """paho-mqtt's MQTTMatcher, a trie of dictionaries; MQTT only."""

    def __init__(self, syntax: str) -> None:
        self.matcher: Any = importlib.import_module("paho.mqtt.matcher").MQTTMatcher()

    def insert(self, filter: Text, id: int) -> bool:
        text = filter if isinstance(filter, str) else filter.decode()
        try:
            ids = self.matcher[text]
        except KeyError:
            self.matcher[text] = {id}
            return True
        new = id not in ids
        ids.add(id)
        return new

    def remove(self, filter: Text, id: int) -> bool:
        text = filter if isinstance(filter, str) else filter.decode()
        try:
            ids = self.matcher[text]
        except KeyError:
            return False
        if id not in ids:
            return False
        ids.remove(id)
        if not ids:
            del self.matcher[text]
        return True

    def match(self, topic: Text) -> tuple[int, ...]:
        found = list(self.matcher.iter_match(topic if isinstance(topic, str) else topic.decode()))
        return tuple(sorted(set().union(*found))) if found else ()


class Roaring:
    """Treat's OptimizedInvertedBitmap, on CRoaring: (literal or wild) of each position, and-ed; `#` last only."""

    def __init__(self, syntax: str) -> None:
        self.bitmap: Any = importlib.import_module("pyroaring").BitMap
        self.syntax = syntax
        self.slots: dict[tuple[bytes, int], int] = {}
        self.ids: dict[int, int] = {}
        self.free: list[int] = []
        self.words: list[dict[bytes, Any]] = []
        self.wild: list[Any] = []  # with a wildcard there, or a `#` before
        self.null: list[Any] = []  # that need no word there
        self.beyond = self.bitmap()
        self.wild_first = self.bitmap()

    def _split(self, text: bytes) -> list[bytes]:
        return text.split(SEPARATORS[self.syntax]) if text or self.syntax == "mqtt" else []

    def insert(self, filter: Text, id: int) -> bool:
        key = (_bytes(filter), id)
        words = self._split(key[0])
        if MANY in words[:-1]:
            raise NotImplementedError("`#` before the end")
        if key in self.slots:
            return False
        while len(self.words) < len(words):
            self.words.append({})
            self.wild.append(self.beyond.copy())
            self.null.append(self.bitmap(self.ids))
        slot = self.free.pop() if self.free else len(self.slots)
        self.slots[key] = slot
        self.ids[slot] = id
        self._write(slot, words, True)
        return True

    def _write(self, slot: int, words: list[bytes], on: bool) -> None:
        many = words[-1:] == [MANY]
        fixed = len(words) - many
        rows = []
        for i in range(len(self.words)):
            if i >= fixed:
                rows += [self.null[i], self.wild[i]] if many else [self.null[i]]
            elif words[i] == ONE[self.syntax]:
                rows.append(self.wild[i])
            elif on:
                rows.append(self.words[i].setdefault(words[i], self.bitmap()))
            else:
                rows.append(self.words[i][words[i]])
        if many:
            rows.append(self.beyond)
        if words and words[0] in (ONE[self.syntax], MANY):
            rows.append(self.wild_first)
        for row in rows:
            if on:
                row.add(slot)
            else:
                row.remove(slot)
        if not on:
            for i in range(fixed):
                if words[i] != ONE[self.syntax] and not self.words[i][words[i]]:
                    del self.words[i][words[i]]

    def remove(self, filter: Text, id: int) -> bool:
        key = (_bytes(filter), id)
        words = self._split(key[0])
        if MANY in words[:-1]:
            raise NotImplementedError("`#` before the end")
        slot = self.slots.pop(key, None)
        if slot is None:
            return False
        self._write(slot, words, False)
        del self.ids[slot]
        self.free.append(slot)
        return True

    def match(self, topic: Text) -> tuple[int, ...]:
        text = _bytes(topic)
        words = self._split(text)
        depth = len(self.words)
        rows = [
            self.wild[i] | self.words[i][word] if word in self.words[i] else self.wild[i]
            for i, word in enumerate(words[:depth])
        ]
        rows += self.null[len(words) :]
        if len(words) > depth:
            rows.append(self.beyond)
        found = self.bitmap.intersection(*rows) if rows else self.bitmap(self.ids)
        if self.syntax == "mqtt" and text.startswith(b"$"):
            found -= self.wild_first
        return tuple(sorted({self.ids[slot] for slot in found}))
