"""Faults of a file of permissions: rules that never decide, rules that contradict each other, and what allows a lot.

What is said of rules that never decide is proven: a more salient rule decides for each asker, action and topic of them.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import matchcore
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.topics import RESERVED, first_word
from fanlight_permissions.parties import EVERYBODY, excludes, implies, sample
from fanlight_permissions.permission_rule import ANONYMOUS_GROUP, ANY_TOPIC, BITS, Pattern, PermissionRule, Who
from fanlight_permissions.scopes import Kind, behind, key_word
from fanlight_permissions.table import PermissionTable
from matchcore.implication import disjoint
from matchcore.inclusion import outline
from matchcore.selector import Constant

COMPARED_MAX: Final = 1_000  # rules that are compared in pairs: half a million pairs, some seconds
SCOPES_MAX: Final = 200  # key words under which one rule is looked for


class ShadowedRule(NamedTuple):
    """A rule that never decides: more salient ones do; (): its selector is never true."""

    rule: PermissionRule
    by: tuple[PermissionRule, ...]


class Conflict(NamedTuple):
    """Two rules, one that allows and one that denies, which may apply to one request; the first decides."""

    first: PermissionRule
    second: PermissionRule
    actions: tuple[Action, ...]
    topic: str


def shadowed(rules: Sequence[PermissionRule], table: PermissionTable) -> Iterator[ShadowedRule]:
    """By salience, as far as it is proven."""
    ordered = sorted(rules, key=lambda rule: rule.order)
    kinds = list(table.kinds)
    conditions = table.parties.conditions()
    for rank, rule in enumerate(ordered):
        if rule.where is not None and disjoint(rule.where, Constant(True)):
            yield ShadowedRule(rule, ())
            continue
        parties = [
            party for party in table.parties.of(sample(rule.who))
            if party == EVERYBODY or implies(rule.who, conditions[party])
        ]
        found: dict[int, None] = {}
        for bits, pattern in rule.patterns:
            by = _covering(rank, rule, bits, pattern, table, parties, kinds)
            if by is None:
                break
            found.update(dict.fromkeys(by))
        else:
            yield ShadowedRule(rule, tuple(ordered[each] for each in sorted(found)))


def _covering(
    rank: int, rule: PermissionRule, bits: int, pattern: Pattern, table: PermissionTable, parties: Sequence[int],
    kinds: Sequence[Kind],
) -> list[int] | None:
    """More salient rules that decide all of this. None: not proven."""
    left, found = bits, []
    scopes = (
        (party, number) for party in parties for number in table.numbers_of(party) if kinds[number].actions & bits
    )
    for party, number in islice(scopes, SCOPES_MAX):
        kind = kinds[number]
        if not kind.actions & left or not _includes(kind, rule, pattern):
            continue
        asked = behind(key_word(party, number), pattern.filter, pattern.syntax)
        _, topic = outline(asked, pattern.syntax)
        for text, syntax, other in table.index.matching(topic, syntax=pattern.syntax):
            if other < rank and table.where.get(other) in (None, rule.where) and matchcore.covers(
                text, asked, a_syntax=syntax, b_syntax=pattern.syntax
            ):
                found.append(other)
                left &= ~kind.actions
                break
        if not left:
            return found
    return None


def _includes(kind: Kind, rule: PermissionRule, pattern: Pattern) -> bool:
    """Do filters of a kind reach all that one of a rule does, if they cover it as it is written?"""
    if kind.probes:
        return set(kind.probes) <= set(pattern.probes) and (
            not kind.allow or (rule.allow and kind.syntax == pattern.syntax)
        )
    if kind.reserved:
        return True
    # Rules of this kind do not reach what is reserved. Nor does this one, if it allows and begins with a wildcard.
    return first_word(pattern.filter, pattern.syntax) not in RESERVED and (
        rule.allow or not pattern.begins_with_wildcard
    )


def conflicts(rules: Sequence[PermissionRule], most: int) -> list[Conflict]:
    """Pairs of which one allows and the other denies: `most` of them, of the COMPARED_MAX most salient rules."""
    ordered = sorted(rules, key=lambda rule: rule.order)[:COMPARED_MAX]

    def pairs() -> Iterator[Conflict]:
        for place, second in enumerate(ordered):
            for first in ordered[:place]:
                if first.allow is second.allow or excludes(first.who, second.who):
                    continue
                found = _common(first, second)
                if found is not None:
                    yield Conflict(first, second, *found)

    return list(islice(pairs(), most))


def _common(first: PermissionRule, second: PermissionRule) -> tuple[tuple[Action, ...], str] | None:
    """Actions that both are about, and a filter of topics."""
    if first.where is not None and second.where is not None and disjoint(first.where, second.where):
        return None
    for bits, pattern in first.patterns:
        for others, other in second.patterns:
            common = bits & others
            if not common or not matchcore.intersects(
                behind(b"k", pattern.filter, pattern.syntax), behind(b"k", other.filter, other.syntax),
                a_syntax=pattern.syntax, b_syntax=other.syntax,
            ):
                continue
            # The narrower of the two is what both are about, if one of them is.
            wide = matchcore.covers(pattern.filter, other.filter, a_syntax=pattern.syntax, b_syntax=other.syntax)
            return tuple(action for action in Action if BITS[action] & common), str(other if wide else pattern)
    return None


def warnings(rules: Sequence[PermissionRule]) -> Iterator[str]:
    """What is allowed to more than is usual."""
    for rule in rules:
        if not rule.allow:
            continue
        everybody = _is_everybody(rule.who)
        for bits, pattern in rule.patterns:
            if everybody and pattern.filter == ANY_TOPIC and rule.where is None:
                acts = " and ".join(
                    action.value for action in (Action.PUBLISH, Action.SUBSCRIBE) if BITS[action] & bits
                ) or "do this"
                yield f"{rule}: {everybody} may {acts} on every topic; give it a user, a group or a narrower filter"
            if everybody and BITS[Action.ADMIN_WRITE] & bits:
                yield f"{rule}: {everybody} may change the broker by HTTP; give it a user or a group"
            if any(probe.letter == "c" for probe in pattern.probes) and not _is_identified(rule.who):
                yield (
                    f"{rule}: {pattern}: %c is what a client says of itself, and anybody may say the same; write %u, "
                    "or add a user, a group or a certificate"
                )


def _is_everybody(who: Who) -> str:
    if not who:
        return "everybody"
    return "whoever is anonymous" if dict(who) == {"group": (ANONYMOUS_GROUP,)} else ""


def _is_identified(who: Who) -> bool:
    return any(attribute in ("user", "certificate") for attribute, _ in who) or any(
        attribute == "group" and ANONYMOUS_GROUP not in values for attribute, values in who
    )
