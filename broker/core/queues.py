"""Queues as the limits want them: of sessions, and of queue groups."""

from broker.core.limits import Limits, QueuePolicy
from broker.wire.ledger import Ledger
from broker.wire.window import Queue


def new_queue(ledger: Ledger, limits: Limits) -> Queue:
    return Queue(
        ledger, limits.queue_messages_max, limits.queue_bytes_max, limits.queue_policy == QueuePolicy.DROP_OLDEST
    )
