"""The table of permissions in force, which decides. It is the broker's core.permissions.Permissions.

    rule --its conditions--> party (parties.py) --its actions, its %u--> key word --before each filter--> FilterIndex

    allow, group = "sensors", publish = "site/%u/#"    ->    1k0/site/+/#        id: the place of the rule, by salience
    asked: one of sensors, publish on site/a/t         ->    1k0/site/a/t        the smallest id is the rule that wins

So one matchcore.FilterIndex has all rules. A decision asks it once for each party of the client that has rules for this
action, two or three times mostly. What a rule asks beside its filter is in its `Kind`, which the key word has, too.
Rules with `where` are looked at one after another, by matchcore's definition of a selector.

Clients that meet the same parties are of one class, and share a `ClassGrant` (class_grant.py). It has the names that
`%u`, `%c` and `%g` of these parties' rules stand for, if there are any. Those who bring rules along have a
`PersonalGrant` (personal.py) over it. Rules are in the order of (salience, place in the file).

A filter of an allowing rule that begins with a wildcard does not reach `$SYS` and `$inbox`; one of a denying rule does.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from fanlight_permissions.class_grant import DEFAULT, DENIED, ClassGrant, Denial
from fanlight_permissions.decisions import (
    ON_TOPICS,
    Action,
    Asker,
    Grant,
    Verdict,
)
from fanlight_permissions.namespace_entries import NamespaceEntries
from fanlight_permissions.parties import Parties, groups_of
from fanlight_permissions.permission_rule import (
    RESERVED,
    WILD,
    Pattern,
    PermissionRule,
)
from fanlight_permissions.reading import TableLimits
from fanlight_permissions.scopes import Kind, key_word, kind_of
from fanlight_permissions.topics import SEPARATORS, SYNTAXES, WORDS_CEILING, first_word
from matchcore.errors import InvalidFilter
from matchcore.filters import FilterIndex
from matchcore.grammar import parse_filter
from matchcore.kleene import OF_TOPIC
from matchcore.selector import Attribute, Selector, Source, leaves

if TYPE_CHECKING:
    from fanlight_permissions.personal import PersonalGrant, PersonalGrants

PAUSE_EVERY: Final = 256  # rules that are inserted, some 1 ms
WORDS_MORE: Final = 32  # of a key word, and of the topic that `outline` makes

Effects = Mapping[Action, bool]
CLOSED: Final[Effects] = {action: action is Action.CONNECT for action in Action}  # who comes in is authenticated


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
        self.namespaces: NamespaceEntries | None = None  # who is in which; None: everybody is in the root
        self.invalid: list[Invalid] = []  # filters; the table is not to be used then
        self.nothing = count  # in place of the number of a rule
        self._defaults = defaults
        self.parties = Parties()
        self.kinds: dict[Kind, int] = {}
        self._known: list[Kind] = []  # the same, by their numbers
        self._numbers: dict[int, int] = {}  # of the kinds without names and wildcards at the beginning, by actions
        self._kinds_of_parties = [0]  # a bit for each kind
        max_words = min(limits.topic_words_max + WORDS_MORE, WORDS_CEILING)  # what is longer is denied
        self.index = FilterIndex(max_words, limits.topic_bytes_max + 1_024)
        self.allows = bytearray(count)
        self._lines = array("I", bytes(4 * count))
        self._labels: dict[int, str] = {}  # of those that have a name
        self.where: dict[int, Selector] = {}
        self._denials: dict[tuple[int, int], dict[bytes, list[Denial]]] = {}  # by (party, kind) and first word
        self._classes: dict[object, ClassGrant] = {}
        self._free: list[int] = []  # numbers of classes
        self._given = 0
        self._personal: PersonalGrants | None = None
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
        return len(self._classes) + (len(self._personal) if self._personal is not None else 0)

    def label(self, rank: int) -> str:
        if rank == self.nothing:
            return ""
        return self._labels.get(rank) or f"line {self._lines[rank]}"

    def line(self, rank: int) -> int:
        """Of the file."""
        return self._lines[rank]

    @property
    def nbytes(self) -> int:
        """Bytes that grow with the rules, as far as they are counted: without conditions on askers and names."""
        return self.index.nbytes + len(self.allows) + 4 * len(self._lines)

    # -- classes ------------------------------------------------------------------------------------------------------

    def grant_of(self, asker: Asker) -> "ClassGrant | PersonalGrant":
        base = self._class_of(asker)
        if not asker.own:
            base.holders += 1
            return base
        if self._personal is None:
            from fanlight_permissions.personal import PersonalGrants  # for those who bring rules along

            self._personal = PersonalGrants(self._take_number, partial(heappush, self._free))
        base.holders += 1  # before a class is made: it is in use
        grant, is_new = self._personal.grant_of(base, asker)
        if not is_new:
            self.release(base)
        return grant

    def _class_of(self, asker: Asker) -> "ClassGrant":
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
            names = {"u": (asker.user,), "c": (asker.client,), "g": tuple(sorted(groups_of(asker)))}
            grant = self._classes[key] = ClassGrant(self, self._take_number(), key, names, [
                (party, number, known[number]) for party, number in kinds
            ])
        return grant

    def _take_number(self) -> int:
        """Of a new class: the smallest that is free, as the bits of routes are few."""
        if self._free:
            return heappop(self._free)
        self._given += 1
        return self._given - 1

    def namespace_of(self, asker: Asker) -> str:
        """The namespace that somebody is in; "": the root. Raises NoNamespace for who has no valid one."""
        return "" if self.namespaces is None else self.namespaces.of(asker)

    def numbers_of(self, party: int) -> Iterator[int]:
        """Of the kinds of rules that a party has."""
        bits = self._kinds_of_parties[party]
        while bits:
            yield (bits & -bits).bit_length() - 1
            bits &= bits - 1

    def release(self, grant: Grant) -> None:
        if not isinstance(grant, ClassGrant):
            assert self._personal is not None
            personal = cast("PersonalGrant", grant)
            if not self._personal.release(personal):
                return
            grant = personal.base
        assert isinstance(grant, ClassGrant)
        grant.holders -= 1
        if grant.holders == 0:
            del self._classes[grant.key]
            heappush(self._free, grant.number)

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


class Widest(NamedTuple):
    """Limits that are no tighter than any of a broker."""

    permissions_max: int = 0
    topic_words_max: int = WORDS_CEILING
    topic_bytes_max: int = 65_535


def table_without_rules() -> PermissionTable:
    """For those who bring rules along where no others are in force."""
    return PermissionTable((), 0, CLOSED, Widest())


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
