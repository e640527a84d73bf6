"""A subscription: one filter of one client, and how it wants its messages.

It is one compiled object, the target of the routes that it is on (wire/fanout.pxd): a million of them are held.
"""

from dataclasses import dataclass
from typing import TypeAlias

from broker.wire.fanout import UNLIMITED, Target

Subscription: TypeAlias = Target


@dataclass(frozen=True, slots=True)
class Options:
    """What a subscriber may ask for beside its filter."""

    group: str | None = None  # queue group
    no_echo: bool = False
    credit: int = UNLIMITED  # messages
    waiting_max: int | None = None  # messages without credit; None: the broker's limit
    after: int = UNLIMITED  # end by itself after so many messages


PLAIN = Options()


def group_name_of(subscription: Subscription) -> str | None:
    return subscription.group.name if subscription.group is not None else None
