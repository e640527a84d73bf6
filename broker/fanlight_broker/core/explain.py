"""Explain: which subscriptions a topic reaches, found in which tier of the matcher and by which rows, and through what
in the screen of their filter; which of them do not want a message with these fields; and why a client's others are not
among them.
"""

from collections.abc import Container, Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import matchcore
from fanlight_broker.core.explain_notes import notes_of, notes_of_reached
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.ports import View
from fanlight_broker.core.router import Router
from fanlight_broker.core.selectors import where_of
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.subscription import Subscription, group_name_of, number_of
from fanlight_broker.core.topics import SYNTAXES, first_word, masked, reserved, sees_reserved, words_of
from fanlight_broker.wire.screening import FilterScreen
from matchcore.reasons import why_not_true

FieldValues = Mapping[str, Any]  # by the names that selectors have for them
Slices = Generator[None, None, View]  # steps of a view

# What a step has: 0.5 to 2 ms.
AT_ONCE: Final = 4_096  # ids
ROWS_AT_ONCE: Final = 128
CLIENTS_AT_ONCE: Final = 1_024  # clients, or subscriptions of one

ALIKE: Final = 5  # names of other clients that are shown, if no client has the name that was asked for
LOOKED_AT: Final = 4_096  # subscriptions that may be near: some 60 ms, in steps


def explain(
    broker: Namespace, topic: bytes, syntax: str, client: str | None, limit: int, fields: FieldValues | None = None,
    near: int = 0,
) -> Slices:
    """Explain a topic, or a message on it: the view is what the generator returns.

    client  a client's name or connection number
    fields  of the message; None: of the topic alone, so whatever selectors say
    near    how many subscriptions to show that are not reached, those first that fail at the fewest rows

    Between two steps, each of one match or some thousand ids, the broker may go on. What begins or ends meanwhile may
    be in the view or not. Raises ValueError for invalid input.
    """
    if syntax not in SYNTAXES:
        raise ValueError(f"syntax {syntax!r}; it is one of {', '.join(SYNTAXES)}")
    words = words_of(topic, syntax, broker.limits)
    known = None if fields is None else {**fields_of_topic(words), **fields}
    plain, screens = broker.router.reached(topic, syntax)
    by_filter = {(each.filter, each.syntax_number): each for each in screens}
    reached = Reached(frozenset(plain), by_filter, None if known is None else set())
    yield
    found: list[int] = yield from least(plain, limit)
    total, filtered_total = len(plain), 0
    filtered: list[int] = []
    for screen in screens:
        ids = yield from readable(broker.router, list(screen.ids), topic, syntax)
        if reached.wanted is not None:
            wanted = screen.screen.match(known)
            if len(ids) < len(screen.ids):
                left = frozenset(ids)
                wanted = [id for id in wanted if id in left]
            reached.wanted.update(wanted)
            yield
            filtered = sorted((*filtered, *(yield from least(ids, limit, reached.wanted))))[:limit]
            filtered_total += len(ids) - len(wanted)
            ids = wanted
        total += len(ids)
        found = sorted((*found, *(yield from least(ids, limit))))[:limit]
    view: View = {
        "topic": text(topic), "syntax": syntax, "words": [text(word) for word in words], "total": total,
        "matches": (yield from matches_of(broker, topic, syntax, found, known)),
    }
    if known is not None:
        view["filtered_total"] = filtered_total
        view["filtered"] = rows = []
        for each in broker.router.in_force(filtered):
            if each.condition is not None:
                rows.append({**identified(each), "reason": not_true(each, known)})
            yield
    if not broker.publishing.rules.empty:
        view |= broker.publishing.rules.explain(topic, syntax, fields)
    if near:
        view |= yield from nearest(broker, topic, syntax, reached, near, known)
    if client is not None:
        view["client"] = yield from explain_client(broker, topic, syntax, client, reached, limit, known)
    return view


