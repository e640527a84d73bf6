"""Explain: which subscriptions a topic reaches, found in which tier of the matcher and by which rows; and why a
client's others are not among them.
"""


import matchcore
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.ports import View
from fanlight_broker.core.subscription import Subscription, group_name_of, number_of
from fanlight_broker.core.topics import SYNTAXES, first_word, masked, reserved, sees_reserved, words_of


def explain(broker: Broker, topic: bytes, syntax: str, client: str | None, limit: int) -> View:
    """Explain a topic. `client` is a client's name or connection number. Raises ValueError for invalid input."""
    if syntax not in SYNTAXES:
        raise ValueError(f"syntax {syntax!r}; it is one of {', '.join(SYNTAXES)}")
    words = words_of(topic, syntax, broker.limits)
    matching = broker.router.matching(topic, syntax)
    shown = matching[:limit]
    explanations = broker.router.explanations(topic, syntax, shown)
    view: View = {
        "topic": text(topic), "syntax": syntax, "words": [text(word) for word in words],
        "total": len(matching),
        "matches": [
            {
                "client": s.owner.name, "connection": number_of(s), "subscription": s.number,
                "filter": filter_of(s), "syntax": SYNTAXES[s.syntax_number], "group": group_name_of(s),
                "tier": explanations[s.id].tier, "rows": [str(row) for row in explanations[s.id].rows],
                "reason": explanations[s.id].reason,
            }
            for s in shown
        ],
    }
    if client is not None:
        view["client"] = explain_client(broker, topic, syntax, client, {s.id for s in matching}, limit)
    return view


def explain_client(
    broker: Broker, topic: bytes, syntax: str, client: str, matching: set[int], limit: int
) -> View:
    """Why the subscriptions of the clients of this name or number are not reached."""
    found = [c for c in broker.clients if client in (c.subscriber.name, str(c.number))]
    others = [s for c in found for s in c.subscriber.subscriptions if s.id not in matching]
    return {
        "name": client,
        "connected": len(found),
        "matching": sum(s.id in matching for c in found for s in c.subscriber.subscriptions),
        "why_not": [
            {"filter": filter_of(s), "syntax": SYNTAXES[s.syntax_number], "reason": why_not(s, topic, syntax)}
            for s in others[:limit]
        ],
    }


def why_not(subscription: Subscription, topic: bytes, syntax: str) -> str:
    filter, filter_syntax = subscription.filter, SYNTAXES[subscription.syntax_number]
    if reserved(topic, syntax) and not sees_reserved(filter, filter_syntax, topic, syntax):
        root = text(first_word(topic, syntax))
        return f"the topic begins with {root}, which only filters with that very first word see"
    if masked(filter, filter_syntax) != filter:
        return "the filter is of an inbox, and the topic is not below it"  # matchcore would say the inbox's word
    return matchcore.why_not(filter, filter_syntax, topic, syntax) or "it does match"


def filter_of(subscription: Subscription) -> str:
    return text(masked(subscription.filter, SYNTAXES[subscription.syntax_number]))


def text(octets: bytes) -> str:
    return octets.decode("utf-8", "backslashreplace")
