"""The router: which subscriptions a topic is delivered to.

    route cache  (compiled; topic as spelled -> Route)       every message looks here first
      `- miss -> all filters (matchcore.FilterIndex) -> ids of subscriptions -> targets     compiled, too: wire/finder

A change in the subscriptions is noted, and a cached route is brought up to date when it is used next (wire/changes).
Routes that nobody uses are swept, some in a turn, so that they do not keep what was removed.

A session whose filters overlap has one target on a route, made for it (overlap.py). Queue groups are keyed by group
name, filter and selector; a route has the group once, however many members match.

Subscriptions with selectors are in the screen of their filter (screens.py). A route has the screens of its filters, and
the subscribers of each message are worked out from them: `for_message`.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

import matchcore
from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import TOPIC_WORDS_CEILING, Limits
from fanlight_broker.core.onward import Onward, led_on
from fanlight_broker.core.overlap import merged
from fanlight_broker.core.ports import NamespaceJournal
from fanlight_broker.core.screens import ById, Screens
from fanlight_broker.core.selectors import where_of
from fanlight_broker.core.session_queues import new_queue
from fanlight_broker.core.shares import NUMBERS, SharedPot
from fanlight_broker.core.subscription import (
    INDEX_BYTES,
    SUBSCRIPTION_BYTES,
    VARIANT_BYTES,
    Subscription,
    nbytes_held,
)
from fanlight_broker.core.topics import (
    ANY_WORDS,
    OWN_ROOTS,
    RESERVED,
    SEPARATORS,
    SYNTAXES,
    WILDCARDS_HIDE,
    check_topic,
    first_word,
    hashes_of,
    invalid_filter,
    invalid_topic,
    reserved,
)
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.changes import RouteChanges
from fanlight_broker.wire.finder import Finder
from fanlight_broker.wire.gather import apart, gather
from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.ledger import Account, Ledger
from fanlight_broker.wire.message import Message, Variant, Variants
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.outbox import Owner
from fanlight_broker.wire.permits import forget_permits
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.sampler import Sampler
from fanlight_broker.wire.screening import FilterScreen, RouteScreens
from fanlight_broker.wire.subscription_table import SubscriptionTable
from fanlight_broker.wire.target import Members, Target

SWEPT_AT_ONCE: Final = 256  # routes: some 20 µs

SEPARATOR_OCTETS: Final = b"".join(SEPARATORS[syntax] for syntax in SYNTAXES)

Clock = Callable[[], float]
GroupKey = tuple[str, bytes, str, str | None]  # group name, filter text, syntax, text of the selector


class Router:
    """Subscriptions in, routes out. It knows no connection, no protocol and no clock."""

    def __init__(
        self, routes: RouteCache, limits: Limits, ledger: Ledger, variants: Variants, turns: Turns,
        wall: Clock | None = None,
    ) -> None:
        self.routes = routes
        self._limits = limits
        self.ledger = ledger
        self.variants = variants
        self.journal: NamespaceJournal = NO_JOURNAL
        self.searching = 0  # subscriptions whose filters have several `#`
        self.shared = 0  # members of queue groups
        self._archive_selection: ArchiveSelection | None = None
        self._rules: Callable[[bytes, int], bool] | None = None
        self._onward: Onward | None = None
        self._interest_changes = 0  # of subscriptions, beside those of the index
        # Topics and filters are checked before, by limits that may change; the indexes take what any setting allows.
        self._filters = matchcore.FilterIndex(max_words=TOPIC_WORDS_CEILING)
        self.table = SubscriptionTable(
            self._filters, routes, ledger.subscriptions, syntaxes=SYNTAXES, separators=SEPARATOR_OCTETS,
            sizes=(SUBSCRIPTION_BYTES, VARIANT_BYTES, INDEX_BYTES),
            pots=(NUMBERS[SharedPot.SUBSCRIPTIONS], NUMBERS[SharedPot.SUBSCRIPTIONS_BYTES]),
        )
        self._by_id: ById = self.table.by_id
        self._screens_bytes = 0  # entered in the ledger
        self._groups: dict[GroupKey, QueueGroup] = {}
        self._turns = turns
        self._sweeping = False
        self._finder = Finder(
            self._filters, matchcore.FilterIndex.find_ids(), self._by_id, separators=SEPARATOR_OCTETS,
            roots=OWN_ROOTS, reserved=RESERVED,
            merge=partial(merged, variants=variants),
        )
        self.screens = Screens(self.table.by_id, self.table.free, self._filters, self._finder, wall)
        self.limits = limits
        routes.work_out_with(self._finder, RouteChanges(SEPARATOR_OCTETS, ANY_WORDS, WILDCARDS_HIDE), ledger)

    def __len__(self) -> int:
        """Subscriptions in force."""
        return self.table.in_force + len(self.screens)

    @property
    def limits(self) -> Limits:
        """Those of topics hold for what is looked up from now on."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._limits = limits
        self._finder.topic_bytes_max, self._finder.topic_words_max = limits.topic_bytes_max, limits.topic_words_max

    @property
    def archive_selection(self) -> ArchiveSelection | None:
        """Of the topics that are kept as they pass. It is set before the first route is looked up."""
        return self._archive_selection

    @archive_selection.setter
    def archive_selection(self, selection: ArchiveSelection | None) -> None:
        self._archive_selection = selection
        self._finder.tap = selection.tap if selection is not None else None
        self._finder.selects = None
        if selection is not None:
            self._finder.selects = lambda topic, syntax: selection.wants(topic, SYNTAXES[syntax])

    def read_bodies_as(self, format_of: Callable[[bytes, str], int]) -> None:
        """What format bodies without a content type have, by topic and syntax. Before the first route is looked up."""
        self._finder.body_formats = lambda topic, syntax: format_of(topic, SYNTAXES[syntax])

    def body_format(self, topic: bytes, syntax: int) -> int:
        """The format of bodies without a content type: one of BODY_FORMATS, or 0."""
        format_of = self._finder.body_formats
        return format_of(topic, syntax) if format_of is not None else 0

    def rule_topics(self, concern: Callable[[bytes, int], bool] | None) -> None:
        """On which topics, by the numbers of their syntaxes, routing rules may act; None: on none. Each route that is
        kept asks again before it is used next.
        """
        self._rules = self._finder.rules = concern
        self.routes.altered(b"#", WILDCARDS_HIDE.index(False))  # in the syntax where that is every topic
        self.sweep_later()

    def trace_with(self, sampler: Sampler) -> None:
        """Ask this about the messages of all topics. Before the first route."""
        self._finder.sampler = sampler

    def lead_onward(self, onward: Onward, filter: bytes, syntax: str) -> None:
        """Ask this for more queues from now on: what it says of topics that match the filter has changed."""
        self._onward = onward
        self._finder.onward = onward.concerns
        self._altered(filter, syntax)

    def leave_out_with(self, may_read: Callable[[Subscription, bytes, int], bool]) -> None:
        """Whether a partly allowed subscription is left in the route of a topic, by the number of its syntax."""
        self._finder.may_read = may_read

    def forget_permits(self) -> None:
        """Permissions have changed: no route that is kept knows any more who may publish on it, or read partly."""
        self.routes.altered(b"#", WILDCARDS_HIDE.index(False))  # in the syntax where that is every topic
        forget_permits()

    @property
    def built(self) -> int:
        """Topics whose subscriptions were worked out."""
        return self._finder.built

    @property
    def invalidated(self) -> int:
        """Routes that were changed or removed because a subscription changed."""
        return self.routes.invalidated

    @property
    def index_bytes(self) -> int:
        """Bytes of the filter index."""
        return self._filters.nbytes

    @property
    def interest_version(self) -> tuple[object, ...]:
        """Differs when it may be other topics that somebody wants."""
        return self._filters.version, self._interest_changes, self.wants_beyond_filters

    @property
    def wants_beyond_filters(self) -> bool:
        """Is there anything beside subscriptions that messages are for: an archive, rules, queues behind topics?"""
        return self._archive_selection is not None or self._rules is not None or self._onward is not None

    def subscriptions(self) -> Iterator[Subscription]:
        return (each for each in self._by_id if isinstance(each, Target))

    def from_place(self, place: int, places: int) -> tuple[list[Subscription], int | None]:
        """The subscriptions with ids from `place` on, `places` ids of them; and where to continue, None at the end.

        An id stays while its subscription does: what is there from the first call to the last is found, once.
        """
        end = min(place + places, len(self._by_id))
        found = [each for each in self._by_id[place:end] if isinstance(each, Target) and not each.ended]
        return found, end if end < len(self._by_id) else None

    # -- changes ----------------------------------------------------------------------------------------------------

    def add(self, subscription: Subscription, group_name: str | None, account: Account | None = None) -> None:
        """Put a subscription in force. Raises InvalidFilter, and has changed nothing in that case.

        account: pays for what waits in a queue group of which it is the first member
        """
        filter, syntax = subscription.filter, SYNTAXES[subscription.syntax_number]
        self._enter(subscription, filter, syntax)
        if group_name is not None:
            where = where_of(subscription.condition)
            group = self._groups.get((group_name, filter, syntax, where))
            if group is None:
                self._altered(filter, syntax)
                group = self._groups[group_name, filter, syntax, where] = QueueGroup(group_name)
            elif subscription.condition is None:
                self._members_altered(filter, syntax)
            queue = new_queue(self.ledger, self.limits, account)
            group.add(subscription, queue)
            if group.queue is queue:
                queue.journal = self.journal.group_begun(group_name, filter, syntax, where)
            self.shared += 1
        elif subscription.partly:
            self._altered(filter, syntax)
        elif subscription.condition is None:
            self.routes.added(subscription)
        self._finder.partly += subscription.partly
        self._count(nbytes_held(subscription))
        self.searching += hashes_of(filter, syntax) > 1

    def set_partly(self, subscription: Subscription, partly: bool) -> None:
        """Whether a subscription that is in force is partly allowed, and so left out of some routes."""
        if bool(subscription.partly) != partly:
            subscription.partly = partly
            self._finder.partly += 1 if partly else -1
            self._altered(subscription.filter, SYNTAXES[subscription.syntax_number])

    def restore(self, subscriptions: Sequence[Subscription], nbytes: int) -> list[Subscription]:
        """Put subscriptions from before a restart in force, which are in no group and have no selector.

        Returns those that search.

        nbytes  that they take. Raises InvalidFilter.

        Nothing has ended yet and no route was looked up, so their ids are new and no route is out of date.
        """
        try:
            self.table.extend(list(subscriptions))
        except matchcore.InvalidFilter as error:
            raise invalid_filter(error) from error
        searching = [each for each in subscriptions if hashes_of(each.filter, SYNTAXES[each.syntax_number]) > 1]
        self.searching += len(searching)
        self._count(nbytes)
        return searching

    def bind(self, subscription: Subscription, queue: NamedQueue) -> None:
        """Put a filter of a named queue in force. Raises InvalidFilter, and has changed nothing in that case."""
        filter, syntax = subscription.filter, SYNTAXES[subscription.syntax_number]
        self._enter(subscription, filter, syntax)
        queue.bind(subscription)
        self._count(nbytes_held(subscription))
        self.searching += hashes_of(filter, syntax) > 1
        self._altered(filter, syntax)

    def _enter(self, subscription: Subscription, filter: bytes, syntax: str) -> None:
        """Enter it where topics find it. Raises InvalidFilter."""
        self._interest_changes += subscription.condition is not None
        if subscription.condition is None:
            self._insert(subscription)
        elif self.screens.insert(subscription):
            self._altered(filter, syntax)

    def _insert(self, subscription: Subscription) -> None:
        """Enter it in the index, under an id of its own."""
        try:
            self.table.insert(subscription)
        except matchcore.InvalidFilter as error:
            raise invalid_filter(error) from error

    def remove(self, subscription: Subscription) -> Queue | None:
        """Take a subscription out of force. Raises KeyError if it is not in force.

        Returns the queue of its group if that has ended with it: what waits in it is to be dropped.
        """
        filter, syntax, nbytes = subscription.filter, SYNTAXES[subscription.syntax_number], nbytes_held(subscription)
        if subscription.condition is None:
            self.table.remove(subscription)
        else:
            self._leave_screen(subscription, filter, syntax)
        self._count(-nbytes)
        self._finder.partly -= subscription.partly
        ended = None
        group = subscription.group
        if isinstance(group, NamedQueue):
            group.unbind(subscription)
            self._altered(filter, syntax)
        elif isinstance(group, QueueGroup):
            ended = group.remove(subscription)
            if ended is not None:
                self.journal.group_ended(group.name, filter, syntax, where_of(subscription.condition))
            if not len(group):
                del self._groups[group.name, filter, syntax, where_of(subscription.condition)]
                self._altered(filter, syntax)
            elif subscription.condition is None:
                self._members_altered(filter, syntax)
            self.shared -= 1
        elif subscription.condition is None:
            self.routes.removed(subscription)
            self.sweep_later()
        self.searching -= hashes_of(filter, syntax) > 1
        return ended

    def _leave_screen(self, subscription: Subscription, filter: bytes, syntax: str) -> None:
        self._interest_changes += 1
        if self.screens.remove(subscription):
            self._altered(filter, syntax)
        self.routes.left_screen()
        self.sweep_later()

    def group_queue(self, name: str, filter: bytes, syntax: str, where: str | None = None) -> Queue | None:
        """The queue of a group; None if it has no member that needs one. where: the text of its selector."""
        group = self._groups.get((name, filter, syntax, where))
        return group.queue if group is not None else None

    def rebind(self, subscription: Subscription, variant: Variant, *, no_echo: bool) -> None:
        """Change how a subscription gets its messages: at once, without a gap."""
        self._interest_changes += 1
        before = nbytes_held(subscription)
        subscription.rebind(variant, no_echo)
        self._count(nbytes_held(subscription) - before)
        self._altered(subscription.filter, SYNTAXES[subscription.syntax_number])

    def _count(self, octets: int) -> None:
        """Count what subscriptions and the index use more, or less, than before."""
        before, self._screens_bytes = self._screens_bytes, self.screens.nbytes
        self.table.count(octets + self._screens_bytes - before)

    def _altered(self, filter: bytes, syntax: str) -> None:
        """A filter's group or its subscription's options have changed."""
        self.routes.altered(filter, SYNTAXES.index(syntax))
        self.sweep_later()

    def _members_altered(self, filter: bytes, syntax: str) -> None:
        if len(self.screens):
            self.routes.altered(filter, SYNTAXES.index(syntax), members=True)

    def sweep_later(self) -> None:
        """Sweep the routes: a subscription has ended."""
        if not self._sweeping:
            self._sweeping = True
            self._turns.later(self._sweep)

    def _sweep(self) -> None:
        self._sweeping = self.routes.sweep(SWEPT_AT_ONCE)
        if self._sweeping:
            self._turns.later(self._sweep)

    # -- look-up ----------------------------------------------------------------------------------------------------

    def route(self, topic: bytes, syntax: str) -> Route:
        """The route of a topic, from the cache or worked out. Raises InvalidTopic."""
        number = SYNTAXES.index(syntax)
        found = self.routes.lookup(number, topic)
        if found is not None:
            return found
        check_topic(topic, syntax, self.limits)
        return self._build(RouteCache.key_of(number, topic), topic, syntax)  # which says what is wrong with it

    def for_message(self, route: Route, message: Message, publisher: Owner | None) -> Route:
        """The route of one message: with the subscriptions whose selectors are true of it. Nobody keeps it.

        route  of its topic: it is returned itself if there are no selectors, and nothing leads on.
        publisher: None is the broker itself
        """
        wanted = self.routes.for_message(route, message, publisher)
        return led_on(route, wanted, message, self._onward) if route.ruled and self._onward is not None else wanted

    def own_route(self, topic: bytes, syntax: str) -> Route:
        """The route of one of the broker's own topics: without the limits of clients, not cached, never hot."""
        route = self._build(RouteCache.key_of(SYNTAXES.index(syntax), topic), topic, syntax)
        selection = self._archive_selection
        if selection is not None and selection.wants(topic, syntax):
            route.tap = selection.tap
        return route

    def reached(self, topic: bytes, syntax: str) -> tuple[Sequence[int], list[FilterScreen]]:
        """What a client's topic reaches: the ids of subscriptions without a selector, and the screens of the others.

        Raises InvalidTopic.
        """
        check_topic(topic, syntax, self.limits)
        screens, plain = apart(self._by_id, *self._found(topic, syntax), SEPARATOR_OCTETS)
        return plain, screens

    def readable(self, ids: Sequence[int], topic: bytes, syntax: str) -> Sequence[int]:
        """Those of these subscriptions whose owners may have what is published on a topic: see Enforcement.may_read."""
        return self._finder.without_denied(tuple(ids), topic, SYNTAXES.index(syntax)) if self._finder.partly else ids

    def in_force(self, ids: Iterable[int]) -> list[Subscription]:
        """The subscriptions that have these ids now; an id may be another one's than before."""
        found = [self._by_id[id] for id in ids if id < len(self._by_id)]
        return [each for each in found if isinstance(each, Subscription)]

    def matching(self, topic: bytes, syntax: str) -> list[Subscription]:
        """The subscriptions that a client's topic reaches, whatever their selectors say, in order of their ids.

        Raises InvalidTopic.
        """
        check_topic(topic, syntax, self.limits)
        number = SYNTAXES.index(syntax)
        targets, groups, sessions, screens = self._gathered(topic, syntax)
        members = [*chain.from_iterable(group.members for group in groups)]
        if any(isinstance(group, NamedQueue) for group in groups):  # which may have other filters, too
            found = set(self._filters.match(topic, syntax=syntax))
            members = [each for each in members if each.id in found]
        screened = self.screens.subscriptions(screens.screens) if screens is not None else []
        screened = [each for each in screened if not each.partly or self._finder.may_read(each, topic, number)]
        return sorted((*targets, *chain.from_iterable(sessions), *members, *screened), key=lambda each: each.id)

    def _gathered(
        self, topic: bytes, syntax: str
    ) -> tuple[list[Target], list[Members], list[list[Target]], RouteScreens | None]:
        """The subscriptions of a topic, by how it is delivered; those with selectors by their screens."""
        ids, root = self._found(topic, syntax)
        screens = None
        if len(self.screens):
            found, plain = apart(self._by_id, ids, root, SEPARATOR_OCTETS)
            ids = tuple(plain)
            if found:
                screens = RouteScreens(found, array("I", ids).tobytes())
                if self._finder.body_formats is not None:
                    screens.format = self._finder.body_formats(topic, SYNTAXES.index(syntax))
        return *gather(self._by_id, ids, root, SEPARATOR_OCTETS), screens

    def _found(self, topic: bytes, syntax: str) -> tuple[tuple[int, ...], bytes | None]:
        """The ids of a topic, and the first word of those that may be reached; None: any."""
        try:
            ids = self._filters.match(topic, syntax=syntax)
        except matchcore.InvalidTopic as error:
            raise invalid_topic(error) from error
        ids = self._finder.without_denied(ids, topic, SYNTAXES.index(syntax))
        return ids, first_word(topic, syntax) if reserved(topic, syntax) else None

    def _build(self, key: bytes, topic: bytes, syntax: str) -> Route:
        """A route as wire/finder works it out, in Python."""
        targets, groups, sessions, screens = self._gathered(topic, syntax)
        for subscriptions in sessions:
            targets.extend(merged(subscriptions, self.variants))
        return Route(key, targets, groups, screens)

    def messages_by_route(self) -> dict[bytes, int]:
        """Messages so far by a route's key: of cached routes, and of those removed last."""
        return self.routes.messages()

    def topic_of(self, key: bytes, messages: int) -> tuple[bytes, str, int, int]:
        """Of a route's key: topic, syntax, messages, and who gets them now."""
        syntax, topic = SYNTAXES[key[0]], key[1:]
        route = self.routes.get(key)
        return topic, syntax, messages, len(route if route is not None else self._build(key, topic, syntax))

    def explanations(
        self, topic: bytes, syntax: str, subscriptions: Iterable[Subscription]
    ) -> "dict[int, matchcore.Explanation]":
        """For each of these subscriptions that matches, by id: which tier of the matcher found it, by which rows."""
        places = {each.id: (each.filter, SYNTAXES[each.syntax_number]) for each in subscriptions}
        found = matchcore.explain(self._filters, topic, syntax=syntax, filters=set(places.values())) if places else []
        by_filter = {(explanation.filter, explanation.syntax): explanation for explanation in found}
        return {id: by_filter[filter] for id, filter in places.items() if filter in by_filter}
