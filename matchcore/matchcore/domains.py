"""What the value of one attribute may still be, once some tests of it are known to be true, or not to be.

A value is of one kind: absent, a boolean, a number, a text, an untyped text, or something that cannot be compared. Per
type that tests compare (boolean, number, text) a domain has a set of spans. They are of the typed values and of what
an untyped text is read as, which may be nothing: "x" is no number. All sets may be too large, never too small: what
comes out empty is impossible, what does not may be, too.
"""

from dataclasses import dataclass, replace
from typing import Any

from matchcore.kleene import Untyped, is_like, is_on, typed
from matchcore.normal_form import Leaf
from matchcore.selector import SEPARATORS, Attribute, Between, Compare, In, Like, Matches, Present, Source, Value
from matchcore.spans import (
    EVERYTHING,
    Spans,
    above,
    below,
    common,
    complement,
    contains,
    points,
    single_values,
)

__all__ = ["ANY", "Claim", "Domain", "TooMuchWork", "WorkLeft", "claim_of", "type_of"]

Pieces = tuple[str | None, ...]  # of a LIKE, as Like.pieces


@dataclass(frozen=True, slots=True)
class OnFilter:
    """What is on a filter: a pattern as the pieces of a LIKE are one."""

    filter: str

    @property
    def test(self) -> Matches:
        return Matches(Attribute(Source.HEADER, ("",)), self.filter)

    @property
    def canonical(self) -> Pieces:
        """Its words; of wildcards in a row those of one word come first, and one `#` stands for all."""
        made: list[str | None] = []
        has_many = False
        for piece in (*self.test.pieces, "="):  # a word at the end
            if piece is None:
                has_many = True
            else:
                made += [None, piece] if has_many and piece else [piece]
                has_many = has_many and not piece
        return tuple(made[:-1])

    @property
    def wider(self) -> Pieces:
        """The pieces of a LIKE that is true of all of them."""
        prefix, suffix = self.test.affixes
        return (*prefix, None, *suffix)

    @property
    def example(self) -> str:
        test = self.test
        words = ["x" if piece == "" else piece[1:] for piece in test.pieces if piece is not None]
        return SEPARATORS[test.syntax].join(words)


Pattern = Pieces | OnFilter

BOOLEAN, NUMBER, TEXT = range(3)  # types; 1 << type is the kind of such values
ABSENT, OTHER, UNTYPED = 8, 16, 32
EVERY_KIND = 63
ALL: tuple[Spans, Spans, Spans] = (points([False, True]), EVERYTHING, above(b"", included=True))
OF_TYPE: tuple[Value, ...] = (True, 0, "")  # an example for each type
COMPARE_TEXT = 4  # characters times pieces of a LIKE that are as much work as one span


class TooMuchWork(Exception):
    """The bound on the work is reached: nothing is proven."""


