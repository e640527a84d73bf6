"""What is bounded in all, how much of it is used, and of how much."""

from collections.abc import Iterator, Mapping
from typing import Final

from fanlight_broker.core.limits import Limits

GAUGES: Final[Mapping[str, str]] = {  # gauges with a limit of the same meaning
    "connections": "connections_max", "outbox_bytes": "outboxes_bytes_max", "inbox_bytes": "inboxes_bytes_max",
    "tls_bytes": "tls_bytes_max", "handshake_bytes": "handshakes_bytes_max", "session_bytes": "sessions_bytes_max",
    "sessions": "sessions_max", "subscription_bytes": "subscriptions_bytes_max", "subscriptions": "subscriptions_max",
    "stored_bytes": "stored_bytes_max", "retained_bytes": "retained_bytes_max",
    "retained_messages": "retained_messages_max", "queues": "queues_max", "marks": "marks_max",
    "delayed_messages": "delayed_messages_max", "delayed_bytes": "delayed_bytes_max", "namespaces": "namespaces_max",
}


def bounded(gauges: Mapping[str, float], limits: Limits) -> Iterator[tuple[str, float, float]]:
    """Each limit, what is used and the most."""
    for gauge, limit in GAUGES.items():
        yield limit, gauges[gauge], float(getattr(limits, limit))
