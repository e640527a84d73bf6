"""The table of permissions in force, which decides. It is the broker's core.permissions.Permissions.

    rule --its conditions--> party (parties.py) --its actions, its %u--> key word --before each filter--> FilterIndex

    allow, group = "sensors", publish = "site/%u/#"    ->    1k0/site/+/#        id: the place of the rule, by salience
    asked: one of sensors, publish on site/a/t         ->    1k0/site/a/t        the smallest id is the rule that wins

So one matchcore.FilterIndex has all rules (rule_store.py), but for those that are about nobody who is there
(waiting.py). A decision asks it once for all parties of the client that have rules for this action, two or three
mostly. What a rule asks beside its filter is in its `Kind`, which the key word has, too. Rules with `where` are looked
at one after another, by matchcore's definition of a selector.

Clients that meet the same parties are of one class, and share a `ClassGrant` (class_grant.py). It has the names that
`%u`, `%c` and `%g` of these parties' rules stand for, if there are any. Those who bring rules along have a
`PersonalGrant` (personal.py) over it. Rules are in the order of (salience, place in the file).

A filter of an allowing rule that begins with a wildcard does not reach `$SYS`, `$audit`, `$inbox` and `$stream`; one of
a denying rule does.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from heapq import heappop, heappush, merge
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from fanlight_permissions.class_grant import DEFAULT_VERDICT, DENIED, ClassGrant
from fanlight_permissions.decisions import (
    ON_TOPICS,
    Action,
    Asker,
    Grant,
    Verdict,
)
from fanlight_permissions.namespace_entries import NamespaceEntries
from fanlight_permissions.parties import groups_of
from fanlight_permissions.permission_rule import BITS, PermissionRule
from fanlight_permissions.plain_rows import PlainRows
from fanlight_permissions.reading import TableLimits
from fanlight_permissions.rule_store import RuleStore
from fanlight_permissions.scopes import Kind
from fanlight_permissions.topics import RESERVED, SYNTAXES, WORDS_CEILING, first_word
from matchcore.keyed import IdAnswers, KeyedIndex

if TYPE_CHECKING:
    from fanlight_permissions.personal import PersonalGrant, PersonalGrants

Effects = Mapping[Action, bool]
RUN: Final = 1_024  # rules that are sorted at once, 0.5 ms
CLOSED: Final[Effects] = {action: action is Action.CONNECT for action in Action}  # who comes in is authenticated


class PermissionTable(RuleStore):
    """Rules that do not change. Counters do, and the classes that clients are in.

    rules     in their order (`in_order`); each is asked for once, and not kept
    count     of them, about
    defaults  of actions that no rule decides: allowed?
    pause     called now and then while rules are inserted
    waiting   rules of one name are put into the index when somebody comes whom they are about (waiting.py)
    """

    unrestricted = False

    def __init__(
        self, rules: Iterable[PermissionRule | PlainRows], count: int, defaults: Effects, limits: TableLimits,
        pause: Callable[[], None] = lambda: None, *, waiting: bool = False,
    ) -> None:
        super().__init__(count, limits, waiting=waiting)
        self.namespaces: NamespaceEntries | None = None  # who is in which; None: everybody is in the root
        self._defaults = defaults
        self._classes: dict[object, ClassGrant] = {}
        self._free: list[int] = []  # numbers of classes
        self._given = 0
        self._personal: PersonalGrants | None = None
        self.let_go: Callable[[list[Any]], None] | None = None  # is given what is large of it, when it is no more
        pause()
        self.fill(rules, pause)
        pause()
        self.nothing = len(self.allows)  # in place of the number of a rule
        self.keyed = KeyedIndex(self.index, IdAnswers(self.allows), BITS, dict(defaults))
        self._known: list[Kind] = list(self.kinds)  # by their numbers
        pause()

    def __len__(self) -> int:
        return self.nothing

    def __del__(self) -> None:
        if self.let_go is not None:  # one that is whole, and in force or was
            self.let_go([self.answers, self.index, self.parties, self._denials, self.waiting.packed])

    @property
    def answers(self) -> IdAnswers:
        """By rule: does it allow, and how often did it decide?"""
        return self.keyed.answers

    @answers.setter
    def answers(self, answers: IdAnswers) -> None:
        self.keyed.answers = answers

    @property
    def classes(self) -> int:
        """Permission classes that somebody is in."""
        return len(self._classes) + (len(self._personal) if self._personal is not None else 0)

    def label(self, rank: int) -> str:
        return "" if rank == self.nothing else self.name_of(rank)

    def verdict(self, rank: int) -> Verdict:
        """Of a rule, whatever a message says."""
        return Verdict(self.allows[rank] == 1, self.name_of(rank))

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
            self.waiting.come(parties, self)
            names = {"u": (asker.user,), "c": (asker.client,), "g": tuple(sorted(groups_of(asker)))}
            grant = self._classes[key] = ClassGrant(self, self._take_number(), key, parties, names, [
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
            self.waiting.go(grant.parties)
            grant.close()
            heappush(self._free, grant.number)

    def counts(self, most: int) -> dict[str, int]:
        """Decisions by rules, of the most salient ones."""
        return {self.label(rank): self.answers.count(rank) for rank in range(min(most, self.nothing))}

    # -- what grants ask ----------------------------------------------------------------------------------------------

    def default(self, action: Action, topic: bytes, syntax: str) -> Verdict:
        if not self._defaults[action]:
            return DENIED
        is_reserved = (
            action in ON_TOPICS and topic.startswith(b"$") and first_word(topic, syntax or SYNTAXES[0]) in RESERVED
        )
        return DENIED if is_reserved else DEFAULT_VERDICT

    def default_allows(self, action: Action) -> bool:
        return self._defaults[action]


class Widest(NamedTuple):
    """Limits that are no tighter than any of a broker."""

    permissions_max: int = 0
    topic_words_max: int = WORDS_CEILING
    topic_bytes_max: int = 65_535


def table_without_rules() -> PermissionTable:
    """For those who bring rules along where no others are in force."""
    return PermissionTable((), 0, CLOSED, Widest())


def in_order(rules: list[PermissionRule]) -> list[PermissionRule]:
    """By salience; in a file without any the order is that of the file.

    Long lists are sorted in runs, because nothing else goes on while one is sorted.
    """
    if not any(rule.salience for rule in rules):
        return rules
    runs = [sorted(rules[at : at + RUN], key=_order) for at in range(0, len(rules), RUN)]
    return runs[0] if len(runs) == 1 else list(merge(*runs, key=_order))


def _order(rule: PermissionRule) -> tuple[int | float, int]:
    return rule.order