class Reached(NamedTuple):
    """Which subscriptions a message reaches.

    plain   ids of those without a selector
    wanted  ids of those whose selector is true, some of which the topic may not reach; None: all of the screens
    """

    plain: frozenset[int]
    screens: Mapping[tuple[bytes, int], FilterScreen]  # by their filter and its syntax
    wanted: set[int] | None

    def has(self, subscription: Subscription) -> bool:
        if subscription.condition is None:
            return subscription.id in self.plain
        if self.wanted is not None:
            return subscription.id in self.wanted
        screen = self.screens.get((subscription.filter, subscription.syntax_number))
        return screen is not None and subscription.id in screen.ids


def least(ids: Sequence[int], limit: int, without: Container[int] = ()) -> Generator[None, None, list[int]]:
    """The smallest of some ids, in order."""
    found: list[int] = []
    for at in range(0, len(ids), AT_ONCE):
        found = sorted((*found, *(id for id in ids[at : at + AT_ONCE] if id not in without)))[:limit]
        yield
    return found


def readable(router: Router, ids: list[int], topic: bytes, syntax: str) -> Generator[None, None, list[int]]:
    """Without those that are denied the topic by permissions, of subscriptions that are allowed in part."""
    kept: list[int] = []
    for at in range(0, len(ids), ROWS_AT_ONCE):
        kept += router.readable(ids[at : at + ROWS_AT_ONCE], topic, syntax)
        yield
    return kept


def matches_of(
    broker: Namespace, topic: bytes, syntax: str, ids: Sequence[int], known: FieldValues | None
) -> Generator[None, None, list[View]]:
    router = broker.router
    rows: list[View] = []
    for at in range(0, len(ids), ROWS_AT_ONCE):
        shown = router.in_force(ids[at : at + ROWS_AT_ONCE])
        explanations = router.explanations(topic, syntax, shown)
        found_by = {} if known is None else router.screens.found_by(shown, known)
        rows += [
            {
                **identified(s), "tier": explanations[s.id].tier, "rows": [str(row) for row in explanations[s.id].rows],
                "bits": bits_of(s, topic, syntax),
                "found_by": list(found_by.get(s.id, ())),
                "reason": with_screen(explanations[s.id].reason, found_by.get(s.id, ())),
            }
            for s in shown if s.id in explanations
        ]
        yield
    return rows


def with_screen(reason: str, found_by: tuple[str, ...]) -> str:
    return f"{reason}; screen: {', '.join(found_by)}" if found_by else reason


def identified(subscription: Subscription) -> View:
    return {
        "client": subscription.owner.name, "connection": number_of(subscription), "subscription": subscription.number,
        "filter": filter_of(subscription), "syntax": SYNTAXES[subscription.syntax_number],
        "group": group_name_of(subscription), "where": where_of(subscription.condition),
    }


def fields_of_topic(words: tuple[bytes, ...]) -> FieldValues:
    return {"$words": len(words), **{f"$word[{at}]": text(word) for at, word in enumerate(words, 1)}}


def explain_client(
    broker: Namespace, topic: bytes, syntax: str, client: str, reached: Reached, limit: int, fields: FieldValues | None
) -> Slices:
    """Why the subscriptions of the clients of this name or number are not reached."""
    matching = others = 0
    rows: list[View] = []
    notes: list[str] = []
    alike: dict[str, None] = {}
    owners: list[Subscriber] = []
    clients = list(broker.clients)
    for at in range(0, len(clients), CLIENTS_AT_ONCE):
        for one in clients[at : at + CLIENTS_AT_ONCE]:
            if client in (one.subscriber.name, str(one.number)):
                owners.append(one.subscriber)
            elif len(alike) < ALIKE and (
                one.subscriber.user == client or client.casefold() in one.subscriber.name.casefold()
            ):
                alike[one.subscriber.name] = None
        yield
    connected = len(owners)
    session = broker.sessions.get(client)
    if session is not None and not session.connected:
        owners.append(session.subscriber)
    for owner in owners:
        notes += notes_of(owner)
        for number, each in enumerate(list(owner.subscriptions)):
            if number % CLIENTS_AT_ONCE == CLIENTS_AT_ONCE - 1:
                yield
            denial = denial_of(broker, each, topic, syntax)
            if reached.has(each) and denial is None:
                matching += 1
                if len(notes) < limit:
                    notes += notes_of_reached(each)
                continue
            others += 1
            if len(rows) < limit:
                rows.append(
                    {
                        "filter": filter_of(each), "syntax": SYNTAXES[each.syntax_number],
                        "where": where_of(each.condition), "bits": bits_of(each, topic, syntax),
                        "reason": why_not(each, topic, syntax, fields, denial),
                    }
                )
                yield
    return {
        "name": client, "known": bool(owners), "connected": connected, "matching": matching, "notes": notes,
        "alike": [] if owners else list(alike), "why_not_total": others, "why_not": rows,
    }


