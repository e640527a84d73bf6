"""Queues as the limits want them: of sessions, and of queue groups."""

from collections.abc import Callable

from fanlight_broker.core.limits import Limits, QueuePolicy
from fanlight_broker.core.quota import NO_QUOTA, Quota
from fanlight_broker.wire.ledger import Account, Ledger
from fanlight_broker.wire.queue import Queue


def new_queue(ledger: Ledger, limits: Limits, account: Account | None = None) -> Queue:
    """account: of the principal that pays for what is kept in it"""
    drop_oldest = limits.queue_policy == QueuePolicy.DROP_OLDEST
    return Queue(ledger, limits.queue_messages_max, limits.queue_bytes_max, drop_oldest, account)


def queue_maker(limits: Limits) -> Callable[[Ledger, Account | None], Queue]:
    """What makes such queues, for callers that make many of them."""
    messages, octets = limits.queue_messages_max, limits.queue_bytes_max
    drop_oldest = limits.queue_policy == QueuePolicy.DROP_OLDEST
    return lambda ledger, account: Queue(ledger, messages, octets, drop_oldest, account)


def bound_queue(queue: Queue, limits: Limits, quota: Quota) -> None:
    """Bound the queue of a session by a quota, too. What is in it stays."""
    queue.messages_max, queue.bytes_max = limits.queue_messages_max, limits.queue_bytes_max
    if quota is not NO_QUOTA:
        queue.messages_max = min(queue.messages_max, quota.least("queue_messages") or queue.messages_max)
        queue.bytes_max = min(queue.bytes_max, quota.least("queue_bytes") or queue.bytes_max)
