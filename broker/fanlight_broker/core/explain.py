"""Explain: which subscriptions a topic reaches, found in which tier of the matcher and by which rows, and through what
in the screen of their filter; which of them do not want a message with these fields; and why a client's others are not
among them.
"""

from collections.abc import Mapping
from typing import Any

import matchcore
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.ports import View
from fanlight_broker.core.selectors import where_of
from fanlight_broker.core.subscription import Subscription, group_name_of, number_of
from fanlight_broker.core.topics import SYNTAXES, first_word, masked, reserved, sees_reserved, words_of
from matchcore.reasons import why_not_true

FieldValues = Mapping[str, Any]  # by the names that selectors have for them


def explain(
    broker: Broker, topic: bytes, syntax: str, client: str | None, limit: int, fields: FieldValues | None = None
) -> View:
    """Explain a topic, or a message on it.

    client  a client's name or connection number
    fields  of the message; None: of the topic alone, so whatever selectors say

    Raises ValueError for invalid input.
    """
    if syntax not in SYNTAXES:
        raise ValueError(f"syntax {syntax!r}; it is one of {', '.join(SYNTAXES)}")
    words = words_of(topic, syntax, broker.limits)
    reached = broker.router.matching(topic, syntax)
    known = None if fields is None else {**fields_of_topic(words), **fields}
    wanted = set() if known is None else broker.router.screens.true_of(reached, known)
    matching = [s for s in reached if s.condition is None or known is None or s.id in wanted]
    shown = matching[:limit]
    explanations = broker.router.explanations(topic, syntax, shown)
    found_by = {} if known is None else broker.router.screens.found_by(shown, known)
    view: View = {
        "topic": text(topic), "syntax": syntax, "words": [text(word) for word in words],
        "total": len(matching),
        "matches": [
            {
                **identified(s), "tier": explanations[s.id].tier, "rows": [str(row) for row in explanations[s.id].rows],
                "found_by": list(found_by.get(s.id, ())),
                "reason": with_screen(explanations[s.id].reason, found_by.get(s.id, ())),
            }
            for s in shown
        ],
    }
    if known is not None:
        filtered = [s for s in reached if s.condition is not None and s.id not in wanted]
        view["filtered_total"] = len(filtered)
        view["filtered"] = [{**identified(s), "reason": not_true(s, known)} for s in filtered[:limit]]
    if not broker.publishing.rules.empty:
        view |= broker.publishing.rules.explain(topic, syntax, fields)
    if client is not None:
        view["client"] = explain_client(broker, topic, syntax, client, {s.id for s in matching}, limit, known)
    return view


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
    broker: Broker, topic: bytes, syntax: str, client: str, matching: set[int], limit: int, fields: FieldValues | None
) -> View:
    """Why the subscriptions of the clients of this name or number are not reached."""
    found = [c for c in broker.clients if client in (c.subscriber.name, str(c.number))]
    others = [s for c in found for s in c.subscriber.subscriptions if s.id not in matching]
    return {
        "name": client,
        "connected": len(found),
        "matching": sum(s.id in matching for c in found for s in c.subscriber.subscriptions),
        "why_not_total": len(others),
        "why_not": [
            {
                "filter": filter_of(s), "syntax": SYNTAXES[s.syntax_number], "where": where_of(s.condition),
                "reason": why_not(s, topic, syntax, fields),
            }
            for s in others[:limit]
        ],
    }


def why_not(subscription: Subscription, topic: bytes, syntax: str, fields: FieldValues | None = None) -> str:
    filter, filter_syntax = subscription.filter, SYNTAXES[subscription.syntax_number]
    if reserved(topic, syntax) and not sees_reserved(filter, filter_syntax, topic, syntax):
        root = text(first_word(topic, syntax))
        return f"the topic begins with {root}, which only filters with that very first word see"
    if masked(filter, filter_syntax) != filter:
        return "the filter is of an inbox, and the topic is not below it"  # matchcore would say the inbox's word
    reason = matchcore.why_not(filter, filter_syntax, topic, syntax)
    if reason is None and fields is not None and subscription.condition is not None:
        return not_true(subscription, fields)
    return reason or "it does match"


def not_true(subscription: Subscription, fields: FieldValues) -> str:
    """Why its selector is not true."""
    return why_not_true(subscription.condition.selector, fields) or "it is true"


def filter_of(subscription: Subscription) -> str:
    return text(masked(subscription.filter, SYNTAXES[subscription.syntax_number]))


def text(octets: bytes) -> str:
    return octets.decode("utf-8", "backslashreplace")