def nearest(
    broker: Namespace, topic: bytes, syntax: str, reached: Reached, count: int, fields: FieldValues | None
) -> Generator[None, None, View]:
    """Subscriptions that are not reached, of the first LOOKED_AT: those first that fail at the fewest rows."""
    found: list[tuple[int, int, Subscription]] = []
    looked_at = 0
    following: int | None = 0
    while following is not None and looked_at < LOOKED_AT:
        page, following = broker.router.from_place(following, ROWS_AT_ONCE)
        for each in page:
            looked_at += 1
            if not reached.has(each) or denial_of(broker, each, topic, syntax) is not None:
                failed = list(bits_of(each, topic, syntax).values()).count(False)
                found.append((failed, each.id, each))
        found = sorted(found, key=lambda one: one[:2])[:count]
        yield
    rows: list[View] = []
    for _, _, each in found:
        reason = why_not(each, topic, syntax, fields, denial_of(broker, each, topic, syntax))
        rows.append({**identified(each), "bits": bits_of(each, topic, syntax), "reason": reason})
        yield
    return {"near": rows, "near_of": looked_at}


def bits_of(subscription: Subscription, topic: bytes, syntax: str) -> Mapping[str, bool]:
    """Its filter's bit in each row of the bitmap that asks something of it; all set: the filter matches."""
    filter_syntax = SYNTAXES[subscription.syntax_number]
    if masked(subscription.filter, filter_syntax) != subscription.filter:
        return {"inbox": False}  # its words are a secret of its client
    return matchcore.bits(subscription.filter, filter_syntax, topic, syntax)


def denial_of(broker: Namespace, subscription: Subscription, topic: bytes, syntax: str) -> str | None:
    """Why permissions leave a subscription that is allowed in part out of the route of a topic; None: they do not."""
    enforcement = broker.enforcement
    if not subscription.partly or enforcement.may_read(subscription, topic, SYNTAXES.index(syntax)):
        return None
    rule = enforcement.decide(subscription.owner, Action.SUBSCRIBE, topic, syntax).rule
    return f"a permission denies it to read {shown_topic(topic, syntax)}{f': {rule}' if rule else ''}"


def why_not(
    subscription: Subscription, topic: bytes, syntax: str, fields: FieldValues | None = None, denial: str | None = None
) -> str:
    """denial: why permissions deny its owner the topic"""
    filter, filter_syntax = subscription.filter, SYNTAXES[subscription.syntax_number]
    if reserved(topic, syntax) and not sees_reserved(filter, filter_syntax, topic, syntax):
        root = text(first_word(topic, syntax))
        return f"the topic begins with {root}, which only filters with that very first word see"
    if masked(filter, filter_syntax) != filter:
        return "the filter is of an inbox, and the topic is not below it"  # matchcore would say the inbox's word
    reason = matchcore.why_not(filter, filter_syntax, topic, syntax)
    if reason is None and denial is not None:
        return denial
    if reason is None and fields is not None and subscription.condition is not None:
        return not_true(subscription, fields)
    return reason or "it does match"


def not_true(subscription: Subscription, fields: FieldValues) -> str:
    """Why its selector is not true."""
    return why_not_true(subscription.condition.selector, fields) or "it is true"


def shown_topic(topic: bytes, syntax: str) -> str:
    return text(masked(topic, syntax))


def filter_of(subscription: Subscription) -> str:
    return text(masked(subscription.filter, SYNTAXES[subscription.syntax_number]))


def text(octets: bytes) -> str:
    return octets.decode("utf-8", "backslashreplace")
