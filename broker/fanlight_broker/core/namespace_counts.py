"""What one namespace has counted, and what it has; and the sums of all, for metrics."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from fanlight_broker.core import queue_views
from fanlight_broker.core.namespace import Namespace

LARGEST: Final = frozenset({"queue_oldest_seconds"})  # gauges of which the largest counts, and not the sum
SOONEST: Final = frozenset({"delayed_next_seconds"})  # of which the smallest counts that is not 0


def counts_of(namespace: Namespace) -> Mapping[str, int]:
    """Its counters, by the names of inspection.COUNTERS."""
    sessions, routes, router = namespace.sessions, namespace.routes, namespace.router
    return {
        "bodies_malformed": router.screens.bodies.malformed,
        "bodies_too_large": router.screens.bodies.too_large,
        "messages_expired": namespace.retained.expired + namespace.delayed.expired,
        "retained_refused": namespace.retained.refused,
        "sessions_resumed": sessions.resumed,
        "sessions_taken_over": sessions.taken_over,
        "sessions_expired": sessions.expired,
        "sessions_made_room": sessions.made_room,
        "wills_published": sessions.wills_published,
        "routes_built": router.built,
        "routes_invalidated": router.invalidated,
        "routes_evicted": routes.evicted,
        "route_hits": routes.hits,
        "route_misses": routes.misses,
        "subscribes": namespace.subscribing.begun,
        "unsubscribes": namespace.subscribing.ended,
        **namespace.delayed.counters(),
        **queue_views.counters(namespace.queues),
    }


def gauges_of(namespace: Namespace, now: float) -> Mapping[str, float]:
    """Its gauges, by the names of inspection.GAUGES."""
    return {
        "subscriptions": len(namespace.router),
        "routes": len(namespace.routes),
        "route_bytes": namespace.routes.nbytes,
        "sessions": len(namespace.sessions),
        "sessions_away": namespace.sessions.away,
        "retained_messages": len(namespace.retained),
        "filter_index_bytes": namespace.router.index_bytes,
        **queue_views.gauges(namespace.queues, now),
        **namespace.delayed.gauges(now),
    }


def all_counts(homes: Iterable[Namespace], gone: Mapping[str, int]) -> Mapping[str, int]:
    """Of all namespaces. gone: what those have counted that were let go."""
    total = Counter(gone)
    for each in homes:
        total.update(counts_of(each))
    return total


def all_gauges(homes: Iterable[Namespace], now: float) -> Mapping[str, float]:
    """Of all namespaces, the root first."""
    first, *others = (gauges_of(each, now) for each in homes)
    total = dict(first)
    for found in others:
        for name, value in found.items():
            if name in LARGEST:
                total[name] = max(total[name], value)
            elif name in SOONEST:
                total[name] = min(total[name] or value, value or total[name])
            else:
                total[name] += value
    return total
