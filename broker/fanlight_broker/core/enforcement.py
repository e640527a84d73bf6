"""Enforcement: asks the permissions in force wherever something is done for a client, and counts what is denied.

    Asker --grant_of--> Grant --> Badge, one for each permission class, which its subscribers and their lanes have
                                     |
    check, check_publish, check_filter: may it? else NotPermitted, counted by action and rule, logged once
    may_read: is a partly allowed subscription left in the route of a topic? (wire/finder.pxd)

A badge that is not of the permissions in force is revoked: lanes leave everything to Python, and whoever asks for its
subscriber gets a new one first. So new permissions decide from the moment at which they are used, and what was allowed
before is asked again (core/rechecking.py). Classes that nobody is in are kept for a while: a client that comes back
finds its class, and the routes know it still.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import matchcore
from fanlight_broker import audit, event_log
from fanlight_broker.core.errors import InvalidTopic, NotPermitted
from fanlight_broker.core.limits import Limits, SubscribePartly
from fanlight_broker.core.metrics import BoundedCounts, MetricFamily
from fanlight_broker.core.permissions import (
    ALL_ALLOWED,
    ALLOWED,
    Access,
    Action,
    Asker,
    FilterVerdict,
    Grant,
    NoNamespace,
    Origin,
    Permissions,
    Verdict,
)
from fanlight_broker.core.router import Router
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES, invalid_filter, invalid_topic, masked
from fanlight_broker.core.turns import Turns
from fanlight_broker.core.will import Will
from fanlight_broker.wire.badge import MAY_PUBLISH, MAY_REQUEST, MAY_RETAIN, REVOKED, Badge, Validity
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Owner

if TYPE_CHECKING:
    from matchcore.kleene import Fields

log: Final = event_log.get("permissions")

IDLE_MAX: Final = 1_024  # classes that nobody is in any more, and that are kept
READABLE_MAX: Final = 4_096  # decisions about topics and classes with partly allowed subscriptions; then all go
READABLE_BYTES: Final = 1_024  # of such a topic
RULES_MAX: Final = 1_000  # with a count of their own
LOGGED_MAX: Final = 10_000  # causes that are not logged again; then all are forgotten
OTHERS: Final = "(others)"  # in place of the rules beyond RULES_MAX
NO_RULE: Final = "(no rule)"
ANONYMOUS: Final = frozenset({"anonymous"})  # the group of those whose user is not verified
NO_GROUPS: Final = frozenset({"(no group)"})
KINDS: Final = {MAY_PUBLISH: Action.PUBLISH, MAY_RETAIN: Action.RETAIN, MAY_REQUEST: Action.REQUEST}

COUNTERS: Final[Mapping[str, str]] = {
    "connect_denied": "Clients refused or disconnected because no permission let them connect",
    "publish_denied": "Messages not published because of permissions",
    "retain_denied": "Messages not published because they were to be retained, and permissions deny that",
    "will_denied": "Wills refused at CONNECT, or not published, because of permissions",
    "subscribe_denied": "Subscriptions refused or ended because of permissions",
    "request_denied": "Messages not published because they name a topic for the reply, and permissions deny that",
    "replay_denied": "Replays refused or ended because of permissions",
    "queue_denied": "Requests about named queues refused because of permissions",
    "admin_read_denied": "HTTP requests for views refused because of permissions",
    "admin_write_denied": "HTTP requests for actions refused because of permissions",
}


# All that its lane has is for Python.
UNKNOWN: Final = Badge(None, REVOKED, lambda kind, topic, syntax: False, Validity())


class FieldsOf(Protocol):
    """Reads what rules ask of a message."""

    def __call__(self, message: Message, publisher: Owner | None) -> "Fields": ...


class Enforcement:
    def __init__(
        self, limits: Limits, router: Router, turns: Turns, permissions: Permissions,
        wall: Callable[[], float] | None = None,
    ) -> None:
        self.limits = limits
        self.permissions = permissions
        self.generation = 0  # of the permissions in force
        self.has_restricted = False  # was there ever somebody to whom something may not be permitted?
        self.denied: Counter[Action] = Counter()
        self.denied_by: Counter[str] = Counter()  # by rules
        self.denied_groups = BoundedCounts()
        self.renewed: Callable[[Subscriber], None] = lambda subscriber: None  # it is of another class now
        self._router = router
        self._turns = turns
        self._wall = wall
        self._validity = Validity()  # of all badges by the permissions in force
        self._badges: dict[int, Badge] = {}  # by the identities of their grants
        self._idle: dict[int, Badge] = {}  # those of them that nobody has
        self._readable: dict[tuple[Badge, bytes, int], bool] = {}
        self._clearing = False
        self._fields: FieldsOf | None = None
        self._logged: set[int] = set()
        router.leave_out_with(self.may_read)
        router.ledger.restricted = self.restricted

    @property
    def restricted(self) -> bool:
        return not self.permissions.unrestricted

    def restricts(self, origin: Origin) -> bool:
        """May there be something that a client from there may not do?"""
        return bool(origin.own) or not self.permissions.unrestricted

    def use(self, permissions: Permissions) -> None:
        """Put others in force, at once, for all that is asked from now on, however many badges there are."""
        self._validity.over = True
        self._validity = Validity()
        self._turns.later(partial(self._release, self.permissions, self._badges))
        self._badges = {}
        self._idle.clear()
        self._readable.clear()
        self.permissions = permissions
        self._router.ledger.restricted = self.restricted  # lanes that have no badge yet do not go on either
        self.generation += 1
        self._fields = None
        self._logged.clear()
        self._router.forget_permits()

    def _release(self, permissions: Permissions, badges: dict[int, Badge]) -> None:
        """Release the classes of permissions that are not in force any more, some in a turn."""
        while badges:
            permissions.release(badges.popitem()[1].grant)
            if badges and self._turns.over():
                self._turns.later(partial(self._release, permissions, badges))
                return

    @property
    def restricts_some(self) -> bool:
        """Is somebody known to whom something may not be permitted? Without restrictions, these alone have badges."""
        return self.restricted or bool(self._badges)

    def count_with(self, other: "Enforcement") -> None:
        """Count denials together."""
        self.denied, self.denied_by, self.denied_groups = other.denied, other.denied_by, other.denied_groups

    def close(self) -> None:
        """Nobody is left: give the classes back."""
        self._validity.over = True
        self._idle.clear()
        self._release(self.permissions, self._badges)

    # -- who may do what ----------------------------------------------------------------------------------------------

    def badge_of(self, subscriber: Subscriber) -> Badge | None:
        """The badge of its class by the permissions in force. None: everything is permitted."""
        badge = subscriber.badge
        if badge is not None and not badge.revoked:
            return badge
        if badge is None and not self.restricts(subscriber.origin):
            return None
        badge = self._join(subscriber.asker)
        if subscriber.gone:  # what it has asked for goes on: nobody will say that it has left
            self._drop(badge)
            return badge
        subscriber.badge = badge
        if subscriber.client is not None:
            subscriber.client.connection.use_badge(badge)
        return badge

    def renew(self, subscriber: Subscriber) -> None:
        """Another connection has taken its session, and may say something else of itself."""
        before = subscriber.badge
        if before is None and not self.restricts(subscriber.origin):
            return
        self.leave(subscriber)
        if self.badge_of(subscriber) is not before:
            self.renewed(subscriber)

    def leave(self, subscriber: Subscriber) -> None:
        """It is no more."""
        badge, subscriber.badge = subscriber.badge, None
        self._drop(badge)

    def _drop(self, badge: Badge | None) -> None:
        if badge is None:
            return
        badge.holders -= 1
        if not badge.holders and not badge.revoked:
            self._idle[id(badge.grant)] = badge
            if len(self._idle) > IDLE_MAX and not self._clearing:
                self._clearing = True
                self._turns.later(self._clear)  # not here: a lane may be in the middle of a message

    def _join(self, asker: Asker) -> Badge | None:
        if not asker.own and not self.restricted:
            return None
        self.has_restricted = True
        grant = self.permissions.grant_of(asker)
        badge = self._badges.get(id(grant))
        if badge is None:
            badge = self._badges[id(grant)] = Badge(grant, grant.number, partial(self._ask, grant), self._validity)
        else:
            self.permissions.release(grant)  # a badge holds it once, for all who have the badge
            self._idle.pop(id(grant), None)
        badge.holders += 1
        return badge

    def _clear(self) -> None:
        """Release the classes that nobody is in. Their numbers may be given to others: the routes forget all."""
        self._clearing = False
        for key, badge in self._idle.items():
            badge.number = REVOKED
            del self._badges[key]
            self.permissions.release(badge.grant)
        self._idle.clear()
        self._router.forget_permits()

    @staticmethod
    def _ask(grant: Grant, kind: int, topic: bytes, syntax: int) -> bool:
        """For the lanes: is it allowed, whatever the message says?"""
        try:
            return grant.permits(KINDS[kind], topic, SYNTAXES[syntax])
        except matchcore.InvalidTopic:
            return False  # Python says what is wrong with it

    def decide(
        self, subscriber: Subscriber, action: Action, topic: bytes = b"", syntax: str = "",
        message: Message | None = None,
    ) -> Verdict:
        """Nothing is counted. What depends on the content of a message that is not there is denied.

        Raises InvalidTopic.
        """
        badge = self.badge_of(subscriber)
        return ALLOWED if badge is None else self._decide(badge.grant, subscriber, action, topic, syntax, message)

    def _decide(
        self, grant: Grant, publisher: Owner | None, action: Action, topic: bytes, syntax: str, message: Message | None
    ) -> Verdict:
        try:
            verdict = grant.decide(action, topic, syntax)
            if not verdict.by_content:
                return verdict
            if message is None:
                return Verdict(False, verdict.rule)
            return grant.decide(action, topic, syntax, self._fields_of(message, publisher))
        except matchcore.InvalidTopic as error:
            raise invalid_topic(error) from error

    def decide_filter(self, subscriber: Subscriber, action: Action, filter: bytes, syntax: str) -> FilterVerdict:
        """How much of a filter it may have. Nothing is counted. Raises InvalidFilter."""
        badge = self.badge_of(subscriber)
        if badge is None:
            return ALL_ALLOWED
        try:
            verdict: FilterVerdict = badge.grant.decide_filter(action, filter, syntax)
        except matchcore.InvalidFilter as error:
            raise invalid_filter(error) from error
        return verdict

    def may_read(self, subscription: Subscription, topic: bytes, syntax: int) -> bool:
        """May the owner of a partly allowed subscription have what is published on a topic that it matches?"""
        if subscription.ended:
            return False
        subscriber: Subscriber = subscription.owner
        badge = self.badge_of(subscriber)
        if badge is None:
            return True
        known = self._readable.get((badge, topic, syntax))  # many of a class may be on one topic, and be asked again
        if known is not None:
            return known
        try:
            found = self._decide(badge.grant, subscriber, Action.SUBSCRIBE, topic, SYNTAXES[syntax], None).allowed
        except InvalidTopic:
            return False
        if len(topic) <= READABLE_BYTES:
            if len(self._readable) >= READABLE_MAX:
                self._readable.clear()
            self._readable[badge, topic, syntax] = found
        return found

    def may_replay(self, subscriber: Subscriber, topic: bytes, syntax: int) -> bool:
        """May it have what was published on a topic? For replays that are partly allowed."""
        name = SYNTAXES[syntax]
        return self.decide(subscriber, Action.REPLAY, topic, name).allowed \
            and self.decide(subscriber, Action.SUBSCRIBE, topic, name).allowed

    def reads_all(self, subscriber: Subscriber) -> bool:
        """May it read and manage whatever there is, as operators do?"""
        return all(
            self.decide_filter(subscriber, action, b"#", SYNTAXES[0]).access is Access.ALL
            for action in (Action.SUBSCRIBE, Action.QUEUE)
        )

    # -- or else ------------------------------------------------------------------------------------------------------

    def check(
        self, subscriber: Subscriber, action: Action, topic: bytes = b"", syntax: str = "",
        message: Message | None = None,
    ) -> None:
        """Raises NotPermitted."""
        verdict = self.decide(subscriber, action, topic, syntax, message)
        if not verdict.allowed:
            raise self.refusal(subscriber.name, subscriber.user, subscriber.asker, action, topic, syntax, verdict.rule)

    def check_publish(self, publisher: Subscriber, message: Message, *, requests: bool = False) -> None:
        """May it publish a message, retained if it says so? requests: it names a topic for the reply.

        Raises NotPermitted.
        """
        if self.badge_of(publisher) is None:
            return
        topic, syntax = message.topic, SYNTAXES[message.syntax]
        self.check(publisher, Action.PUBLISH, topic, syntax, message)
        if message.retain:
            self.check(publisher, Action.RETAIN, topic, syntax, message)
        if requests:
            self.check(publisher, Action.REQUEST, topic, syntax, message)

    def check_filter(
        self, subscriber: Subscriber, action: Action, filter: bytes, syntax: str, *, whole: bool = False
    ) -> bool:
        """May it have what a filter matches? True: partly. whole: that is not enough. Raises NotPermitted."""
        found = self.decide_filter(subscriber, action, filter, syntax)
        if found is ALL_ALLOWED or found.access is Access.ALL:
            return False
        if found.access is Access.PARTLY and not whole and self.limits.subscribe_partly is SubscribePartly.FILTER:
            return True
        rule = found.rule if found.access is Access.NONE else found.denied_by
        raise self.refusal(subscriber.name, subscriber.user, subscriber.asker, action, filter, syntax, rule)

    def check_connect(self, asker: Asker, will: Will | None = None) -> None:
        """May somebody connect who is no subscriber yet, and leave a will? Raises NotPermitted."""
        grant = self.permissions.grant_of(asker)
        try:
            asked: list[tuple[Action, bytes, str]] = [(Action.CONNECT, b"", "")]
            if will is not None:
                actions = [Action.PUBLISH, Action.WILL]
                actions += [Action.RETAIN] if will.message.retain else []
                actions += [Action.REQUEST] if will.requests else []
                asked += [(each, will.message.topic, SYNTAXES[will.message.syntax]) for each in actions]
            for action, topic, syntax in asked:
                verdict = self._decide(grant, None, action, topic, syntax, will.message if will is not None else None)
                if not verdict.allowed:
                    counted = action if action is Action.CONNECT else Action.WILL
                    raise self.refusal(asker.client, asker.user, asker, counted, topic, syntax, verdict.rule)
        finally:
            self.permissions.release(grant)

    def check_asker(self, asker: Asker, action: Action, *, quiet: bool = False) -> None:
        """May somebody who is no client do this? quiet: it is neither counted nor logged. Raises NotPermitted."""
        if not asker.own and not self.restricted:
            return
        if self.namespace_of(asker):
            raise NotPermitted("views and actions are of the whole broker, and not for clients of a namespace")
        grant = self.permissions.grant_of(asker)
        try:
            verdict = grant.decide(action)
        finally:
            self.permissions.release(grant)
        if not verdict.allowed and quiet:
            raise NotPermitted(f"no permission: {action.value}")
        if not verdict.allowed:
            raise self.refusal(asker.client or asker.address, asker.user, asker, action, b"", "", verdict.rule)

    def namespace_of(self, asker: Asker) -> str:
        """The namespace that somebody is in; "": the root. Raises NotPermitted."""
        try:
            return self.permissions.namespace_of(asker)
        except NoNamespace as error:
            raise NotPermitted(f"no permission: {error}") from error

    def is_home(self, subscriber: Subscriber, namespace: str) -> bool:
        """Is a client that is in this namespace to be there, by the permissions in force?"""
        try:
            found = self.permissions.namespace_of(subscriber.asker)
            return found == ("" if subscriber.origin.chosen else namespace)
        except NoNamespace:
            return False

    def refusal(
        self, client: str, user: str, asker: Asker, action: Action, subject: bytes, syntax: str, rule: str
    ) -> NotPermitted:
        """The error of a denial, which is counted, and logged if it is the first of its client and its cause."""
        self.denied[action] += 1
        for group in (asker.groups if asker.user else asker.groups | ANONYMOUS) or NO_GROUPS:
            self.denied_groups.add(group, action.value)
        rule = rule or NO_RULE
        self.denied_by[rule if rule in self.denied_by or len(self.denied_by) < RULES_MAX else OTHERS] += 1
        named = f" {masked(subject, syntax).decode('utf-8', 'backslashreplace')}" if syntax else ""
        cause = hash((client, action, rule))
        if cause not in self._logged:
            if len(self._logged) >= LOGGED_MAX:
                self._logged.clear()
            self._logged.add(cause)
            log.warning("not_permitted", client=client, user=user, action=action.value, subject=named[1:], rule=rule)
            audit.note(
                "permission_refused", user=user, client=client, action=action.value, topic=named[1:], rule=rule
            )
        return NotPermitted(f"no permission: {action.value}{named}", action=action.value)

    # -- for views ----------------------------------------------------------------------------------------------------

    def counters(self) -> Mapping[str, int]:
        return {f"{action.name.lower()}_denied": self.denied[action] for action in Action}

    def families(self) -> Sequence[MetricFamily]:
        if not self.denied_by:
            return ()
        samples = [({"rule": rule}, float(count)) for rule, count in self.denied_by.items()]
        return [
            MetricFamily("permission_denials", "What permissions have denied, by rule", "counter", samples),
            MetricFamily(
                "permission_group_denials", "What permissions have denied, by group of the client and action",
                "counter", self.denied_groups.samples("group", "action"),
            ),
        ]

    def _fields_of(self, message: Message, publisher: Owner | None) -> "Fields":
        if self._fields is None:
            from fanlight_broker.core.permission_fields import PermissionFields  # here: it needs the readers of bodies

            self._fields = PermissionFields(self.permissions.attributes, self._router.body_format, self._wall)
        return self._fields(message, publisher)

