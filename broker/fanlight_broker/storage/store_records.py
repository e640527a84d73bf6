"""Records of the store that are made of what the core has: of subscriptions, delayed and retained messages."""

from fanlight_broker.core.delayed_message import DelayedPublisher
from fanlight_broker.core.selectors import where_of
from fanlight_broker.core.subscription import Subscription, group_name_of
from fanlight_broker.storage.facts import DelayedFact, SubscriptionFact, packed
from fanlight_broker.storage.stored_queue import StoredQueueJournal


def in_namespace(namespace: str, retained: bytes) -> bytes:
    """A RETAINED_IN record, of a RETAINED one."""
    name = namespace.encode()
    return bytes((len(name),)) + name + retained


def delayed_record(
    id: int, due: float, nbytes: int, publisher: DelayedPublisher, namespace: str | None = None
) -> bytes:
    """A DELAYED record. due: wall-clock time."""
    return packed(DelayedFact(
        id, due, nbytes, publisher.share.stored_name, publisher.name, publisher.protocol, publisher.session, namespace
    ))


def subscription_fact(journal: StoredQueueJournal, subscription: Subscription) -> SubscriptionFact:
    variant = subscription.variant
    return SubscriptionFact(
        journal.id, subscription.number, subscription.filter, subscription.syntax_number, group_name_of(subscription),
        variant.qos, subscription.no_echo, variant.retain, variant.identifiers, where_of(subscription.condition),
    )
