"""What a client may do that brings rules of its own (own_rules.py), beside the table in force.

What a denying rule of the table decides stays denied. Of the rest, the first of the client's own rules that is about
the action and the topic decides; if there is no such rule, the table decides, as for everybody.

    PermissionTable --grant_of--> ClassGrant, of the table alone --.
    Asker.own, a text --read once--> OwnSet, in one FilterIndex ---+--> PersonalGrant, of all with the same text

So own rules can allow what no rule of the table allows, can take away what it allows, and cannot lift what it denies.
Clients are of one class if they are of one class of the table and have the same text, and the same names where it has
`%u`, `%c` or `%g`. All texts share one index: a number of the set stands before each filter, as in table.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from fanlight_permissions.class_grant import ClassGrant
from fanlight_permissions.decisions import Access, Action, Asker, FilterVerdict, Verdict, Weighed
from fanlight_permissions.own_rules import WrongOwnRules, read_own
from fanlight_permissions.parties import groups_of
from fanlight_permissions.permission_rule import BITS, Pattern
from fanlight_permissions.scopes import Scope, behind, filled, kind_of, met, scope_of
from fanlight_permissions.topics import RESERVED, WORDS_CEILING, first_word
from matchcore.errors import TopicError
from matchcore.filters import FilterIndex
from matchcore.grammar import parse_filter
from matchcore.inclusion import covers, intersects
from matchcore.kleene import Fields

BYTES_MAX: Final = 70_000  # of a topic, 65,535 at most, and what stands before it
UNREADABLE: Final = "own rules that cannot be read"


class Clause(NamedTuple):
    """One filter of a rule, for one class."""

    actions: int
    allow: bool
    label: str
    pattern: Pattern
    scope: Scope


class OwnSet:
    """The rules of one text."""

    __slots__ = ("_index", "_plain", "holders", "letters", "number", "patterns", "readable", "text", "word")

    def __init__(self, text: str, number: int, index: FilterIndex) -> None:
        self.text, self.number, self._index = text, number, index
        self.holders = 0
        self.word = b"%xo" % number
        self.readable = True
        self.patterns: list[tuple[str, bool, int, Pattern]] = []  # by their numbers in the index
        try:
            rules = read_own(text)
        except WrongOwnRules:  # of a store that another version has written
            rules, self.readable = [], False
        for place, rule in enumerate(rules, 1):
            for bits, pattern in rule.patterns:
                index.insert(self._filter(pattern), len(self.patterns), syntax=pattern.syntax)
                self.patterns.append((f"own rule {place}", rule.allow, bits, pattern))
        self.letters = frozenset(probe.letter for _, _, _, pattern in self.patterns for probe in pattern.probes)
        self._plain: Sequence[Clause | None] | None = None

    def _filter(self, pattern: Pattern) -> bytes:
        return behind(self.word, pattern.filter, pattern.syntax)

    def clauses(self, names: Mapping[str, tuple[str, ...]]) -> Sequence[Clause | None]:
        """By their numbers. None: no name of the class fits."""
        if self.letters:
            return [self._clause(each, names) for each in self.patterns]
        if self._plain is None:
            self._plain = [self._clause(each, names) for each in self.patterns]
        return self._plain

    def _clause(
        self, given: tuple[str, bool, int, Pattern], names: Mapping[str, tuple[str, ...]]
    ) -> Clause | None:
        label, allow, bits, pattern = given
        scope = scope_of(self.word, kind_of(bits, pattern, allow), names)
        return Clause(bits, allow, label, pattern, scope) if scope is not None else None

    def found(self, topic: bytes, syntax: str) -> tuple[int, ...]:
        """Numbers of the filters that match, in the order of the rules. Raises TopicError."""
        return self._index.match(behind(self.word, topic, syntax), syntax=syntax or "amqp")

    def end(self) -> None:
        for number, (_, _, _, pattern) in enumerate(self.patterns):
            self._index.remove(self._filter(pattern), number, syntax=pattern.syntax)


class PersonalGrant:
    """What the clients of one class may do, of which each has the same rules of its own."""

    __slots__ = ("_clauses", "base", "holders", "key", "number", "own")

    def __init__(
        self, base: ClassGrant, own: OwnSet, number: int, key: object, names: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.base, self.own, self.number, self.key = base, own, number, key
        self.holders = 0
        self._clauses = own.clauses(names)

    def close(self) -> None:
        """Nobody has it any more: no rule of its own decides, and the number of its set may be another's."""
        self._clauses = ()

    def decide(
        self, action: Action, topic: bytes = b"", syntax: str = "", fields: Fields | None = None
    ) -> Verdict:
        """Raises InvalidTopic, as matchcore does."""
        verdict = self.base.decide(action, topic, syntax, fields)
        if not verdict.allowed and verdict.rule:
            return verdict  # a rule denies it, or its content decides, which is not here
        if not self.own.readable:
            return Verdict(False, UNREADABLE)
        try:
            clause = self._first(action, topic, syntax)
        except TopicError:  # the table has not refused it, so that it is too long with the number before it alone
            return Verdict(False)
        return verdict if clause is None else Verdict(clause.allow, clause.label, verdict.by_content)

    def permits(self, action: Action, topic: bytes, syntax: str) -> bool:
        """Is it allowed, whatever a message says? Raises InvalidTopic, as matchcore does."""
        verdict = self.decide(action, topic, syntax)
        return verdict.allowed and not verdict.by_content

    def _first(self, action: Action, topic: bytes, syntax: str) -> Clause | None:
        if not self._clauses:
            return None
        is_reserved = topic.startswith(b"$") and first_word(topic, syntax) in RESERVED
        for number in self.own.found(topic, syntax):
            clause = self._clauses[number]
            if clause is None or not clause.actions & BITS[action] or (is_reserved and not clause.scope.reserved):
                continue
            if not clause.scope.probes or met(clause.scope, topic, syntax):
                return clause
        return None

    def decide_filter(self, action: Action, filter: bytes, syntax: str) -> FilterVerdict:
        """Raises InvalidFilter, as matchcore does."""
        try:
            table = self.base.weigh(action, filter, syntax)
            own = self._weigh(action, filter, syntax)
        except TopicError:
            parse_filter(filter, syntax, max_words=WORDS_CEILING)  # raises the error of the filter itself
            return FilterVerdict(Access.NONE)
        if not self.own.readable:
            return FilterVerdict(Access.NONE, UNREADABLE)
        for weighed in (table, own):
            if weighed.whole:
                return FilterVerdict(Access.NONE, weighed.denying)
        allowing, denying = own.allowing or table.allowing, table.denying or own.denying
        if not allowing:
            return FilterVerdict(Access.NONE)
        return FilterVerdict(Access.PARTLY, allowing, denying) if denying else FilterVerdict(Access.ALL, allowing)

    def _weigh(self, action: Action, filter: bytes, syntax: str) -> Weighed:
        first = first_word(filter, syntax)
        asked = behind(self.own.word, filter, syntax)
        denying, whole = "", False
        for clause in self._of(action):
            scope, own = clause.scope, clause.pattern.syntax
            text = behind(self.own.word, clause.pattern.filter, own)
            made = [text] if scope.unfit else filled(scope, text, own)
            if clause.allow:
                if first in RESERVED and not scope.reserved:
                    continue
                if any(covers(each, asked, a_syntax=own, b_syntax=syntax) for each in made):
                    return Weighed(clause.label, denying, whole)
            elif not whole and any(intersects(each, asked, a_syntax=own, b_syntax=syntax) for each in made):
                whole = not scope.unfit and any(covers(each, asked, a_syntax=own, b_syntax=syntax) for each in made)
                denying = clause.label if whole else denying or clause.label
        return Weighed("", denying, whole)

    def _of(self, action: Action) -> Iterator[Clause]:
        for clause in self._clauses:
            if clause is not None and clause.actions & BITS[action] and clause.pattern.filter:
                yield clause