class WorkLeft:
    """How many steps may still be done; a step takes about a microsecond."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise TooMuchWork


@dataclass(frozen=True, slots=True)
class Claim:
    """What a test says of its attribute where it is known to be true, or not to be."""

    attribute: Attribute
    kinds: int  # of values that are left
    type: int = BOOLEAN
    spans: Spans = ALL[BOOLEAN]  # of the type: values that are left
    decided: bool = False  # an untyped value is of the type
    pieces: Pattern = ()  # of a LIKE that is more than a prefix, of a filter with wildcards
    is_like: bool = True


def type_of(value: Value) -> int:
    return TEXT if isinstance(value, str) else BOOLEAN if isinstance(value, bool) else NUMBER


def claim_of(leaf: Leaf, holds: bool) -> Claim:
    """What is known where the leaf holds; or where it does not, which an unknown test does not either.

    The values of an IN are of one type.
    """
    test = leaf.test
    inside = holds is not leaf.negated
    if isinstance(test, Present):
        return Claim(test.attribute, EVERY_KIND & ~ABSENT if inside else ABSENT)
    type, spans, pieces = _true_of(test)
    if not inside:
        spans = ALL[type] if pieces else complement(spans)
    kinds = 1 << type | UNTYPED if holds else EVERY_KIND
    return Claim(test.attribute, kinds, type, common(spans, ALL[type]), holds, pieces, inside)


def _true_of(test: Compare | Between | In | Like | Matches) -> tuple[int, Spans, Pattern]:
    """The type that is compared, and the values of which the test is true: the spans, and what is like the pieces."""
    match test:
        case Compare(_, operator, value):
            return type_of(value), _compared(operator, _ordered(value)), ()
        case Between(_, low, high):
            spans = common(above(_ordered(low), included=True), below(_ordered(high), included=True))
            return type_of(low), spans, ()
        case In(_, values):
            return type_of(values[0]), points(map(_ordered, values)), ()
        case Matches():
            prefix = _ordered(test.affixes[0])
            if all(test.pieces):
                return TEXT, points([prefix]), ()
            return TEXT, _with_prefix(prefix), OnFilter(test.filter)
        case Like():
            pieces = test.pieces
            plain = next((i for i, piece in enumerate(pieces) if not piece), len(pieces))
            prefix = _ordered("".join(piece or "" for piece in pieces[:plain]))
            if plain == len(pieces):
                return TEXT, points([prefix]), ()
            rest = set(pieces[plain:])
            return TEXT, _with_prefix(prefix), () if rest == {None} else pieces


def _ordered(value: Value) -> object:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _compared(operator: str, value: object) -> Spans:
    match operator:
        case "=":
            return points([value])
        case "<>":
            return complement(points([value]))
        case "<" | "<=":
            return below(value, included=operator == "<=")
        case _:
            return above(value, included=operator == ">=")


def _with_prefix(prefix: object) -> Spans:
    """All texts that begin so: up to the prefix whose last byte is one more. No byte of UTF-8 is 255."""
    assert isinstance(prefix, bytes)
    if not prefix:
        return ALL[TEXT]
    return common(above(prefix, included=True), below(prefix[:-1] + bytes([prefix[-1] + 1])))


@dataclass(frozen=True, slots=True)
class Domain:
    kinds: int = EVERY_KIND
    spans: tuple[Spans, Spans, Spans] = ALL
    decided: int = 0  # of each type whether an untyped value is of it: a bit 1 << type
    likes: frozenset[Pattern] = frozenset()  # what a text is like, beyond the spans
    unlikes: frozenset[Pattern] = frozenset()  # and not like

    def within(self, claim: Claim, work: WorkLeft) -> "Domain":
        """What is left of it where the claim is true."""
        mine = self.spans[claim.type]
        work.spend(1 + len(mine) + len(claim.spans))
        spans = list(self.spans)
        spans[claim.type] = common(mine, claim.spans)
        pieces = frozenset([claim.pieces] if claim.pieces else [])
        return replace(
            self,
            kinds=self.kinds & claim.kinds,
            spans=(spans[BOOLEAN], spans[NUMBER], spans[TEXT]),
            decided=self.decided | (claim.decided << claim.type),
            likes=self.likes | pieces if claim.is_like else self.likes,
            unlikes=self.unlikes if claim.is_like else self.unlikes | pieces,
        )

    def is_empty(self, work: WorkLeft) -> bool:
        """Whether no value is left; False also where that is not found out."""
        if self.kinds & (ABSENT | OTHER) or any(self._has(type) for type in (BOOLEAN, NUMBER)):
            return False
        if not self.kinds & (1 << TEXT | UNTYPED):
            return True
        texts = self._texts(work)
        if texts is None:
            is_possible = bool(self.spans[TEXT]) and not self._is_contradictory(work)
            return not is_possible or not (self.kinds & 1 << TEXT or self._may_be_untyped())
        return not texts or not (self.kinds & 1 << TEXT or any(map(self._is_untyped, texts)))

    def example(self, work: WorkLeft) -> object:
        """A value that may be left, None for absent; whether the tests agree is for the caller to see."""
        for type in (NUMBER, BOOLEAN):
            if self._has(type):
                return _example(self.spans[type])
        if self.kinds & (1 << TEXT | UNTYPED) and self.spans[TEXT]:
            texts = self._texts(work) or [_text_example(self.spans[TEXT])]
            texts += map(_example_like, self.likes)
            for type in (BOOLEAN, NUMBER):
                if self.decided & 1 << type and self.spans[type]:
                    texts.append(str(_example(self.spans[type])).lower())
            is_typed = bool(self.kinds & 1 << TEXT)
            within = (text for text in texts if contains(self.spans[TEXT], _ordered(text)))
            fitting = (text for text in within if self._is_text(text, work))
            text = next((text for text in fitting if is_typed or self._is_untyped(text)), texts[0])
            return text if is_typed else Untyped(text)
        return b"" if self.kinds & OTHER else None

    def _has(self, type: int) -> bool:
        return bool(self.kinds & 1 << type and self.spans[type])

    def _texts(self, work: WorkLeft) -> list[str] | None:
        """The texts that are left, if they are given one by one."""
        work.spend(len(self.spans[TEXT]))
        values = single_values(self.spans[TEXT])
        return values and [text for text in map(_text, values) if self._is_text(text, work)]

    def _is_text(self, text: str, work: WorkLeft) -> bool:
        """Whether it is like all that it must be like; the spans are not looked at."""
        for pieces in (*self.likes, *self.unlikes):
            size = len(pieces.filter if isinstance(pieces, OnFilter) else pieces)
            work.spend(1 + len(text) * size // COMPARE_TEXT)
        liked = all(_is_like(text, pieces) for pieces in self.likes)
        return liked and not any(_is_like(text, pieces) for pieces in self.unlikes)

    def _is_contradictory(self, work: WorkLeft) -> bool:
        """Whether whatever is like one of the patterns is like another one that it must not be like.

        Or two filters have no topic in common.
        """
        topics = [pattern for pattern in self.likes if isinstance(pattern, OnFilter)]
        if any(_apart(one, other, work) for one in topics for other in topics if one.filter < other.filter):
            return True
        return any(_takes(wide, narrow, work) for narrow in self.likes for wide in self.unlikes)

    def _may_be_untyped(self) -> bool:
        """Whether some text is all that it must be: no text is a number and a boolean."""
        if not self.kinds & UNTYPED or self.decided & 3 == 3:
            return False
        return all(self.spans[type] or not self.decided & 1 << type for type in (BOOLEAN, NUMBER))

    def _is_untyped(self, text: str) -> bool:
        if not self.kinds & UNTYPED:
            return False
        for type in (BOOLEAN, NUMBER):
            value = typed(text, OF_TYPE[type])
            if self.decided & 1 << type if value is None else not contains(self.spans[type], value):
                return False
        return True


ANY = Domain()


def _text(value: object) -> str:
    assert isinstance(value, bytes)
    return value.decode("utf-8", "surrogatepass")


def _is_like(text: str, pattern: Pattern) -> bool:
    return is_on(text, pattern.test) if isinstance(pattern, OnFilter) else is_like(text, pattern)


def _example_like(pattern: Pattern) -> str:
    if isinstance(pattern, OnFilter):
        return pattern.example
    return "".join("_" if piece == "" else piece or "" for piece in pattern)


def _apart(one: OnFilter, other: OnFilter, work: WorkLeft) -> bool:
    """Whether no text is on both filters; False also where that is not known: a text is split in two ways."""
    if one.test.syntax != other.test.syntax:
        return False
    mine, theirs = one.canonical, other.canonical
    work.spend(1 + len(mine) * len(theirs))
    met = {(0, 0)}
    open_ = [(0, 0)]
    while open_:
        i, j = open_.pop()
        left, right = mine[i : i + 1], theirs[j : j + 1]
        if not left and not right:
            return False
        following: list[tuple[int, int]] = []
        if None in left:
            following.append((i + 1, j))
        if None in right:
            following.append((i, j + 1))
        if left and right and (not left[0] or not right[0] or left == right):  # a word for both
            following.append((i + (None not in left), j + (None not in right)))
        open_ += {*following} - met
        met.update(following)
    return True


def _takes(wide: Pattern, narrow: Pattern, work: WorkLeft) -> bool:
    """Whether each text that is like `narrow` is like `wide`, found piece by piece; False also where it is not found.

    A piece of `wide` takes the same piece; `_` takes any character, `%` whatever comes.
    """
    if isinstance(wide, OnFilter):
        if wide.filter == "#" or not isinstance(narrow, OnFilter) or narrow.test.syntax != wide.test.syntax:
            return wide.filter == "#"
        if wide.test.syntax == "mqtt" and not wide.test.pieces[0] and narrow.filter.startswith("$"):
            return False
        wide, narrow = wide.canonical, narrow.canonical
    if isinstance(narrow, OnFilter):
        narrow = narrow.wider
    work.spend(1 + len(wide) * len(narrow) // COMPARE_TEXT)
    places = _with_empty({0}, wide)
    for piece in narrow:
        after = {at for at in places if at < len(wide) and wide[at] is None}
        if piece is not None:
            after |= {at + 1 for at in places if at < len(wide) and wide[at] in ("", piece)}
        places = _with_empty(after, wide)
    return len(wide) in places


def _with_empty(places: set[int], pieces: Pieces) -> set[int]:
    """And the places behind a `%`, which takes nothing, too."""
    reached = set(places)
    for at, piece in enumerate(pieces):
        if at in reached and piece is None:
            reached.add(at + 1)
    return reached


def _example(spans: Spans) -> Any:
    """A number, or a boolean, of the first span."""
    low, high = spans[0]
    for cut, inner in ((low, 0), (high, 1)):
        if len(cut) > 1 and cut[2] == inner:
            return cut[1]
    if len(low) == 1:
        return high[1] - 1 if len(high) > 1 else 0
    return low[1] + 1 if len(high) == 1 or low[1] + 1 < high[1] else (low[1] + high[1]) / 2


def _text_example(spans: Spans) -> str:
    _, value, is_above = spans[0][0]  # the least text is "", so each span has a lower end
    assert isinstance(value, bytes)
    return value.decode("utf-8", "replace") + ("\0" if is_above else "")
