"""The rules of a table of permissions, and how they come into its index. table.py decides by them.

    rule --its conditions--> party --its actions, its %u--> kind --> key word before each filter --> FilterIndex
    rule of one name, if `waiting`                               --> packed until somebody comes (waiting.py)
"""

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from fanlight_permissions.parties import EVERYBODY, Parties, is_name
from fanlight_permissions.permission_rule import WILD, Pattern, PermissionRule, starts_wild
from fanlight_permissions.plain_rows import PlainRows
from fanlight_permissions.reading import TableLimits, never
from fanlight_permissions.scopes import Kind, behind, key_word, kind_of
from fanlight_permissions.topics import SEPARATORS, SYNTAXES, WORDS_CEILING, first_word
from fanlight_permissions.waiting import PackedRule, WaitingRules, packed_rule
from matchcore.bulk import insert_many
from matchcore.errors import InvalidFilter
from matchcore.filters import FilterIndex
from matchcore.grammar import parse_filter
from matchcore.kleene import OF_TOPIC
from matchcore.selector import And, AtLeast, Attribute, Constant, In, Not, Or, Selector, Source, leaves

PAUSE_EVERY: Final = 128  # rules that are inserted, some 0.5 ms
WORDS_MORE: Final = 32  # of a key word, and of the topic that `outline` makes
BYTES_MORE: Final = 1_024
# No shorter than any key word: a filter behind it is checked without an insertion.
LONGEST_KEYS: Final = {syntax: b"k" * 24 + separator for syntax, separator in SEPARATORS.items()}
SEEN_MAX: Final = 1_024  # parties that are found at once: rules of one user often stand near each other
PAGE_BITS: Final = 10  # of a party: 1,024 are on a page
PACKED_MAX: Final = 0xFFFF  # kinds, and bytes of a filter, that fit into a packed rule


class Denial(NamedTuple):
    rank: int
    filter: bytes  # with wildcards in the place of names, and without the key word
    syntax: str


DenialsByWord = dict[bytes, list[Denial]]  # by first word


class Invalid(NamedTuple):
    """A filter that the matcher refuses."""

    rule: PermissionRule
    error: InvalidFilter


