"""Permissions in plain Python: a list of rules, walked from the top. The oracle of what the broker enforces."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import matchcore
from fanlight_broker.core.permissions import (
    ALL_ALLOWED,
    Access,
    Action,
    Asker,
    FilterVerdict,
    Verdict,
)

SEPARATORS: Final = {"amqp": b".", "mqtt": b"/"}
ALL_ACTIONS: Final = tuple(Action)


class Rule:
    """The first that is about an asker, an action and a topic decides. `filters` as MQTT spells them; %u, %c are words.

    where  of the fields of a message, or None
    """

    def __init__(
        self, allows: bool, actions: str | Collection[Action], filters: str, *, name: str = "",
        user: str | None = None, group: str | None = None, client: str | None = None, protocol: str | None = None,
        listener: str | None = None, certificate: str | None = None, address: str | None = None,
        namespace: str | None = None,
        where: Callable[[Mapping[Any, object]], bool] | None = None,
    ) -> None:  # fmt: skip
        self.allows = allows
        words = ALL_ACTIONS if actions == "all" else actions.split() if isinstance(actions, str) else actions
        self.actions = frozenset(Action(each) for each in words)
        self.filters = [each.encode() for each in filters.split()]
        self.name = name or f"{'allow' if allows else 'deny'} {filters}"
        self.asks = {
            "user": user, "client": client, "protocol": protocol, "listener": listener, "certificate": certificate,
            "address": address, "namespace": namespace,
        }  # fmt: skip
        self.group = group
        self.where = where

    def is_about(self, asker: Asker) -> bool:
        return (self.group is None or self.group in asker.groups) and all(
            wanted is None or getattr(asker, name) == wanted for name, wanted in self.asks.items()
        )

    def filled(self, asker: Asker) -> list[bytes]:
        """Its filters for somebody; those that would need a name that is not one word are left out."""
        found = []
        for filter in self.filters:
            words = []
            for word in filter.split(b"/"):
                name = {b"%u": asker.user, b"%c": asker.client}.get(word)
                if name is not None and (not name or any(each in name for each in "+#*./\0")):
                    break
                words.append(word if name is None else name.encode())
            else:
                found.append(b"/".join(words))
        return found


def allow(actions: str, filters: str = "#", **asks: Any) -> Rule:
    return Rule(True, actions, filters, **asks)


def deny(actions: str, filters: str = "#", **asks: Any) -> Rule:
    return Rule(False, actions, filters, **asks)


class ReferenceGrant:
    def __init__(self, rules: tuple[Rule, ...], asker: Asker, number: int) -> None:
        self.number = number
        self.asker = asker
        self.holders = 0
        self.asked = 0
        self.rules = [rule for rule in rules if rule.is_about(asker)]

    def decide(
        self, action: Action, topic: bytes = b"", syntax: str = "", fields: Mapping[Any, object] | None = None
    ) -> Verdict:
        self.asked += 1
        by_content = False
        for rule in self.rules:
            if action not in rule.actions:
                continue
            if syntax and not any(covers(each, topic, syntax) for each in rule.filled(self.asker)):
                continue
            if rule.where is not None:
                by_content = True
                if fields is None or not rule.where(fields):
                    continue
            return Verdict(rule.allows, rule.name, by_content)
        return Verdict(False, "", by_content)

    def permits(self, action: Action, topic: bytes, syntax: str) -> bool:
        verdict = self.decide(action, topic, syntax)
        return verdict.allowed and not verdict.by_content

    def decide_filter(self, action: Action, filter: bytes, syntax: str) -> FilterVerdict:
        denied_by = ""
        for rule in self.rules:
            if action not in rule.actions:
                continue
            if rule.allows and rule.where is None \
                    and any(covers(each, filter, syntax) for each in rule.filled(self.asker)):
                return FilterVerdict(Access.PARTLY, rule.name, denied_by) if denied_by \
                    else ALL_ALLOWED._replace(rule=rule.name)
            if not rule.allows and not denied_by:
                filled = rule.filled(self.asker)
                if any(covers(each, filter, syntax) for each in filled) and rule.where is None:
                    return FilterVerdict(Access.NONE, rule.name)
                if any(matchcore.intersects(each, filter, a_syntax="mqtt", b_syntax=syntax) for each in filled):
                    denied_by = rule.name
        return FilterVerdict(Access.NONE)


def covers(filter: bytes, other: bytes, syntax: str) -> bool:
    """A topic is a filter without wildcards."""
    if filter == b"#":  # of a rule: every topic there is, those with a `$` too
        return True
    return matchcore.covers(filter, other, a_syntax="mqtt", b_syntax=syntax)


class Reference:
    """Each asker is a class of its own. Numbers that are free are used again, the smallest first."""

    unrestricted = False
    attributes: Collection[Any] = ()

    def __init__(self, *rules: Rule, first: int = 0) -> None:
        self.rules = rules
        self.grants: dict[Asker, ReferenceGrant] = {}
        self._first = first

    def grant_of(self, asker: Asker) -> ReferenceGrant:
        grant = self.grants.get(asker)
        if grant is None:
            taken = {each.number for each in self.grants.values()}
            number = next(number for number in range(self._first, self._first + len(taken) + 1) if number not in taken)
            grant = self.grants[asker] = ReferenceGrant(self.rules, asker, number)
        grant.holders += 1
        return grant

    def namespace_of(self, asker: Asker) -> str:
        return ""

    def release(self, grant: Any) -> None:
        assert grant.holders > 0
        grant.holders -= 1
        if not grant.holders:
            del self.grants[grant.asker]

    def decide(self, asker: Asker, action: Action, topic: bytes = b"", syntax: str = "") -> Verdict:
        """What a broker has to do, without any of its caches."""
        return ReferenceGrant(self.rules, asker, 0).decide(action, topic, syntax)
