"""What the clients of one permission class may do, by a table of permissions (table.py): its ClassGrant.

A decision about a topic asks the table's index once for all key words of the class. One about a filter compares it
with the filters of rules: one that allows must cover it, and no more salient one that denies may intersect it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from fanlight_permissions.decisions import Access, Action, FilterVerdict, Verdict, Weighed
from fanlight_permissions.permission_rule import ANY_TOPIC, BITS
from fanlight_permissions.rule_store import Denial
from fanlight_permissions.scopes import (
    Kind,
    Scope,
    behind,
    filled,
    key_word,
    met,
    scope_of,
    words_of,
)
from fanlight_permissions.topics import ANY_WORDS, RESERVED, SYNTAXES, WORDS_CEILING, first_word
from matchcore.errors import TopicError
from matchcore.filters import FilterIndex
from matchcore.grammar import parse_filter, split_topic
from matchcore.inclusion import covers, intersects, outline
from matchcore.keyed import IdAnswers, KeyedIndex, KeyedSearch
from matchcore.kleene import Fields, holds, with_topic
from matchcore.selector import Selector

COMPARED_MAX: Final = 1_000  # filters that one filter is compared with; past it nothing is proven
DENIED: Final = Verdict(False)
DOLLAR: Final = ord("$")
DEFAULT: Final = "default"  # the rule of a decision that is the default's
DEFAULT_VERDICT: Final = Verdict(True, DEFAULT)


class RuleTable(Protocol):
    """What a decision needs of a table."""

    index: FilterIndex
    keyed: KeyedIndex  # of `index`
    where: dict[int, Selector]
    allows: bytearray

    @property
    def answers(self) -> IdAnswers: ...  # by rule: does it allow, and how often did it decide?

    nothing: int

    def verdict(self, rank: int) -> Verdict: ...
    def label(self, rank: int) -> str: ...
    def name_of(self, rank: int) -> str: ...
    def default(self, action: Action, topic: bytes, syntax: str) -> Verdict: ...
    def default_allows(self, action: Action) -> bool: ...
    def denials(self, party: int, number: int, first: bytes) -> Iterator[Denial]: ...


class ClassGrant(KeyedSearch):
    """What the clients of one permission class may do.

    It is its own search behind all key words of the class; there is one, and none for each action: where a class has
    not decided for a while, each object is a wait for memory.
    """

    __slots__ = ("_kinds", "_names", "_scopes", "_table", "holders", "key", "number", "parties", "prepared")

    def __init__(
        self, table: RuleTable, number: int, key: object, parties: frozenset[int],
        names: Mapping[str, tuple[str, ...]], kinds: Sequence[tuple[int, int, Kind]],
    ) -> None:
        self._table = table
        self.number = number
        self.key = key
        self.parties = parties
        self.holders = 0
        self._names = names
        self._kinds = kinds
        self._scopes: dict[Action, list[Scope]] = {}
        self.prepared = False  # does it ask the index?

    def close(self) -> None:
        """Nobody has it any more, and its rules may leave the index: whatever it would be asked is the default's."""
        self._kinds = ()
        self._scopes.clear()
        self.end()
        self.prepared = False

    def _prepare(self) -> None:
        keys = []
        for party, number, kind in self._kinds:
            scope = self._scope(party, number, kind)
            if scope is not None:
                keys.append((scope.word, kind.actions, scope.probes))
        self.begin(self._table.keyed, tuple(keys))
        self.prepared = True

    def _scopes_of(self, action: Action) -> list[Scope]:
        found = [
            scope for party, number, kind in self._kinds
            if kind.actions & BITS[action] and (scope := self._scope(party, number, kind)) is not None
        ]
        self._scopes[action] = found
        return found

    def _scope(self, party: int, number: int, kind: Kind) -> Scope | None:
        """None: no name of this class fits."""
        return scope_of(key_word(party, number), kind, self._names)

    # -- topics -------------------------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        def permits(self, action: Action, topic: bytes, syntax: str) -> bool:
            """Is it allowed, whatever a message says? Only a yes is counted. Raises InvalidTopic, as matchcore does."""
            ...

    else:
        permits = KeyedSearch.ask  # compiled: it has the answers of rules, or goes on below

    def ask_otherwise(self, kind: Action, topic: bytes, syntax: str) -> bool:
        verdict, rank = self._decided(kind, topic, syntax, None)
        if not verdict.allowed or verdict.by_content:
            return False
        self._count(rank)
        return True

    def decide(
        self, action: Action, topic: bytes = b"", syntax: str = "", fields: Fields | None = None
    ) -> Verdict:
        """Raises InvalidTopic, as matchcore does."""
        verdict, rank = self._decided(action, topic, syntax, fields)
        self._count(rank)
        return verdict

    def _count(self, rank: int) -> None:
        if rank != self._table.nothing:
            self._table.answers.add(rank)

    def _decided(self, action: Action, topic: bytes, syntax: str, fields: Fields | None) -> tuple[Verdict, int]:
        """And the rule that decides, or `nothing`."""
        table = self._table
        try:
            if not topic or table.where or topic[0] == DOLLAR:
                return self._decided_slowly(action, topic, syntax, fields)
            if not self.prepared:
                self._prepare()
            found = self.least(topic, BITS[action], syntax)
        except TopicError:
            split_topic(topic, syntax, max_words=WORDS_CEILING)  # raises the topic's own error
            return DENIED, table.nothing  # it is longer than any that a client may publish on
        if found is None:
            return table.default(action, topic, syntax), table.nothing
        return table.verdict(found), found

    def _decided_slowly(
        self, action: Action, topic: bytes, syntax: str, fields: Fields | None
    ) -> tuple[Verdict, int]:
        """The same, where topics are reserved, or rules have a `where`. Raises TopicError."""
        table = self._table
        scopes = self._scopes.get(action)
        if scopes is None:
            scopes = self._scopes_of(action)
        match = table.index.match
        best = table.nothing
        conditional: list[int] = []
        is_reserved = topic.startswith(b"$") and first_word(topic, syntax or SYNTAXES[0]) in RESERVED
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
        if conditional and min(conditional) < best:
            return self._decided_by_content(action, topic, syntax, fields, best, conditional)
        return self._verdict(action, topic, syntax, best, False), best

    def searches(self, action: Action, topic: bytes, syntax: str) -> list[bytes]:
        """For benches: what the index is asked for a decision."""
        return [
            behind(scope.word, topic, syntax) for scope in self._scopes.get(action) or self._scopes_of(action)
            if not scope.probes or met(scope, topic, syntax)
        ]

    def _decided_by_content(
        self, action: Action, topic: bytes, syntax: str, fields: Fields | None, best: int, conditional: Sequence[int]
    ) -> tuple[Verdict, int]:
        table = self._table
        if fields is None:
            return Verdict(False, table.label(min(conditional)), True), table.nothing
        values = with_topic(fields, words_of(topic, syntax))
        for rank in sorted({rank for rank in conditional if rank < best}):
            if holds(table.where[rank], values) is True:
                best = rank
                break
        return self._verdict(action, topic, syntax, best, True), best

    def _verdict(self, action: Action, topic: bytes, syntax: str, rank: int, by_content: bool) -> Verdict:
        table = self._table
        if rank == table.nothing:
            verdict = table.default(action, topic, syntax)
            return verdict._replace(by_content=True) if by_content else verdict
        return Verdict(table.allows[rank] == 1, table.label(rank), by_content)

    # -- filters ------------------------------------------------------------------------------------------------------

    def decide_filter(self, action: Action, filter: bytes, syntax: str) -> FilterVerdict:
        """`PARTLY` is also the answer where nothing else is proven: COMPARED_MAX bounds the work.

        Raises InvalidFilter, as matchcore does.
        """
        table = self._table
        try:
            allowing, denying, whole = self._deciding(action, filter, syntax)
        except TopicError:
            parse_filter(filter, syntax, max_words=WORDS_CEILING)  # as above
            return FilterVerdict(Access.NONE)
        if allowing is None:
            return FilterVerdict(Access.NONE)
        rule = table.label(allowing) or DEFAULT
        if denying is None:
            if allowing != table.nothing:
                table.answers.add(allowing)
            return FilterVerdict(Access.ALL, rule)
        table.answers.add(denying)
        if whole:
            return FilterVerdict(Access.NONE, table.label(denying))
        return FilterVerdict(Access.PARTLY, rule, table.label(denying))

    def weigh(self, action: Action, filter: bytes, syntax: str) -> Weighed:
        """Which rules count for a filter, for those who have rules of their own. Raises TopicError."""
        label = self._table.label
        allowing, denying, whole = self._deciding(action, filter, syntax, always=True)
        return Weighed(
            "" if allowing is None else label(allowing) or DEFAULT, "" if denying is None else label(denying), whole
        )

    def _deciding(
        self, action: Action, filter: bytes, syntax: str, *, always: bool = False
    ) -> tuple[int | None, int | None, bool]:
        """The rules of `_covering` and `_denying`. always: look for the second without the first, too."""
        first = first_word(filter, syntax)
        allowing, covering = self._covering(action, filter, syntax, first)
        if allowing is None and not always:
            return None, None, False
        before = self._table.nothing if allowing is None else allowing
        if covering < before:
            return allowing, covering, True
        wild = first in (ANY_TOPIC, ANY_WORDS[SYNTAXES.index(syntax) :][:1])
        return allowing, self._denying(action, filter, syntax, b"" if wild else first, before), False

    def _covering(self, action: Action, filter: bytes, syntax: str, first: bytes) -> tuple[int | None, int]:
        """The most salient rules of those that are about all that a filter matches: one that allows, one that denies.

        `nothing`: there is no rule, and of the first kind the default allows it; None: nothing does. What allows
        behind the one that denies allows nothing of the filter.
        """
        table = self._table
        best = denying = table.nothing
        compared = 0
        for scope in self._scopes.get(action) or self._scopes_of(action):
            if first in RESERVED and not scope.reserved:
                continue
            asked = behind(scope.word, filter, syntax)
            _, topic = outline(asked, syntax)
            for text, own, rank in sorted(table.index.matching(topic, syntax=syntax), key=_by_rank):
                allows = table.allows[rank]
                if rank >= (best if allows else denying):
                    break  # a scope has rules of one kind
                if rank in table.where or scope.unfit:
                    continue
                compared += 1
                if compared > COMPARED_MAX:
                    return best if best != table.nothing else None, denying
                made = filled(scope, _bytes(text), own)
                if any(covers(each, asked, a_syntax=own, b_syntax=syntax) for each in made):
                    if allows:
                        best = rank
                    else:
                        denying = rank
                    break
        if best == table.nothing and not (table.default_allows(action) and first not in RESERVED):
            return None, denying
        return best, denying

    def _denying(self, action: Action, filter: bytes, syntax: str, first: bytes, allowing: int) -> int | None:
        """The most salient rule that denies some of what a filter matches, before another allows it.

        Past COMPARED_MAX comparisons the next rule is taken for one that does.
        """
        table = self._table
        best: int | None = None
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
                    return rank
                # Behind the key word no wildcard is the first word, which would not stand for words that begin with $.
                asked, text = behind(scope.word, filter, syntax), behind(scope.word, text, own)
                # A name that is no word of a filter may be one of a topic in the other syntax: any word, then.
                made = [text] if scope.unfit else filled(scope, text, own)
                if any(intersects(each, asked, a_syntax=own, b_syntax=syntax) for each in made):
                    best = rank
        return best


def _by_rank(found: tuple[object, str, int]) -> int:
    return found[2]


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()
