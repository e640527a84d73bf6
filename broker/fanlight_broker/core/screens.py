"""The screens of a router: the subscriptions with selectors of each filter, and who of them wants a message.

    FilterIndex --id--> FilterScreen --> matchcore.Screen: selectors by the ids of subscriptions
                                            ^
    message --screener.pyx, compiled--------'    for each message, without Python

A filter is in the index once for all its subscriptions with selectors (wire/screening.pxd).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import matchcore
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.selectors import found_by, new_rows, new_screen, new_screener, new_stored
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES, invalid_filter
from fanlight_broker.wire.finder import Finder
from fanlight_broker.wire.screening import FilterScreen

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition
    from fanlight_broker.core.screener import MessageScreener
    from fanlight_broker.core.stored_screener import StoredScreener
    from matchcore.row_screener import RowScreener

ById = list[Subscription | FilterScreen | None]
ATTRIBUTES_MAX = 65_535  # different ones, of all selectors: matchcore's numbers
SCREEN_BYTES = 500  # of a filter's screen, beside matchcore's and its place in the index
ID_BYTES = 60  # of a subscription in it, beside matchcore's
STORED_MAX = 8  # selectors whose StoredScreener is kept, 70 KiB each: many clients ask for retained messages at once


class UnreadBodies(NamedTuple):
    """Of the bodies that selectors have asked about: how many had no fields, and why."""

    malformed: int = 0
    too_large: int = 0


class Screens:
    def __init__(
        self, by_id: ById, free: list[int], filters: matchcore.FilterIndex, finder: Finder,
        wall: Callable[[], float] | None = None,
    ) -> None:
        self.nbytes = 0  # of the screens; a subscription counts its tree
        self._by_id = by_id
        self._free = free
        self._filters = filters
        self._finder = finder
        self._count = 0
        self._of_filter: dict[tuple[bytes, int], FilterScreen] = {}
        self._wall = wall
        self._screener: MessageScreener | None = None  # from the first selector on
        self._stored: dict[Condition, StoredScreener] = {}

    def __len__(self) -> int:
        """Subscriptions with selectors."""
        return self._count

    @property
    def bodies(self) -> UnreadBodies:
        """Of live messages and of stored ones."""
        if self._screener is None:
            return UnreadBodies()
        return UnreadBodies(self._screener.reader.bodies.malformed, self._screener.reader.bodies.too_large)

    def new_stored(self, condition: "Condition") -> "StoredScreener":
        """Asks a selector about stored messages, one by one."""
        return new_stored(condition, self._asking().reader.bodies, self._finder.body_formats)

    def new_rows(self, condition: "Condition") -> "RowScreener":
        """Asks a selector about rows of the archive; for a thread of its own."""
        return new_rows(condition, self._asking().reader.bodies)

    def of_stored(self, condition: "Condition") -> "StoredScreener":
        """The one of a selector, for the loop."""
        found = self._stored.pop(condition, None)
        if found is None:
            found = self.new_stored(condition)
            if len(self._stored) >= STORED_MAX:
                del self._stored[next(iter(self._stored))]
        self._stored[condition] = found  # behind the others: the first was asked for longest ago
        return found

    def subscriptions(self, screens: list[FilterScreen]) -> list[Subscription]:
        """Those with selectors of some filters."""
        found = [self._by_id[id] for each in screens for id in each.ids]
        return [each for each in found if isinstance(each, Subscription)]

    def insert(self, subscription: Subscription) -> bool:
        """Enter a subscription with a selector, under an id of its own. True: it is the first of its filter.

        Raises InvalidFilter, LimitExceeded, and has changed nothing in that case.
        """
        key = subscription.filter, subscription.syntax_number
        found = self._of_filter.get(key)
        screen = found if found is not None else FilterScreen(*key, new_screen(self._asking()))
        condition: Condition = subscription.condition
        before = nbytes_of(screen) if found is not None else 0
        id = self._enter(subscription)
        try:
            screen.screen.insert(id, condition.selector)
            if found is None:
                self._begin(screen)
        except OverflowError as error:
            self._leave(id)
            raise LimitExceeded("too many different attributes in selectors", "attributes", ATTRIBUTES_MAX) from error
        except BaseException:
            screen.screen.remove(id)
            self._leave(id)
            raise
        subscription.id = id
        screen.add(id)
        self._count += 1
        self.nbytes += nbytes_of(screen) - before
        return found is None

    def _asking(self) -> "MessageScreener":
        """What asks the screens: it is made with the first one."""
        if self._screener is None:
            self._finder.screener = self._screener = new_screener(self._wall)
        return self._screener

    def _begin(self, screen: FilterScreen) -> None:
        """Put the screen of a filter in force. Raises InvalidFilter."""
        try:
            self._filters.insert(screen.filter, self._next_id(), syntax=SYNTAXES[screen.syntax_number])
        except matchcore.InvalidFilter as error:
            raise invalid_filter(error) from error
        screen.id = self._enter(screen)
        self._of_filter[screen.filter, screen.syntax_number] = screen
        self._finder.screened += 1

    def remove(self, subscription: Subscription) -> bool:
        """Remove what `insert` has entered. True: it was the last of its filter."""
        key = subscription.filter, subscription.syntax_number
        screen = self._of_filter[key]
        before = nbytes_of(screen)
        screen.screen.remove(subscription.id)
        screen.remove(subscription.id)
        self._count -= 1
        self._leave(subscription.id)
        if screen.ids:
            self.nbytes += nbytes_of(screen) - before
            return False
        self.nbytes -= before
        del self._of_filter[key]
        self._filters.remove(screen.filter, screen.id, syntax=SYNTAXES[screen.syntax_number])
        self._leave(screen.id)
        self._finder.screened -= 1
        return True

    def screen_of(self, subscription: Subscription) -> FilterScreen:
        """The one of its filter. Raises KeyError if there is none."""
        return self._of_filter[subscription.filter, subscription.syntax_number]

    def true_of(self, subscriptions: Iterable[Subscription], fields: Mapping[str, object]) -> set[int]:
        """The ids of those with a selector that is true of these fields; other ids may be there, too."""
        found = [self.screen_of(each) for each in subscriptions if each.condition is not None]
        return {id for each in {each.id: each for each in found}.values() for id in each.screen.match(fields)}

    def found_by(
        self, subscriptions: Iterable[Subscription], fields: Mapping[str, object]
    ) -> dict[int, tuple[str, ...]]:
        """Through what in their screens a message with these fields comes to those with a selector, by their ids."""
        grouped: dict[int, tuple[FilterScreen, list[int]]] = {}
        for each in subscriptions:
            if each.condition is not None:
                screen = self.screen_of(each)
                grouped.setdefault(screen.id, (screen, []))[1].append(each.id)
        return {
            id: way for screen, ids in grouped.values()
            for id, way in zip(ids, found_by(screen.screen, ids, fields), strict=True)
        }

    def _next_id(self) -> int:
        return self._free[-1] if self._free else len(self._by_id)

    def _enter(self, thing: Subscription | FilterScreen) -> int:
        id = self._next_id()
        if self._free:
            self._by_id[self._free.pop()] = thing
        else:
            self._by_id.append(thing)
        return id

    def _leave(self, id: int) -> None:
        self._by_id[id] = None
        self._free.append(id)


def nbytes_of(screen: FilterScreen) -> int:
    nbytes: int = screen.screen.nbytes
    return SCREEN_BYTES + nbytes + ID_BYTES * len(screen.ids)
