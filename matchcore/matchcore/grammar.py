"""Topics and filters as values: `split_topic` and `parse_filter`.

The rules themselves are in syntax.pyx, which the indexes use too; here is their face for Python.

A filter's canonical form decides what it matches: in each run of wildcards that holds a `#`, the
one-word wildcards come first and one `#` ends it (`#.*.#.b` is `*.#.b`). Two filters with the same
canonical tokens match the same topics, but for MQTT's rule about `$`, which is `refuses_dollar`.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import AnyStr

from matchcore import syntax as _syntax

__all__ = ["MAX_BYTES", "MAX_WORDS", "Filter", "Token", "Wildcard", "parse_filter", "split_suffix", "split_topic"]

MAX_WORDS = 128  # words in a topic or a filter; AMQP's 255 bytes hold as many one-letter words
MAX_BYTES = 65_535  # bytes; the longest string MQTT can carry


class Wildcard(Enum):
    """A token of a filter that is not a word."""

    ONE = 1  # exactly one word: `*` in AMQP, `+` in MQTT
    MANY = 2  # zero or more words: `#`


Token = bytes | Wildcard


@dataclass(frozen=True, slots=True)
class Filter:
    """A topic filter, parsed; equal when text and syntax are."""

    text: bytes
    syntax: str
    is_exact: bool = field(compare=False)
    tokens: tuple[Token, ...] = field(compare=False)
    """The canonical form: words and wildcards."""

    @property
    def words(self) -> tuple[bytes, ...]:
        """The words of an exact filter; of one with wildcards, its literal words."""
        return tuple(token for token in self.tokens if isinstance(token, bytes))

    @property
    def has_many(self) -> bool:
        return Wildcard.MANY in self.tokens

    @property
    def prefix(self) -> tuple[Token, ...]:
        """The tokens before the first `#`, or all: found by their position from the left."""
        return self.tokens[: self.tokens.index(Wildcard.MANY)] if self.has_many else self.tokens

    @property
    def suffix(self) -> tuple[Token, ...]:
        """The tokens after the last `#`, or none: found by their position from the right."""
        if not self.has_many:
            return ()
        return self.tokens[len(self.tokens) - self.tokens[::-1].index(Wildcard.MANY) :]

    @property
    def segments(self) -> tuple[tuple[Token, ...], ...]:
        """The runs of tokens between two `#`, in order."""
        between = self.tokens[len(self.prefix) + 1 : len(self.tokens) - len(self.suffix)]
        segments: list[tuple[Token, ...]] = []
        run: list[Token] = []
        for token in between:
            if token is Wildcard.MANY:
                segments.append(tuple(run))
                run = []
            else:
                run.append(token)
        return tuple(segments)

    @property
    def fewest_words(self) -> int:
        """The number of words of the shortest topic it matches; the only number without a `#`."""
        return sum(token is not Wildcard.MANY for token in self.tokens)

    @property
    def refuses_dollar(self) -> bool:
        """Whether it refuses a first word that begins with `$`: MQTT, and a wildcard first."""
        return self.syntax == "mqtt" and isinstance(self.tokens[0], Wildcard)


def split_topic(
    topic: str | bytes, syntax: str, *, max_words: int = MAX_WORDS, max_bytes: int = MAX_BYTES
) -> tuple[bytes, ...]:
    """The words of a topic name. Raises InvalidTopic; TypeError and ValueError for other arguments."""
    return tuple(word for _, word in _syntax.scan(topic, syntax, False, max_words, max_bytes))


def parse_filter(text: str | bytes, syntax: str, *, max_words: int = MAX_WORDS, max_bytes: int = MAX_BYTES) -> Filter:
    """A topic filter, checked and in canonical form. Raises InvalidFilter, else as above."""
    tokens: list[Token] = []
    pending: list[Token] = []  # the MANY of the run of wildcards that is being read
    for kind, word in _syntax.scan(text, syntax, True, max_words, max_bytes):
        if kind == Wildcard.ONE.value:
            tokens.append(Wildcard.ONE)
        elif kind == Wildcard.MANY.value:
            pending = [Wildcard.MANY]
        else:
            tokens += [*pending, word]
            pending = []
    tokens += pending
    # As the grammar read them, whatever a subclass says of itself.
    encoded = str.encode(text) if isinstance(text, str) else bytes.join(b"", (text,))
    is_exact = not any(isinstance(token, Wildcard) for token in tokens)
    return Filter(encoded, str.__str__(syntax), is_exact, tuple(tokens))


def split_suffix(filter: AnyStr) -> tuple[AnyStr, AnyStr | None]:
    """The topic filter, which ends at the first `?`, and the expression behind that; None if there is no `?`."""
    topic_filter, mark, expression = filter.partition(b"?" if isinstance(filter, bytes) else "?")
    return topic_filter, expression if mark else None
