"""Subscriptions: which a topic reaches, how they lie to a filter, which another one of their client covers."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import matchcore
from fanlight_broker.admin.api.declared import TEXT, WHOLE, Call, Operation, Parameter, maybe, shape
from fanlight_broker.admin.api.lists import SYNTAX, Id, Listing, page_of
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import BadParameter
from fanlight_broker.admin.api.redundancy import Redundancy, progress_of
from fanlight_broker.admin.api.shown import href
from fanlight_broker.core.explain import ROWS_AT_ONCE, readable
from fanlight_broker.core.inspection import subscription_view
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.subscription import Subscription, group_name_of, number_of
from fanlight_broker.core.topics import SYNTAXES, hashes_of, parse_filter, words_of

PLACES: Final = 64  # ids that are looked at together
RELATIONS: Final = ("any", "covered", "covers", "equal")
SUBSCRIPTION: Final = shape(
    id=WHOLE, client=TEXT, user=TEXT, connection=maybe(WHOLE), filter=TEXT, syntax=TEXT, group=maybe(TEXT),
    where=maybe(TEXT), delivered=WHOLE, dropped=WHOLE,
)
Row = tuple[Subscription, Subscription | None]  # and the one that makes it redundant


class SubscriptionOperations:
    def __init__(self, operated: Operated) -> None:
        self._operated = operated
        broker = operated.broker
        self.listing: Listing[Row] = Listing(
            rows=self._rows, count=lambda: sum(len(home.router) for home in broker.everywhere()),
            id=lambda row: (row[0].owner.namespace, row[0].id), view=view_of, ordered=True,
            keys={
                "client": lambda row: row[0].owner.name, "user": lambda row: row[0].owner.user,
                "connection": lambda row: number_of(row[0]), "group": lambda row: group_name_of(row[0]),
                "filter": lambda row: row[0].filter.decode("utf-8", "backslashreplace"),
                "namespace": lambda row: row[0].owner.namespace, "qos": lambda row: row[0].variant.qos,
                "delivered": lambda row: row[0].delivered, "dropped": lambda row: row[0].dropped,
                "waiting": lambda row: row[0].waiting_messages, "searching": lambda row: searching(row[0]),
            },
            searched=("client", "user", "filter"), exact=("client", "user", "connection", "group", "namespace"),
            numbers=("connection",),
        )
        self.redundancy = Redundancy(self._each, operated.slices, operated.clock)

    def operations(self) -> tuple[Operation, ...]:
        return (Operation(
            "GET", "/subscriptions", "Subscriptions; also by a topic, by a filter, or the redundant ones", self.list,
            page_of(SUBSCRIPTION), (
                *self.listing.parameters(),
                Parameter("topic", str, "only those that a message on this topic would reach", least=1),
                Parameter("filter", str, "only those whose filter is related to this one", least=1), SYNTAX,
                Parameter("relation", str, "covered: by `filter`; covers: it covers `filter`; equal: both; any: they "
                          "have topics in common", "any", choices=RELATIONS),
                Parameter("redundant", bool, "only those of which another one of the client gets all messages",
                          default=False),
            ), action=Action.ADMIN_READ, absent=True, tag="subscriptions",
        ),)

    def list(self, call: Call) -> Generator[None, None, dict[str, Any]] | Awaitable[dict[str, Any]]:
        given = [name for name in ("topic", "filter", "redundant") if call[name]]
        if len(given) > 1:
            raise BadParameter(given[1], f"cannot be asked for together with {given[0]}")
        listing = self.listing
        wanted: Callable[[Row], bool] | None = None
        if call["topic"] is not None:
            topic, home = call["topic"].encode(), self._operated.home(call["namespace"])
            words_of(topic, call["syntax"], home.limits)
            listing = replace(listing, ordered=False, rows=lambda after: reached(home, topic, call["syntax"]))
        elif call["filter"] is not None:
            filter, syntax = call["filter"].encode(), call["syntax"]
            parse_filter(filter, syntax, self._operated.broker.limits)
            wanted = partial(is_related, filter, syntax, call["relation"])
        elif call["redundant"]:
            return self._redundant(call)
        return listing.page(call, is_there if listing is not self.listing else wanted)  # then it is counted

    async def _redundant(self, call: Call) -> dict[str, Any]:
        found = await self.redundancy.found()
        listing = replace(self.listing, ordered=False, rows=lambda after: list(found.pairs))
        page = await self._operated.slices.made(listing.page(call, is_there))
        page["complete"] = page["complete"] and found.complete and found.redundant <= len(found.pairs)
        return page | progress_of(found, self.listing.count())

    def _rows(self, after: Id | None) -> Iterator[Row | None]:
        for home in sorted(self._operated.broker.everywhere(), key=lambda home: home.name):
            place: int | None = 0
            if after is not None and (home.name,) == after[:1]:
                place = after[1] + 1
            elif after is not None and (home.name,) < after[:1]:
                continue
            while place is not None:
                found, place = home.router.from_place(place, PLACES)
                for each in found:
                    yield each, None
                yield None

    def _each(self) -> Iterator[Subscription | None]:
        for row in self._rows(None):
            yield row[0] if row is not None else None


def is_there(row: Row) -> bool:
    return not row[0].ended


def is_related(filter: bytes, syntax: str, relation: str, row: Row) -> bool:
    other, its_syntax = row[0].filter, SYNTAXES[row[0].syntax_number]
    try:
        if relation == "any":
            return matchcore.intersects(filter, other, a_syntax=syntax, b_syntax=its_syntax)
        covered = matchcore.covers(filter, other, a_syntax=syntax, b_syntax=its_syntax)
        if relation == "covered":
            return covered
        covers = matchcore.covers(other, filter, a_syntax=its_syntax, b_syntax=syntax)
    except matchcore.InvalidFilter:
        return False  # of a queue, whose filter is no pattern
    return covers and (covered or relation == "covers")


def reached(home: Namespace, topic: bytes, syntax: str) -> Iterable[Row | None]:
    """Those that a topic reaches, whatever their selectors say."""
    plain, screens = home.router.reached(topic, syntax)
    for at in range(0, len(plain), ROWS_AT_ONCE):
        for each in home.router.in_force(plain[at : at + ROWS_AT_ONCE]):
            yield each, None
        yield None
    for screen in screens:
        steps, ids = readable(home.router, list(screen.ids), topic, syntax), list[int]()
        while True:
            try:
                next(steps)
                yield None
            except StopIteration as end:
                ids = end.value
                break
        for at in range(0, len(ids), ROWS_AT_ONCE):
            for each in home.router.in_force(ids[at : at + ROWS_AT_ONCE]):
                yield each, None
            yield None


def searching(subscription: Subscription) -> int:
    """How many `#` its filter has, each of which may be anywhere: what makes it expensive to match."""
    return hashes_of(subscription.filter, SYNTAXES[subscription.syntax_number])


def view_of(row: Row) -> dict[str, Any]:
    subscription, other = row
    owner: Subscriber = subscription.owner
    return {
        "id": subscription.id, "user": owner.user, **subscription_view(subscription),
        "searching": searching(subscription),
        "owner": href("sessions", owner.name, namespace=owner.namespace) if owner.session is not None
        else href("connections", str(owner.client.number)) if owner.client is not None else None,
        **({"redundant_by": subscription_view(other)["filter"]} if other is not None else {}),
    }
