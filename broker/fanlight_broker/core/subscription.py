"""A subscription: one filter of one subscriber, and how its messages are delivered.

It is one compiled object, the target of the routes that it is on (wire/target.pxd): a million of them are held.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from fanlight_broker.wire.target import UNLIMITED, Target

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition

Subscription: TypeAlias = Target

# Bytes, beside the index of filters, which counts for itself.
SUBSCRIPTION_BYTES: Final = 160  # of one without its filter: the object, and its places in two tables
VARIANT_BYTES: Final = 1_300  # of a way to write messages that only this subscription has: it has an identifier
GROUP_BYTES: Final = 360  # of a queue group, its queue included
INDEX_BYTES: Final = 120  # of a filter of few words in the index, without its text


@dataclass(frozen=True, slots=True)
class SubscriptionOptions:
    """What a subscriber may request besides its filter."""

    group: str | None = None  # queue group
    no_echo: bool = False
    credit: int = UNLIMITED  # messages
    waiting_max: int | None = None  # messages without credit; None: the broker's limit
    after: int = UNLIMITED  # ends after this many messages
    condition: "Condition | None" = None  # on the content of its messages


PLAIN = SubscriptionOptions()


def nbytes_held(subscription: Subscription) -> int:
    """About what it takes at present."""
    nbytes = SUBSCRIPTION_BYTES + len(subscription.filter)
    if subscription.variant.identifiers:
        nbytes += VARIANT_BYTES
    if subscription.group is not None:
        nbytes += GROUP_BYTES + len(subscription.group.name)
    if subscription.condition is not None:
        nbytes += subscription.condition.nbytes
    return nbytes


def share_bytes(filter: bytes, group: str | None, condition: "Condition | None" = None) -> int:
    """What it counts in its principal's share while it is in force: with about what its filter takes in the index."""
    nbytes = SUBSCRIPTION_BYTES + INDEX_BYTES + 2 * len(filter)
    if condition is not None:
        nbytes += condition.nbytes
    return nbytes if group is None else nbytes + GROUP_BYTES + len(group)


def sizes_of(subscriptions: Sequence[Subscription]) -> tuple[int, int]:
    """`nbytes_held` and `share_bytes` of many that are in no group and have no condition, added up."""
    octets = sum([len(each.filter) for each in subscriptions])
    held = SUBSCRIPTION_BYTES * len(subscriptions) + octets
    shared = held + INDEX_BYTES * len(subscriptions) + octets
    return held + VARIANT_BYTES * sum([each.variant.identifiers != b"" for each in subscriptions]), shared


def group_name_of(subscription: Subscription) -> str | None:
    return subscription.group.name if subscription.group is not None else None


def number_of(subscription: Subscription) -> int | None:
    """The number of its owner's connection; None while it is not connected."""
    client = subscription.owner.client
    return client.number if client is not None else None
