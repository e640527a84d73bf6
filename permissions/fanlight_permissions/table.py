"""The table of permissions in force, which decides. It is the broker's core.permissions.Permissions.

    rule --its conditions--> party (parties.py) --its actions, its %u--> key word --before each filter--> FilterIndex

    allow, group = "sensors", publish = "site/%u/#"    ->    1k0/site/+/#        id: the place of the rule, by salience
    asked: one of sensors, publish on site/a/t         ->    1k0/site/a/t        the smallest id is the rule that wins

So one matchcore.FilterIndex has all rules. A decision asks it once for each party of the client that has rules for this
action, two or three times mostly. What a rule asks beside its filter is in its `Kind`, which the key word has, too.
Rules with `where` are looked at one after another, by matchcore's definition of a selector.

Clients that meet the same parties are of one class, and share a `ClassGrant`. It has the names that `%u`, `%c` and `%g`
of these parties' rules stand for, if there are any. Rules are in the order of (salience, place in the file).

A filter of an allowing rule that begins with a wildcard does not reach `$SYS` and `$inbox`; one of a denying rule does.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple

from fanlight_permissions.decisions import (
    ON_TOPICS,
    Access,
    Action,
    Asker,
    FilterVerdict,
    Grant,
    Verdict,
)
from fanlight_permissions.parties import Parties, groups_of
from fanlight_permissions.permission_rule import (
    ANY_TOPIC,
    BITS,
    RESERVED,
    WILD,
    Pattern,
    PermissionRule,
    fits,
)
from fanlight_permissions.reading import TableLimits
from fanlight_permissions.scopes import Kind, Scope, behind, filled, is_word, key_word, kind_of, met, words_of
from fanlight_permissions.topics import ANY_WORDS, SEPARATORS, SYNTAXES, first_word
from matchcore.errors import InvalidFilter, TopicError
from matchcore.filters import FilterIndex
from matchcore.grammar import parse_filter, split_topic
from matchcore.inclusion import covers, intersects, outline
from matchcore.kleene import OF_TOPIC, Fields, holds, with_topic
from matchcore.selector import Attribute, Selector, Source, leaves

COMPARED_MAX: Final = 1_000  # filters that one filter is compared with; past it nothing is proven
PAUSE_EVERY: Final = 256  # rules that are inserted, some 1 ms
WORDS_MORE: Final = 32  # of a key word, and of the topic that `outline` makes
DENIED: Final = Verdict(False)
DEFAULT: Final = "default"  # the rule of a decision that is the default's

Effects = Mapping[Action, bool]


class Denial(NamedTuple):
    rank: int
    filter: bytes  # with wildcards in the place of names, and without the key word
    syntax: str


class Invalid(NamedTuple):
    """A filter that the matcher refuses."""

    rule: PermissionRule
    error: InvalidFilter


class PermissionTable:
    """Rules that do not change. Counters do, and the classes that clients are in.

    rules     in their order (`in_order`); each is asked for once, and not kept
    count     of them
    defaults  of actions that no rule decides: allowed?
    pause     called now and then while rules are inserted
    """

    unrestricted = False

    def __init__(
        self, rules: Iterable[PermissionRule], count: int, defaults: Effects, limits: TableLimits,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self.invalid: list[Invalid] = []  # filters; the table is not to be used then
        self.nothing = count  # in place of the number of a rule
        self._defaults = defaults
        self.parties = Parties()
        self.kinds: dict[Kind, int] = {}
        self._known: list[Kind] = []  # the same, by their numbers
        self._numbers: dict[int, int] = {}  # of the kinds without names and wildcards at the beginning, by actions
        self._kinds_of_parties = [0]  # a bit for each kind
        self.index = FilterIndex(limits.topic_words_max + WORDS_MORE, limits.topic_bytes_max + 1_024)
        self.allows = bytearray(count)
        self._lines = array("I", bytes(4 * count))
        self._labels: dict[int, str] = {}  # of those that have a name
        self.where: dict[int, Selector] = {}
        self._denials: dict[tuple[int, int], dict[bytes, list[Denial]]] = {}  # by (party, kind) and first word
        self._classes: dict[object, ClassGrant] = {}
        self._free: list[int] = []
        self.hits: Counter[int] = Counter()  # decisions, by the numbers of rules
        for rank, rule in enumerate(rules):
            self._insert(rank, rule)
            if rank % PAUSE_EVERY == PAUSE_EVERY - 1:
                pause()
        self._known += self.kinds

    def _insert(self, rank: int, rule: PermissionRule) -> None:
        party = self.parties.number(rule.who)
        if party == len(self._kinds_of_parties):
            self._kinds_of_parties.append(0)
        self.allows[rank] = rule.allow
        self._lines[rank] = rule.line
        if rule.name is not None:
            self._labels[rank] = rule.name
        if rule.where is not None:
            self.where[rank] = rule.where
        for actions, pattern in rule.patterns:
            number = self._number_of(actions, pattern, rule.allow)
            self._kinds_of_parties[party] |= 1 << number
            word, filter, syntax = key_word(party, number), pattern.filter, pattern.syntax
            try:
                self.index.insert(word + SEPARATORS[syntax] + filter if filter else word, rank, syntax=syntax)
            except InvalidFilter as error:
                self.invalid.append(Invalid(rule, _own_error(pattern, error)))
                continue
            if not rule.allow:
                first = b"" if pattern.begins_with_wildcard else first_word(pattern.filter, pattern.syntax)
                denial = Denial(rank, pattern.filter, pattern.syntax)
                self._denials.setdefault((party, number), {}).setdefault(first, []).append(denial)

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

    def __len__(self) -> int:
        return self.nothing

    @property
    def attributes(self) -> frozenset[Attribute]:
        """What rules ask of messages, beside their topics."""
        tests = (test for selector in self.where.values() for test in leaves(selector))
        return frozenset(
            test.attribute for test in tests
            if test.attribute.source is not Source.MESSAGE or test.attribute.path[0] not in OF_TOPIC
        )

    @property
    def classes(self) -> int:
        """Permission classes that somebody is in."""
        return len(self._classes)

    def label(self, rank: int) -> str:
        if rank == self.nothing:
            return ""
        return self._labels.get(rank) or f"line {self._lines[rank]}"

    @property
    def nbytes(self) -> int:
        """Bytes that grow with the rules, as far as they are counted: without conditions on askers and names."""
        return self.index.nbytes + len(self.allows) + 4 * len(self._lines)

    # -- classes ------------------------------------------------------------------------------------------------------

    def grant_of(self, asker: Asker) -> "ClassGrant":
        parties = self.parties.of(asker)
        kinds = [(party, number) for party in sorted(parties) for number in self.numbers_of(party)]
        known = self._known
        letters = {probe.letter for _, number in kinds for probe in known[number].probes}
        key = (
            parties, asker.user if "u" in letters else None, asker.client if "c" in letters else None,
            frozenset(groups_of(asker)) if "g" in letters else None,
        )
        grant = self._classes.get(key)
        if grant is None:
            number = heappop(self._free) if self._free else len(self._classes)
            names = {"u": (asker.user,), "c": (asker.client,), "g": tuple(sorted(groups_of(asker)))}
            grant = self._classes[key] = ClassGrant(self, number, key, names, [
                (party, number, known[number]) for party, number in kinds
            ])
        grant.holders += 1
        return grant

    def numbers_of(self, party: int) -> Iterator[int]:
        """Of the kinds of rules that a party has."""
        bits = self._kinds_of_parties[party]
        while bits:
            yield (bits & -bits).bit_length() - 1
            bits &= bits - 1

    def release(self, grant: Grant) -> None:
        assert isinstance(grant, ClassGrant)
        grant.holders -= 1
        if grant.holders == 0:
            del self._classes[grant.key]
            heappush(self._free, grant.number)  # the smallest first: the bits of routes stay few

    def counts(self, most: int) -> dict[str, int]:
        """Decisions by rules, of the most salient ones."""
        return {self.label(rank): self.hits[rank] for rank in range(min(most, self.nothing))}

    # -- what grants ask ----------------------------------------------------------------------------------------------

    def default(self, action: Action, topic: bytes, syntax: str) -> Verdict:
        if not self._defaults[action]:
            return DENIED
        is_reserved = (
            action in ON_TOPICS and topic.startswith(b"$") and first_word(topic, syntax or SYNTAXES[0]) in RESERVED
        )
        return DENIED if is_reserved else Verdict(True, DEFAULT)

    def default_allows(self, action: Action) -> bool:
        return self._defaults[action]

    def denials(self, party: int, number: int, first: bytes) -> Iterator[Denial]:
        """Those that may match a topic that a filter with this first word matches; "": any first word."""
        by_first = self._denials.get((party, number))
        if by_first is None:
            return
        for word in (first, b"") if first else by_first:
            yield from by_first.get(word, ())


class ClassGrant:
    """What the clients of one permission class may do."""

    __slots__ = ("_kinds", "_match", "_names", "_quick", "_scopes", "_table", "holders", "key", "number")

    def __init__(
        self, table: PermissionTable, number: int, key: object, names: Mapping[str, tuple[str, ...]],
        kinds: Sequence[tuple[int, int, Kind]],
    ) -> None:
        self._table = table
        self.number = number
        self.key = key
        self.holders = 0
        self._names = names
        self._kinds = kinds
        self._scopes: dict[Action, list[Scope]] = {}
        # By syntax and action: key words with the separator, and the scope where it has names.
        self._quick: dict[str, dict[Action, list[tuple[bytes, Scope | None]]]] = {each: {} for each in SYNTAXES}
        self._match = table.index.match

    def _quick_of(self, action: Action, syntax: str) -> list[tuple[bytes, Scope | None]]:
        found = [(each.before[syntax], each if each.probes else None) for each in self._scopes_of(action)]
        self._quick[syntax][action] = found
        return found

    def _scopes_of(self, action: Action) -> list[Scope]:
        found = [
            scope for party, number, kind in self._kinds
            if kind.actions & BITS[action] and (scope := self._scope(party, number, kind)) is not None
        ]
        self._scopes[action] = found
        return found

    def _scope(self, party: int, number: int, kind: Kind) -> Scope | None:
        """None: no name of this class fits."""
        word = key_word(party, number)
        probes: list[tuple[int, tuple[bytes, ...]]] = []
        unfit = False
        for probe in kind.probes:
            names = self._names[probe.letter]
            if kind.allow:
                names = tuple(name for name in names if fits(name, probe, kind.syntax))
            if not names:
                return None
            unfit |= any(not is_word(name, kind.syntax) for name in names)
            probes.append((probe.position, tuple(name.encode("utf-8", "surrogatepass") for name in names)))
        before = {syntax: word + separator for syntax, separator in SEPARATORS.items()}
        return Scope(word, before, kind.reserved, tuple(probes), unfit)

    # -- topics -------------------------------------------------------------------------------------------------------

    def decide(
        self, action: Action, topic: bytes = b"", syntax: str = "", fields: Fields | None = None
    ) -> Verdict:
        """Raises InvalidTopic, as matchcore does."""
        table = self._table
        if not topic or table.where or topic.startswith(b"$"):
            return self._decide_slowly(action, topic, syntax, fields)
        quick = self._quick[syntax].get(action)
        if quick is None:
            quick = self._quick_of(action, syntax)
        best = table.nothing
        try:
            for before, scope in quick:
                if scope is None or met(scope, topic, syntax):
                    found = self._match(before + topic, syntax=syntax)
                    if found and found[0] < best:
                        best = found[0]
        except TopicError:
            split_topic(topic, syntax)  # raises the error of the topic itself, without the key word
            return DENIED  # it is longer than any that a client may publish on
        return self._verdict(action, topic, syntax, best, False)

    def _decide_slowly(self, action: Action, topic: bytes, syntax: str, fields: Fields | None) -> Verdict:
        """The same, where topics are reserved, or rules have a `where`."""
        table = self._table
        scopes = self._scopes.get(action)
        if scopes is None:
            scopes = self._scopes_of(action)
        match = table.index.match
        best = table.nothing
        conditional: list[int] = []
        is_reserved = topic.startswith(b"$") and first_word(topic, syntax or SYNTAXES[0]) in RESERVED
        try:
            for scope in scopes:
                if scope.probes and not met(scope, topic, syntax):
                    continue
                if is_reserved and not scope.reserved:
                    continue
                found = match(scope.before[syntax] + topic, syntax=syntax) if topic else match(scope.word)
                if not found:
                    continue
                if not table.where:
                    if found[0] < best:
                        best = found[0]
                    continue
                for rank in found:
                    if rank not in table.where:
                        best = min(best, rank)
                        break
                    conditional.append(rank)
        except TopicError:
            split_topic(topic, syntax)  # as above
            return DENIED
        if conditional and min(conditional) < best:
            return self._decide_by_content(action, topic, syntax, fields, best, conditional)
        return self._verdict(action, topic, syntax, best, False)

    def searches(self, action: Action, topic: bytes, syntax: str) -> list[bytes]:
        """For benches: what the index is asked for a decision."""
        return [
            behind(scope.word, topic, syntax) for scope in self._scopes.get(action) or self._scopes_of(action)
            if not scope.probes or met(scope, topic, syntax)
        ]

    def _decide_by_content(
        self, action: Action, topic: bytes, syntax: str, fields: Fields | None, best: int, conditional: Sequence[int]
    ) -> Verdict:
        table = self._table
        if fields is None:
            return Verdict(False, table.label(min(conditional)), True)
        values = with_topic(fields, words_of(topic, syntax))
        for rank in sorted({rank for rank in conditional if rank < best}):
            if holds(table.where[rank], values) is True:
                best = rank
                break
        return self._verdict(action, topic, syntax, best, True)

    def _verdict(self, action: Action, topic: bytes, syntax: str, rank: int, by_content: bool) -> Verdict:
        table = self._table
        if rank == table.nothing:
            verdict = table.default(action, topic, syntax)
            return verdict._replace(by_content=True) if by_content else verdict
        table.hits[rank] += 1
        return Verdict(table.allows[rank] == 1, table.label(rank), by_content)

    # -- filters ------------------------------------------------------------------------------------------------------

    def decide_filter(self, action: Action, filter: bytes, syntax: str) -> FilterVerdict:
        """`PARTLY` is also the answer where nothing else is proven: COMPARED_MAX bounds the work.

        Raises InvalidFilter, as matchcore does.
        """
        table = self._table
        first = first_word(filter, syntax)
        try:
            allowing = self._allowing(action, filter, syntax, first)
            if allowing is None:
                return FilterVerdict(Access.NONE)
            wild = first in (ANY_TOPIC, ANY_WORDS[SYNTAXES.index(syntax) :][:1])
            denying, whole = self._denying(action, filter, syntax, b"" if wild else first, allowing)
        except TopicError:
            parse_filter(filter, syntax)  # as above
            return FilterVerdict(Access.NONE)
        rule = table.label(allowing) or DEFAULT
        if denying is None:
            if allowing != table.nothing:
                table.hits[allowing] += 1
            return FilterVerdict(Access.ALL, rule)
        table.hits[denying] += 1
        if whole:
            return FilterVerdict(Access.NONE, table.label(denying))
        return FilterVerdict(Access.PARTLY, rule, table.label(denying))

    def _allowing(self, action: Action, filter: bytes, syntax: str, first: bytes) -> int | None:
        """The most salient rule that allows all that a filter matches; `nothing`: the default does; None: none."""
        table = self._table
        best = table.nothing
        compared = 0
        for scope in self._scopes.get(action) or self._scopes_of(action):
            if first in RESERVED and not scope.reserved:
                continue
            asked = behind(scope.word, filter, syntax)
            _, topic = outline(asked, syntax)
            for text, own, rank in sorted(table.index.matching(topic, syntax=syntax), key=_by_rank):
                if rank >= best:
                    break
                if not table.allows[rank] or rank in table.where:
                    continue
                compared += 1
                if compared > COMPARED_MAX:
                    return best if best != table.nothing else None
                made = filled(scope, _bytes(text), own)
                if any(covers(each, asked, a_syntax=own, b_syntax=syntax) for each in made):
                    best = rank
                    break
        if best == table.nothing and not (table.default_allows(action) and first not in RESERVED):
            return None
        return best

    def _denying(
        self, action: Action, filter: bytes, syntax: str, first: bytes, allowing: int
    ) -> tuple[int | None, bool]:
        """The most salient rule that denies some of what a filter matches, before another allows it; is it all of it?

        Past COMPARED_MAX comparisons the next rule is taken for one that does.
        """
        table = self._table
        best: int | None = None
        whole = False
        compared = 0
        for party, number, kind in self._kinds:
            if kind.allow or not kind.actions & BITS[action]:
                continue
            scope = self._scope(party, number, kind)
            if scope is None:
                continue
            for rank, text, own in table.denials(party, number, first):
                if rank >= allowing or (best is not None and rank >= best):
                    continue
                compared += 1
                if compared > COMPARED_MAX:
                    return rank, False
                # Behind the key word no wildcard is the first word, which would not stand for words that begin with $.
                asked, text = behind(scope.word, filter, syntax), behind(scope.word, text, own)
                # A name that is no word of a filter may be one of a topic in the other syntax: any word, then.
                made = [text] if scope.unfit else filled(scope, text, own)
                if any(intersects(each, asked, a_syntax=own, b_syntax=syntax) for each in made):
                    best = rank
                    whole = rank not in table.where and not scope.unfit and any(
                        covers(each, asked, a_syntax=own, b_syntax=syntax) for each in made
                    )
        return best, whole


def _own_error(pattern: Pattern, error: InvalidFilter) -> InvalidFilter:
    """What is wrong with a filter without its key word."""
    try:
        parse_filter(pattern.text, pattern.syntax)
    except InvalidFilter as own:
        return own
    return error


def in_order(rules: list[PermissionRule]) -> list[PermissionRule]:
    """By salience; in a file without any the order is that of the file."""
    return sorted(rules, key=lambda rule: rule.order) if any(rule.salience for rule in rules) else rules


def _by_rank(found: tuple[object, str, int]) -> int:
    return found[2]


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()