class RuleStore:
    """Rules by their ranks: their places by salience. expected: how many, about."""

    def __init__(self, expected: int, limits: TableLimits, *, waiting: bool) -> None:
        self.invalid: list[Invalid] = []  # filters; the table is not to be used then
        self.parties = Parties(expected)
        self.kinds: dict[Kind, int] = {}
        self._numbers: dict[int, int] = {}  # of the kinds without names and wildcards at the beginning, by actions
        self._kinds_of_parties = [0]  # a bit for each kind
        self._bits: dict[int, int] = {}  # these, each once
        self._parties_seen: dict[tuple[str, str], int] = {}  # by attribute and name, while rules are inserted
        self._may_wait = waiting
        self._pause: Callable[[], None] = never
        self._put = 0  # rules, one by one, since the last pause
        self._filling = False
        self._ready: tuple[list[bytes], list[bytes]] = ([], [])  # filters behind key words, to be inserted, by syntax
        self._ready_ranks: tuple[list[int], list[int]] = ([], [])
        self.waiting = WaitingRules()
        self.waiting.packed.append(None)  # everybody
        max_words = min(limits.topic_words_max + WORDS_MORE, WORDS_CEILING)  # what is longer is denied
        self.index = FilterIndex(max_words, limits.topic_bytes_max + BYTES_MORE)
        self.allows = bytearray()
        self._lines = array("I")
        self._labels: list[str | None] = []  # names of rules, up to the last one that has one
        self.where: dict[int, Selector] = {}
        self._denials: dict[int, dict[int, DenialsByWord]] = {}  # by page, then by party and kind (`_place`)

    def fill(self, rules: Iterable[PermissionRule | PlainRows], pause: Callable[[], None]) -> None:
        """Insert all of them. pause: called now and then.

        What is to be in the index is collected and inserted without the GIL, so that no other thread waits while a
        table of the index grows.
        """
        self._pause, self._filling = pause, True
        since = 0
        for rule in rules:
            if isinstance(rule, PlainRows):
                self._insert_rows(rule)
                since += len(rule.lines)
            else:
                self._insert(rule)
                since += 1
            if since >= PAUSE_EVERY:
                since = 0
                self._flush()
                pause()
        self._flush()
        self._parties_seen.clear()
        self._pause, self._filling = never, False

    def _flush(self) -> None:
        """Insert what was collected."""
        for is_mqtt, filters in enumerate(self._ready):
            if filters:
                insert_many(self.index, filters, self._ready_ranks[is_mqtt], SYNTAXES[is_mqtt])
                filters.clear()
                self._ready_ranks[is_mqtt].clear()

    def _insert(self, rule: PermissionRule) -> None:
        rank = len(self.allows)
        party = self.parties.number(rule.who)
        if party == len(self._kinds_of_parties):
            self._begin(is_name(rule.who))
        self.allows.append(rule.allow)
        self._lines.append(rule.line)
        if rule.name is not None:
            self._labels.extend([None] * (rank - len(self._labels)))
            self._labels.append(rule.name)
        if rule.where is not None:
            self.where[rank] = rule.where
        for actions, pattern in rule.patterns:
            number = self._number_of(actions, pattern, rule.allow)
            self._note_kind(party, number)
            try:
                self._add(party, PackedRule(rank, number, SYNTAXES.index(pattern.syntax), pattern.filter))
            except InvalidFilter as error:
                self.invalid.append(Invalid(rule, _own_error(pattern, error)))

    def _begin(self, is_name: bool) -> None:
        """There is a new party."""
        self._kinds_of_parties.append(0)
        self.waiting.packed.append(b"" if self._may_wait and is_name else None)

    def _note_kind(self, party: int, number: int) -> None:
        bits = self._kinds_of_parties[party] | 1 << number
        self._kinds_of_parties[party] = self._bits.setdefault(bits, bits)  # parties share these numbers

    def _add(self, party: int, rule: PackedRule) -> None:
        """Raises InvalidFilter."""
        if rule.kind > PACKED_MAX or len(rule.filter) > PACKED_MAX:
            self.waiting.give_up(party, self)  # all rules of a party wait, or none
        if self.waiting.packed[party] is None:
            self.put_in(party, rule)
            return
        if rule.filter:
            syntax = SYNTAXES[rule.is_mqtt]
            self.index.check(LONGEST_KEYS[syntax] + rule.filter, syntax=syntax)
        self.waiting.keep(party, packed_rule(*rule), self)
        self._pause_if_many()

    def _pause_if_many(self) -> None:
        if self._put >= PAUSE_EVERY:  # many parties may have too many rules at the same place of the file
            self._put = 0
            self._flush()
            self._pause()

    def _insert_rows(self, rows: PlainRows) -> None:
        """The same as `_insert` of each of them. It is written out in one, for half of the time."""
        waiting, kinds, known = self.waiting, self._kinds_of_parties, self._parties_seen
        packed = waiting.packed
        allows, lines, index, ready, ranks = self.allows, self._lines, self.index, self._ready, self._ready_ranks
        numbers: dict[int, tuple[int, int]] = {}  # of kinds, with their bits
        if len(known) > SEEN_MAX:
            known.clear()
        for line, allow, attribute, name, actions, text in zip(*rows, strict=True):
            if text[0] in "#+*" or ":" in text:
                self._insert(rows.rule(line, allow, attribute, name, actions, text))
                continue
            party = known.get((attribute, name))
            if party is None:
                party = known[attribute, name] = self.parties.named(attribute, name) if attribute else EVERYBODY
                if party == len(packed):
                    self._begin(True)
            filter = text.encode()
            is_mqtt = "/" in text or "+" in text
            short = actions if allow else -actions
            if short not in numbers:
                number = self._number_of(actions, Pattern(filter, filter, SYNTAXES[is_mqtt]), allow)
                numbers[short] = number, 1 << number
            number, bit = numbers[short]
            if not kinds[party] & bit:
                self._note_kind(party, number)
            rank = len(allows)
            allows.append(allow)
            lines.append(line)
            own = packed[party]
            try:
                if own is None and allow:
                    index.check(LONGEST_KEYS[SYNTAXES[is_mqtt]] + filter, syntax=SYNTAXES[is_mqtt])
                    key = b"%xk%x/%b" if is_mqtt else b"%xk%x.%b"
                    ready[is_mqtt].append(key % (party, number, filter))
                    ranks[is_mqtt].append(rank)
                elif own is not None and number <= PACKED_MAX and len(filter) <= PACKED_MAX:
                    index.check(LONGEST_KEYS[SYNTAXES[is_mqtt]] + filter, syntax=SYNTAXES[is_mqtt])
                    if waiting.keep(party, packed_rule(rank, number, is_mqtt, filter), self):
                        self._pause_if_many()
                else:
                    self._add(party, PackedRule(rank, number, is_mqtt, filter))
            except InvalidFilter as error:
                rule = rows.rule(line, allow, attribute, name, actions, text)
                self.invalid.append(Invalid(rule, _own_error(rule.patterns[0][1], error)))

    def _number_of(self, actions: int, pattern: Pattern, allow: bool) -> int:
        """Of the kind of a rule with this pattern."""
        if pattern.filter[:1] in WILD or pattern.probes:
            kind = kind_of(actions, pattern, allow)
            return self.kinds.setdefault(kind, len(self.kinds))
        short = actions if allow else -actions
        number = self._numbers.get(short)
        if number is None:
            kind = kind_of(actions, pattern, allow)
            number = self._numbers[short] = self.kinds.setdefault(kind, len(self.kinds))
        return number

    def put_in(self, party: int, rule: PackedRule) -> None:
        """Into the index. Raises InvalidFilter."""
        self._put += 1
        syntax = SYNTAXES[rule.is_mqtt]
        filter = behind(key_word(party, rule.kind), rule.filter, syntax)
        if self._filling:
            self.index.check(filter, syntax=syntax)
            self._ready[rule.is_mqtt].append(filter)
            self._ready_ranks[rule.is_mqtt].append(rule.rank)
        else:
            self.index.insert(filter, rule.rank, syntax=syntax)
        if not self.allows[rule.rank]:
            first = b"" if starts_wild(rule.filter, syntax) else first_word(rule.filter, syntax)
            denial = Denial(rule.rank, rule.filter, syntax)
            page, place = _place(party, rule.kind)
            by_first = self._denials.setdefault(page, {}).setdefault(place, {})
            by_first.setdefault(first, []).append(denial)

    def take_out(self, party: int, rule: PackedRule) -> None:
        """Out of the index, with all others of the party."""
        syntax = SYNTAXES[rule.is_mqtt]
        self.index.remove(behind(key_word(party, rule.kind), rule.filter, syntax), rule.rank, syntax=syntax)
        page, place = _place(party, rule.kind)
        self._denials.get(page, {}).pop(place, None)

    def plain(self) -> Iterator[object]:
        """What grows with the rules, refers to nothing that refers to it, and is looked at by a collector of garbage:
        100,000 references take one some ms. When no rule will be inserted any more.
        """
        yield from (self._kinds_of_parties, self.waiting.packed)
        yield self._labels
        for page in self._denials.values():
            for by_first in page.values():
                for denials in by_first.values():
                    yield from denials
                    yield denials
                yield by_first
            yield page
        for selector in self.where.values():
            yield from _nodes(selector)
        yield self.where

    # -- looked at ----------------------------------------------------------------------------------------------------

    @property
    def attributes(self) -> frozenset[Attribute]:
        """What rules ask of messages, beside their topics."""
        tests = (test for selector in self.where.values() for test in leaves(selector))
        return frozenset(
            test.attribute for test in tests
            if test.attribute.source is not Source.MESSAGE or test.attribute.path[0] not in OF_TOPIC
        )

    def name_of(self, rank: int) -> str:
        """Of a rule: its name, or its place."""
        return (self._labels[rank] if rank < len(self._labels) else None) or f"line {self._lines[rank]}"

    def line(self, rank: int) -> int:
        """Of the file."""
        return self._lines[rank]

    @property
    def nbytes(self) -> int:
        """Bytes that grow with the rules, as far as they are counted: without names of rules, and without denials."""
        by_party = self._kinds_of_parties.__sizeof__() + self.waiting.nbytes + self.parties.nbytes
        return self.index.nbytes + len(self.allows) + 4 * len(self._lines) + by_party

    def numbers_of(self, party: int) -> Iterator[int]:
        """Of the kinds of rules that a party has."""
        bits = self._kinds_of_parties[party]
        while bits:
            yield (bits & -bits).bit_length() - 1
            bits &= bits - 1

    def denials(self, party: int, number: int, first: bytes) -> Iterator[Denial]:
        """Those that may match a topic that a filter with this first word matches; "": any first word."""
        page, place = _place(party, number)
        by_first = self._denials.get(page, {}).get(place)
        if by_first is None:
            return
        for word in (first, b"") if first else by_first:
            yield from by_first.get(word, ())


def _place(party: int, kind: int) -> tuple[int, int]:
    """Where its denials are: the page, and what they are found by there. No dict is so large that its growth is felt,
    and keys are numbers, which are nothing to a collector of garbage.
    """
    return party >> PAGE_BITS, party << 32 | kind


def _nodes(selector: Selector) -> Iterator[object]:
    """What a selector is made of."""
    yield selector
    match selector:
        case Constant():
            return
        case Not(part):
            yield from _nodes(part)
        case And(parts) | Or(parts) | AtLeast(parts=parts):
            yield parts
            for part in parts:
                yield from _nodes(part)
        case In(values=values):
            yield from (values, selector.attribute, selector.attribute.path)
        case _:
            yield from (selector.attribute, selector.attribute.path)


def _own_error(pattern: Pattern, error: InvalidFilter) -> InvalidFilter:
    """What is wrong with a filter without its key word."""
    try:
        parse_filter(pattern.text, pattern.syntax)
    except InvalidFilter as own:
        return own
    return error
