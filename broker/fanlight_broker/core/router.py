"""The router: which subscriptions a topic is delivered to.

    route cache  (compiled; topic as spelled -> Route)       every message looks here first
      `- miss -> all filters (matchcore.FilterIndex) -> ids of subscriptions -> a new Route, kept

Topics are found by filter as well (matchcore.NameIndex over the cached topics): a change in the subscriptions forgets
the routes that it touches, and no others.

A session whose filters overlap has one target on a route, made for it (overlap.py). Queue groups are keyed by group
name and filter; a route has the group once, however many members match.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import chain
from typing import Final

import matchcore
from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import TOPIC_WORDS_CEILING, Limits
from fanlight_broker.core.overlap import merged
from fanlight_broker.core.ports import Journal
from fanlight_broker.core.rates import Counts
from fanlight_broker.core.session_queues import new_queue
from fanlight_broker.core.subscription import Subscription, nbytes_held
from fanlight_broker.core.topics import (
    SEPARATORS,
    SYNTAXES,
    check_topic,
    first_word,
    hashes_of,
    invalid_filter,
    invalid_topic,
    reserved,
)
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.gather import gather
from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.hidden import hide
from fanlight_broker.wire.ledger import Account, Ledger
from fanlight_broker.wire.message import Variant, Variants
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Members, Target

REMEMBERED_TOPICS: Final = 4_096  # topics whose counts outlive their route; the oldest are removed
MANY_ROUTES: Final = 4_096  # to remove at once: 1 to 2 ms, one by one
PART: Final = 4_096  # slots in one index of topics: looking up a hostile filter takes 10 ms at most
GIVEN_BACK_FOR_A_NEW_ONE: Final = 2  # routes
REMEMBERED_TOPIC_BYTES: Final = 1_024  # longer topics start from 0 again: 4 MiB at most are remembered

SEPARATOR_OCTETS: Final = b"".join(SEPARATORS[syntax] for syntax in SYNTAXES)

GroupKey = tuple[str, bytes, str]  # group name, filter text, syntax


class Router:
    """Subscriptions in, routes out. It knows no connection, no protocol and no clock."""

    def __init__(
        self, routes: RouteCache, limits: Limits, ledger: Ledger, variants: Variants, turns: Turns
    ) -> None:
        self.routes = routes
        self.limits = limits
        self.ledger = ledger
        self.variants = variants
        self.journal: Journal = NO_JOURNAL
        self.built = 0
        self.invalidated = 0
        self.searching = 0  # subscriptions whose filters have several `#`
        self.shared = 0  # members of queue groups
        self.archive_selection: ArchiveSelection | None = None  # set before the first route is looked up
        self._by_id: list[Subscription | None] = []
        self._free: list[int] = []  # ids
        # Topics and filters are checked before, by limits that may change; the indexes take what any setting allows.
        self._filters = matchcore.FilterIndex(max_words=TOPIC_WORDS_CEILING)
        self._filters_bytes = 0  # entered in the ledger
        self._groups: dict[GroupKey, QueueGroup] = {}
        self._turns = turns
        self._topics: list[matchcore.NameIndex] = []  # of PART slots each
        self._slots: list[Route | None] = []
        self._gone: deque[Route] = deque()  # removed from the cache; their slots are still to be freed
        self._buried: deque[list[Route]] = deque()  # those of a whole cache that was cleared
        self._free_slots: list[int] = []
        # Messages so far on topics whose route was removed, so that a topic stays hot when subscriptions change.
        self._messages_before: dict[bytes, int] = {}
        hide(self._by_id, self._slots)  # their items are hidden from the garbage collector, too

    def __len__(self) -> int:
        return len(self._by_id) - len(self._free)

    @property
    def index_bytes(self) -> int:
        """Bytes of the filter index."""
        return self._filters.nbytes

    def subscriptions(self) -> Iterator[Subscription]:
        return (each for each in self._by_id if each is not None)

    def from_place(self, place: int, places: int) -> tuple[list[Subscription], int | None]:
        """The subscriptions with ids from `place` on, `places` ids of them; and where to continue, None at the end.

        An id stays while its subscription does: what is there from the first call to the last is found, once.
        """
        end = min(place + places, len(self._by_id))
        found = [each for each in self._by_id[place:end] if each is not None and not each.ended]
        return found, end if end < len(self._by_id) else None

    # -- changes ----------------------------------------------------------------------------------------------------

    def add(self, subscription: Subscription, group_name: str | None, account: Account | None = None) -> None:
        """Put a subscription in force. Raises InvalidFilter, and has changed nothing in that case.

        account: pays for what waits in a queue group of which it is the first member
        """
        filter, syntax = subscription.filter, SYNTAXES[subscription.syntax_number]
        self._insert(subscription, filter, syntax)
        if group_name is not None:
            group = self._groups.get((group_name, filter, syntax))
            if group is None:
                group = self._groups[group_name, filter, syntax] = QueueGroup(group_name)
            queue = new_queue(self.ledger, self.limits, account)
            group.add(subscription, queue)
            if group.queue is queue:
                queue.journal = self.journal.group_begun(group_name, filter, syntax)
            self.shared += 1
        self._count(nbytes_held(subscription))
        self.searching += hashes_of(filter, syntax) > 1
        self._forget_routes(filter, syntax)

    def bind(self, subscription: Subscription, queue: NamedQueue) -> None:
        """Put a filter of a named queue in force. Raises InvalidFilter, and has changed nothing in that case."""
        filter, syntax = subscription.filter, SYNTAXES[subscription.syntax_number]
        self._insert(subscription, filter, syntax)
        queue.bind(subscription)
        self._count(nbytes_held(subscription))
        self.searching += hashes_of(filter, syntax) > 1
        self._forget_routes(filter, syntax)

    def _insert(self, subscription: Subscription, filter: bytes, syntax: str) -> None:
        """Enter it in the index, under an id of its own."""
        id = self._free[-1] if self._free else len(self._by_id)
        try:
            self._filters.insert(filter, id, syntax=syntax)
        except matchcore.InvalidFilter as error:
            raise invalid_filter(error) from error
        if id == len(self._by_id):
            self._by_id.append(subscription)
        else:
            self._by_id[self._free.pop()] = subscription
        subscription.id = id

    def remove(self, subscription: Subscription) -> None:
        """Take a subscription out of force. Raises KeyError if it is not in force."""
        id, filter, syntax = subscription.id, subscription.filter, SYNTAXES[subscription.syntax_number]
        if id >= len(self._by_id) or self._by_id[id] is not subscription:
            raise KeyError(id)
        self._by_id[id] = None
        nbytes = nbytes_held(subscription)  # while it is still in its group
        self._filters.remove(filter, id, syntax=syntax)
        self._count(-nbytes)
        self._free.append(id)
        group = subscription.group
        if isinstance(group, NamedQueue):
            group.unbind(subscription)
        elif isinstance(group, QueueGroup):
            kept = group.queue
            group.remove(subscription)
            if kept is not None and group.queue is None:
                self.journal.group_ended(group.name, filter, syntax)
            if not len(group):
                del self._groups[group.name, filter, syntax]
            self.shared -= 1
        self.searching -= hashes_of(filter, syntax) > 1
        self._forget_routes(filter, syntax)

    def group_queue(self, name: str, filter: bytes, syntax: str) -> Queue | None:
        """The queue of a group; None if it has no member that needs one."""
        group = self._groups.get((name, filter, syntax))
        return group.queue if group is not None else None

    def rebind(self, subscription: Subscription, variant: Variant, *, no_echo: bool) -> None:
        """Change how a subscription gets its messages: at once, without a gap."""
        before = nbytes_held(subscription)
        subscription.rebind(variant, no_echo)
        self._count(nbytes_held(subscription) - before)
        self._forget_routes(subscription.filter, SYNTAXES[subscription.syntax_number])

    def _count(self, octets: int) -> None:
        """Count what subscriptions and the index use more, or less, than before."""
        before, self._filters_bytes = self._filters_bytes, self._filters.nbytes
        self.ledger.subscriptions.add(octets + self._filters_bytes - before)

    def _forget_routes(self, filter: bytes, syntax: str) -> None:
        """Forget the cached routes whose topics a filter matches. They get nothing more; what they take is given back
        some in a turn. Where they are too many, or finding them takes too long, all are forgotten.
        """
        touched: list[int] = []
        for part, topics in enumerate(self._topics):
            if not topics.may_match(filter, syntax=syntax):  # mostly: it ends at a word that no topic has
                continue
            if part and touched and self._turns.over():
                self.invalidated += len(self.routes)
                self._forget_all_routes()
                return
            touched += topics.match(filter, syntax=syntax)
        if not touched:
            return
        self.invalidated += len(touched)
        if len(touched) > MANY_ROUTES and 4 * len(touched) > len(self.routes):
            self._forget_all_routes()
            return
        for slot in touched:
            route = self._slots[slot]
            if route is not None and self.routes.discard(route):
                self._put_away(route)

    def _forget_all_routes(self) -> None:
        self._buried.append([*self.routes.routes(), *self._gone])
        self._gone.clear()
        self.routes.clear()
        self._topics = []
        self._slots = []
        hide(self._slots)
        self._free_slots = []
        self._turns.later(self._give_back)

    def _put_away(self, route: Route) -> None:
        """A route has left the cache. Its slot and its memory, which may be large, are freed later."""
        idle = not self._gone and not self._buried
        self._gone.append(route)
        if idle:
            self._turns.later(self._give_back)

    def _give_back(self) -> None:
        done = 0
        while self._gone or self._buried:
            if done and self._turns.over():
                self._turns.later(self._give_back)
                return
            done += 1
            self._give_back_one()

    def _give_back_one(self) -> None:
        if self._gone:
            self._forget_route(self._gone.popleft())
            return
        if not self._buried[0]:
            self._buried.popleft()
            return
        self._remember(self._buried[0].pop())

    def _forget_route(self, route: Route) -> None:
        """A route has left the cache: free its topic and its slot."""
        syntax, topic = topic_of(route)
        self._topics[route.slot // PART].remove(topic, route.slot, syntax=syntax)
        self._slots[route.slot] = None
        self._free_slots.append(route.slot)
        self._remember(route)

    def _remember(self, route: Route) -> None:
        """Remember the messages of a topic for `hot_topics`; the fewest make room."""
        if not route.hits or len(route.key) > REMEMBERED_TOPIC_BYTES:
            return
        again = self.routes.get(route.key)
        if again is not None:  # its route was built again meanwhile
            again.hits += route.hits
            return
        before = self._messages_before
        if len(before) >= REMEMBERED_TOPICS and route.key not in before:
            oldest = next(iter(before))
            hits = before.pop(oldest)
            if hits > route.hits:
                before[oldest] = hits
                return
        before[route.key] = before.get(route.key, 0) + route.hits

    # -- look-up ----------------------------------------------------------------------------------------------------

    def route(self, topic: bytes, syntax: str) -> Route:
        """The route of a topic, from the cache or computed and cached. Raises InvalidTopic."""
        number = SYNTAXES.index(syntax)
        found = self.routes.lookup(number, topic)
        if found is not None:
            return found
        check_topic(topic, syntax, self.limits)
        route = self._build(RouteCache.key_of(number, topic), topic, syntax)
        route.hits = self._messages_before.pop(route.key, 0)
        if self.archive_selection is not None and self.archive_selection.wants(topic, syntax):
            route.tap = self.archive_selection.tap
        for _ in range(min(GIVEN_BACK_FOR_A_NEW_ONE, len(self._gone))):
            self._give_back_one()  # so that slots to be freed do not accumulate
        slot = self._free_slots.pop() if self._free_slots else len(self._slots)
        if slot == len(self._slots):
            self._slots.append(None)
        route.slot = slot
        self._slots[slot] = route
        if slot // PART == len(self._topics):
            self._topics.append(matchcore.NameIndex(max_words=TOPIC_WORDS_CEILING))
        self._topics[slot // PART].insert(topic, slot, syntax=syntax)
        for oldest in self.routes.add(route):
            self._put_away(oldest)
        self.built += 1
        return route

    def own_route(self, topic: bytes, syntax: str) -> Route:
        """The route of one of the broker's own topics: without the limits of clients, not cached, never hot."""
        return self._build(RouteCache.key_of(SYNTAXES.index(syntax), topic), topic, syntax)

    def matching(self, topic: bytes, syntax: str) -> list[Subscription]:
        """The subscriptions that a client's topic reaches, in order of their ids. Raises InvalidTopic."""
        check_topic(topic, syntax, self.limits)
        targets, groups, sessions = self._gathered(topic, syntax)
        members = [*chain.from_iterable(group.members for group in groups)]
        if any(isinstance(group, NamedQueue) for group in groups):  # which may have other filters, too
            found = set(self._filters.match(topic, syntax=syntax))
            members = [each for each in members if each.id in found]
        return sorted((*targets, *chain.from_iterable(sessions), *members), key=lambda each: each.id)

    def _gathered(self, topic: bytes, syntax: str) -> tuple[list[Target], list[Members], list[list[Target]]]:
        """The subscriptions of a topic, by how it is delivered."""
        try:
            ids = self._filters.match(topic, syntax=syntax)
        except matchcore.InvalidTopic as error:
            raise invalid_topic(error) from error
        root = first_word(topic, syntax) if reserved(topic, syntax) else None
        return gather(self._by_id, ids, root, SEPARATOR_OCTETS)

    def _build(self, key: bytes, topic: bytes, syntax: str) -> Route:
        targets, groups, sessions = self._gathered(topic, syntax)
        for subscriptions in sessions:
            targets.extend(merged(subscriptions, self.variants))
        return Route(key, targets, groups)

    def messages_by_route(self) -> dict[bytes, int]:
        """Messages so far by a route's key: of cached routes, and of those removed last."""
        hits = dict(self._messages_before)
        hits.update((route.key, route.hits) for route in self.routes.routes())
        return hits

    def hot_topics(self, limit: int, before: Counts | None = None) -> list[tuple[bytes, str, int, int]]:
        """The topics with most messages, most first: topic, syntax, messages, and who gets them now.

        With `before`, an earlier reading, those with most messages since.
        """
        known = before or {}
        hot = []
        for key, messages in nlargest(
            limit, self.messages_by_route().items(), key=lambda item: (item[1] - known.get(hash(item[0]), 0), item[1])
        ):
            syntax, topic = SYNTAXES[key[0]], key[1:]
            route = self.routes.get(key)
            route = route if route is not None else self._build(key, topic, syntax)
            hot.append((topic, syntax, messages, len(route)))
        return hot

    def explanations(
        self, topic: bytes, syntax: str, subscriptions: Iterable[Subscription]
    ) -> dict[int, matchcore.Explanation]:
        """For each of these matching subscriptions, by id: which tier of the matcher found it, by which rows."""
        wanted = {s.id for s in subscriptions}
        found = matchcore.explain(self._filters, topic, syntax=syntax, ids=wanted) if wanted else []
        return {explanation.id: explanation for explanation in found}


def topic_of(route: Route) -> tuple[str, bytes]:
    """Syntax and topic of a cached route."""
    return SYNTAXES[route.key[0]], route.key[1:]
