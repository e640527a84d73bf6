"""Why a filter matches a topic, and why it does not: for people, not for routing.

`explain` says in which tier a filter was found and what let it through:

    exact     the whole topic, looked up
    pool      the rows of the dense bitmap that have the filter's bit (pool.pxd)
    buckets   the class whose rows let it live, the words of the key under which the bucket was found, and what was
              checked in the bucket, as it is not in the key (buckets.pxd)

`why_not` says in one sentence what stands in the way. `bits` has a filter's column of the bitmap: its bit in each row
that a look-up of the topic would AND.
"""

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from matchcore.filters import FilterIndex
from matchcore.grammar import Filter, Token, Wildcard, parse_filter, split_topic

if TYPE_CHECKING:
    from matchcore.kleene import Fields
    from matchcore.patterns import Where

__all__ = ["Deciding", "Explanation", "bits", "explain", "why_not"]

Text = str | bytes

DEPTH = 24  # as in positions.pxd
KEY = "key "  # how the kind of a key's row begins


@dataclass(frozen=True, slots=True)
class Deciding:
    """One row that had the filter's bit: the kind of row, and where and for which word it was asked.

    kind        position                     word
    "exact"     None                         None: the whole topic was found in the exact table
    "length"    the topic's number of words  None
    "left"      from the left, from 0        the literal there
    "right"     from the right, from 0       the literal there
    "any"       where it was found, from 0   a literal between two `#`

    "key left", "key right" and "key any" are those of the access key under which the buckets found the
    filter: the rows of the class bitmap, and the words of the bucket.
    """

    kind: str
    position: int | None = None
    word: bytes | None = None

    @property
    def where(self) -> str:
        """The row without its word: "left 2", "any"; the same for a row of the key and any other."""
        kind = self.kind.removeprefix(KEY)
        return kind if self.position is None or kind == "any" else f"{kind} {self.position}"

    def __str__(self) -> str:
        at = self.kind if self.position is None else f"{self.kind} {self.position}"
        return at if self.word is None else f"{at} {_shown(self.word)}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One filter that matches: as it was given, with its id, and the rows that decided."""

    filter: Text
    syntax: str
    id: int
    rows: tuple[Deciding, ...]
    tier: str = "pool"
    """Where it was found: "exact", "pool" or "buckets"."""
    where: str | None = None
    """Its selector, which is true of the fields."""
    found_by: tuple[str, ...] = ()
    """Through what in the filter's screen the selector was found: access keys, its row or its list, in words."""

    @property
    def key(self) -> tuple[Deciding, ...]:
        """The rows of the access key, none but in the tier "buckets"; their positions are the class."""
        return tuple(row for row in self.rows if row.kind.startswith(KEY))

    @property
    def reason(self) -> str:
        """Tier, rows and selector in a line for people."""
        screen = ", ".join(self.found_by)
        return self._found if self.where is None else f"{self._found}; screen: {screen}; true: {self.where}"

    @property
    def _found(self) -> str:
        if self.tier == "exact":
            return "exact: the whole topic"
        rest = ", ".join(str(row) for row in self.rows if not row.kind.startswith(KEY))
        if self.tier == "pool":
            return f"pool: {rest}"
        key = self.key
        if not key:
            return f"buckets: no key, for it has no literal; checked: {rest}"
        rows = " + ".join(row.where for row in key)
        words = " + ".join(_shown(row.word) for row in key if row.word is not None)
        return f"buckets: class {rows}, key {words}; checked: {rest}"


def explain(
    index: FilterIndex, topic: Text, *, fields: "Fields | None" = None, syntax: str = "amqp",
    ids: Container[int] | None = None, filters: Container[tuple[Text, str]] | None = None,
) -> list[Explanation]:  # fmt: skip
    """For each (filter, id) of the index that matches: its tier, the rows that decided, and its selector.

    `fields` are those of a match. `ids`: only these; None: all. `filters`, each with its syntax: one id for each of
    these, of those without a selector; None: all. An explanation takes some 10 µs. RuntimeError if the index changes
    meanwhile.
    """
    words = None
    found = []
    located = index.located(topic, syntax=syntax, one_each=filters is not None)
    plain = [(*one, None, ()) for one in located if filters is None or one[:2] in filters]
    selected = index.selected(topic, fields=fields, syntax=syntax, ids=ids) if filters is None else []
    for filter, filter_syntax, id, tier, key, where, found_by in [*plain, *selected]:
        if ids is None or id in ids:
            words = words or _split(topic, syntax)
            explained = _explanation(filter, filter_syntax, id, words, tier, key)
            found.append(replace(explained, where=where, found_by=found_by))
    return found


def _explanation(
    filter: Text, syntax: str, id: int, words: tuple[bytes, ...], tier: str, key: tuple[tuple[int, bytes], ...]
) -> Explanation:
    """The explanation of a filter that is known to match these words."""
    wanted = _parsed(filter, syntax)
    if wanted.is_exact:
        return Explanation(filter, syntax, id, (Deciding("exact"),), "exact")
    rows = [Deciding("length", len(words))]
    rows += [Deciding("left", i, word) for i, word in _literals(wanted.prefix)]
    rows += [Deciding("right", i, word) for i, word in _literals(wanted.suffix[::-1])]
    at = len(wanted.prefix)
    for segment in wanted.segments:
        at = _find(segment, words, at, len(words) - len(wanted.suffix))
        rows += [Deciding("any", at + i, word) for i, word in _literals(segment)]
        at += len(segment)
    return Explanation(filter, syntax, id, _key_first(rows, key), tier)