class PersonalGrants:
    """The classes of those with own rules, beside a table's.

    take, give_back  a number for a class, that no other class of the table has
    """

    def __init__(self, take: Callable[[], int], give_back: Callable[[int], None]) -> None:
        self._take, self._give_back = take, give_back
        self._index = FilterIndex(WORDS_CEILING, BYTES_MAX)
        self._sets: dict[str, OwnSet] = {}
        self._free: list[int] = []  # numbers of sets
        self._classes: dict[object, PersonalGrant] = {}

    def __len__(self) -> int:
        return len(self._classes)

    @property
    def nbytes(self) -> int:
        return self._index.nbytes

    def grant_of(self, base: ClassGrant, asker: Asker) -> tuple[PersonalGrant, bool]:
        """The grant, and whether it is new: the caller has given it the base for its lifetime then."""
        own = self._sets.get(asker.own)
        if own is None:
            number = self._free.pop() if self._free else len(self._sets)
            own = self._sets[asker.own] = OwnSet(asker.own, number, self._index)
        names = {"u": (asker.user,), "c": (asker.client,), "g": tuple(sorted(groups_of(asker)))}
        key = base.key, asker.own, tuple(names[letter] for letter in sorted(own.letters))
        grant = self._classes.get(key)
        is_new = grant is None
        if grant is None:
            grant = self._classes[key] = PersonalGrant(base, own, self._take(), key, names)
            own.holders += 1
        grant.holders += 1
        return grant, is_new

    def release(self, grant: PersonalGrant) -> bool:
        """Returns whether nobody has it any more: the base is the caller's to release then."""
        grant.holders -= 1
        if grant.holders:
            return False
        del self._classes[grant.key]
        grant.close()
        self._give_back(grant.number)
        own = grant.own
        own.holders -= 1
        if not own.holders:
            own.end()
            del self._sets[own.text]
            self._free.append(own.number)
        return True
