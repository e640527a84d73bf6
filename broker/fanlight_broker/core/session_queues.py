"""Queues as the limits want them: of sessions, and of queue groups."""

from fanlight_broker.core.limits import Limits, QueuePolicy
from fanlight_broker.wire.ledger import Account, Ledger
from fanlight_broker.wire.queue import Queue


def new_queue(ledger: Ledger, limits: Limits, account: Account | None = None) -> Queue:
    """account: of the principal that pays for what is kept in it"""
    drop_oldest = limits.queue_policy == QueuePolicy.DROP_OLDEST
    return Queue(ledger, limits.queue_messages_max, limits.queue_bytes_max, drop_oldest, account)
