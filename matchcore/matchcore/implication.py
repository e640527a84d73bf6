"""Whether one selector follows from another, and whether two exclude each other: proven, or not known.

Both are one question: can these conditions hold together? `implies(a, b)` asks it of `a` and of `b` not being true,
which it is not where it is unknown, either; `disjoint(a, b)` of `a` and `b`. The answer is searched for as SAT solvers
do (Davis, Putnam, Logemann and Loveland, 1962), with tests in place of variables: what must hold narrows the domains of
the attributes (domains.py); of a choice of parts those that no domain leaves possible are struck out; if just as many
are left as are wanted, all must hold; else one of them is tried both ways. Deciding this is NP-complete. So the work is
bounded: past the bound nothing is proven.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matchcore.domains import ANY, Claim, Domain, TooMuchWork, WorkLeft, claim_of, type_of
from matchcore.kleene import holds
from matchcore.normal_form import AllOf, AnyOf, HitsOf, Leaf, Normal, normal_form
from matchcore.selector import Attribute, In, Selector

__all__ = ["MAX_STEPS", "disjoint", "example", "implies"]

MAX_STEPS = 50_000  # of one question: at most some 100 ms

Domains = dict[Attribute, Domain]


@dataclass(frozen=True, slots=True)
class Choice:
    """`count` or more of the parts hold."""

    count: int
    parts: tuple["Claim | Choice", ...]


Condition = Claim | Choice


def implies(a: Selector, b: Selector) -> bool:
    """Whether it is proven that `b` is true of each message that `a` is true of."""
    return _excluded([_condition(normal_form(a), True), _condition(normal_form(b), False)])


def disjoint(a: Selector, b: Selector) -> bool:
    """Whether it is proven that no message exists that both are true of."""
    return _excluded([_condition(normal_form(a), True), _condition(normal_form(b), True)])


def example(*selectors: Selector) -> dict[Attribute, object] | None:
    """Fields that all of the selectors are true of; None where none were found, which proves nothing."""
    work = WorkLeft(MAX_STEPS)
    try:
        domains = _open_branch([_condition(normal_form(selector), True) for selector in selectors], work)
        fields = {attribute: domain.example(work) for attribute, domain in (domains or {}).items()}
    except TooMuchWork:
        return None
    if domains is None or not all(holds(selector, fields) is True for selector in selectors):
        return None
    return {attribute: value for attribute, value in fields.items() if value is not None}


def _condition(normal: Normal, true: bool) -> Condition:
    """What is known where the selector is true, or where it is not."""
    match normal:
        case Leaf():
            return _claims(normal, true)
        case AllOf(parts):
            count = len(parts)
        case AnyOf(parts):
            count = 1
        case HitsOf(count, parts):
            pass
    if not true:
        count = len(parts) - count + 1
    return Choice(count, tuple(_condition(part, true) for part in parts))


def _claims(leaf: Leaf, true: bool) -> Condition:
    test = leaf.test
    if not isinstance(test, In):
        return claim_of(leaf, true)
    by_type = [tuple(value for value in test.values if type_of(value) == type) for type in range(3)]
    claims = [claim_of(Leaf(In(test.attribute, values), leaf.negated), true) for values in by_type if values]
    # One of the values is equal: of any type. None is: of no type.
    return claims[0] if len(claims) == 1 else Choice(1 if true is not leaf.negated else len(claims), tuple(claims))


def _excluded(conditions: Sequence[Condition]) -> bool:
    try:
        return _open_branch(conditions, WorkLeft(MAX_STEPS)) is None
    except TooMuchWork:
        return False


def _open_branch(conditions: Sequence[Condition], work: WorkLeft) -> Domains | None:
    """The domains of a case in which nothing contradicts the conditions; None: there is no such case."""
    cases: list[tuple[Domains, list[Condition]]] = [({}, list(conditions))]
    while cases:
        domains, pending = cases.pop()
        choices = _settled(domains, pending, work)
        if choices is None:
            continue
        if not choices:
            return domains
        choice = min(choices, key=lambda one: len(one.parts))
        others: list[Condition] = [one for one in choices if one is not choice]
        part, *rest = choice.parts
        cases.append((dict(domains), [*others, Choice(choice.count, tuple(rest))]))
        cases.append((domains, [*others, part, Choice(choice.count - 1, tuple(rest))]))
    return None


def _settled(domains: Domains, pending: list[Condition], work: WorkLeft) -> list[Choice] | None:
    """The domains narrowed by all that must hold, and the choices that are left; None: a contradiction."""
    choices: list[Choice] = []
    while pending:
        for one in pending:
            if isinstance(one, Choice):
                choices.append(one)
            elif not _narrow(domains, one, work):
                return None
        pending, given, choices = [], choices, []
        for choice in given:
            parts = tuple(part for part in choice.parts if choice.count > 0 and _may_hold(domains, part, work))
            if choice.count > len(parts):
                return None
            if choice.count == len(parts):
                pending.extend(parts)
            elif choice.count > 0:
                choices.append(Choice(choice.count, parts))
    return choices


def _narrow(domains: Domains, claim: Claim, work: WorkLeft) -> bool:
    domain = domains.get(claim.attribute, ANY).within(claim, work)
    domains[claim.attribute] = domain
    return not domain.is_empty(work)


def _may_hold(domains: Domains, condition: Condition, work: WorkLeft) -> bool:
    if isinstance(condition, Choice):
        return sum(_may_hold(domains, part, work) for part in condition.parts) >= condition.count
    return not domains.get(condition.attribute, ANY).within(condition, work).is_empty(work)