def _key_first(rows: list[Deciding], key: tuple[tuple[int, bytes], ...]) -> tuple[Deciding, ...]:
    """The rows of the key before the others, and named so."""
    wanted = {(*_row_of(position), word) for position, word in key}
    keyed: list[Deciding] = []
    others: list[Deciding] = []
    for row in rows:
        found = (row.kind, None if row.kind == "any" else row.position, row.word)
        if found in wanted:
            wanted.remove(found)
            keyed.append(Deciding(KEY + row.kind, row.position, row.word))
        else:
            others.append(row)
    return (*keyed, *others)


def _row_of(position: int) -> tuple[str, int | None]:
    """The kind of row and the index in it: positions are 24 from the left, 24 from the right, and anywhere."""
    if position < DEPTH:
        return "left", position
    return ("right", position - DEPTH) if position < 2 * DEPTH else ("any", None)


def why_not(
    filter: Text, filter_syntax: str, topic: Text, topic_syntax: str, *, where: "Where | None" = None,
    fields: "Fields | None" = None,
) -> str | None:  # fmt: skip
    """Why `filter` does not match `topic`, or its selector `where` the fields, in a sentence; None if they do.

    Positions count from 0. Raises InvalidFilter, InvalidTopic or InvalidSelector for what cannot be parsed.
    """
    wanted = _parsed(filter, filter_syntax)
    words = _split(topic, topic_syntax)
    reason = _why_not(wanted, words)
    if where is None or reason is not None:
        return reason
    from matchcore.kleene import with_topic  # here: only selectors need it
    from matchcore.patterns import selector_of
    from matchcore.reasons import why_not_true

    return why_not_true(selector_of(where), with_topic(fields or {}, words))


def bits(filter: Text, filter_syntax: str, topic: Text, topic_syntax: str) -> dict[str, bool]:
    """The filter's bit in each row of the bitmap that asks something of it: "length 3", "left 0 'stock'", ...

    It matches if all are true. A row that is not there asks nothing of it (a wildcard, or behind its `#`): its bit is
    set. "any" is a part between two `#`; "root" that a first word with `$` is only found by its name. For each filter
    it is as if it were in the pool, whatever its tier. Raises InvalidFilter or InvalidTopic.
    """
    wanted, words = _parsed(filter, filter_syntax), _split(topic, topic_syntax)
    fewest, length = wanted.fewest_words, len(words)
    rows = {f"length {length}": length >= fewest if wanted.has_many else length == fewest}
    if wanted.refuses_dollar and words and words[0].startswith(b"$"):
        rows["root"] = False
    for i, word in _literals(wanted.prefix):
        if i < length:
            rows[str(Deciding("left", i, words[i]))] = word == words[i]
    for i, word in _literals(wanted.suffix[::-1]):
        if i < length:
            rows[str(Deciding("right", i, words[-1 - i]))] = word == words[-1 - i]
    at = len(wanted.prefix)
    for segment in wanted.segments:
        found = _find(segment, words, at, length - len(wanted.suffix)) if at >= 0 else -1
        rows[f"any {' '.join(_shown(token) for token in segment)}"] = found >= 0
        at = found + len(segment) if found >= 0 else -1
    return rows


def _why_not(wanted: Filter, words: tuple[bytes, ...]) -> str | None:
    fewest = wanted.fewest_words
    if wanted.refuses_dollar and words and words[0].startswith(b"$"):
        return (
            f"the topic's first word is {_shown(words[0])}, and an MQTT filter that begins with a wildcard "
            f"does not match a first level that begins with '$'; name the level in the filter"
        )
    if not wanted.has_many and len(words) != fewest:
        return f"the filter takes exactly {_words(fewest)}, and the topic has {len(words)}"
    if len(words) < fewest:
        return f"the filter takes at least {_words(fewest)}, and the topic has {len(words)}"
    for i, token in enumerate(wanted.prefix):
        if not _fits(token, words[i]):
            return f"word {i} must be {_shown(token)}, and the topic has {_shown(words[i])} there"
    for i, token in enumerate(reversed(wanted.suffix)):
        if not _fits(token, words[-1 - i]):
            there = _shown(words[-1 - i])
            return f"word {i} from the end must be {_shown(token)}, and the topic has {there} there"
    at, end = len(wanted.prefix), len(words) - len(wanted.suffix)
    for segment in wanted.segments:
        found = _find(segment, words, at, end)
        if found < 0:
            what = " ".join(_shown(token) for token in segment)
            where = f"words {at} to {end - 1}"
            return f"the part between two '#' needs {what}, which {where} do not have in a row"
        at = found + len(segment)
    return None


# The index that a text comes from may have wider limits than the default; what it holds it holds.
_WIDEST = {"max_words": 1024, "max_bytes": 1 << 30}


def _parsed(filter: Text, syntax: str) -> Filter:
    return parse_filter(filter, syntax, **_WIDEST)


def _split(topic: Text, syntax: str) -> tuple[bytes, ...]:
    return split_topic(topic, syntax, **_WIDEST)


def _fits(token: Token, word: bytes) -> bool:
    return token is Wildcard.ONE or token == word


def _literals(tokens: tuple[Token, ...]) -> list[tuple[int, bytes]]:
    return [(i, token) for i, token in enumerate(tokens) if isinstance(token, bytes)]


def _find(segment: tuple[Token, ...], words: tuple[bytes, ...], start: int, end: int) -> int:
    """The first index from `start` at which the segment fits and ends by `end`; -1 if there is none."""
    for at in range(start, end - len(segment) + 1):
        if all(_fits(token, words[at + i]) for i, token in enumerate(segment)):
            return at
    return -1


def _shown(token: Token) -> str:
    if token is Wildcard.ONE:
        return "any word"
    return repr(token.decode("utf-8", "backslashreplace")) if isinstance(token, bytes) else "'#'"


def _words(count: int) -> str:
    return "1 word" if count == 1 else f"{count} words"
