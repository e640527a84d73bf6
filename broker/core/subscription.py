"""A subscription: one filter of one client, and how it wants its messages."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.core.client import Client
from broker.wire.fanout import UNLIMITED, Group, Target

if TYPE_CHECKING:
    from broker.core.session import Session


@dataclass(frozen=True, slots=True)
class Options:
    """What a subscriber may ask for beside its filter."""

    group: str | None = None  # queue group
    no_echo: bool = False
    credit: int = UNLIMITED  # messages
    waiting_max: int | None = None  # messages without credit; None: the broker's limit
    after: int = UNLIMITED  # end by itself after so many messages


@dataclass(slots=True, eq=False)
class Subscription:
    client: Client
    number: int  # the client's, unique on its connection
    filter: bytes  # as the client wrote it: a million of them are held, and taken apart only for people
    syntax: str
    group_name: str | None
    target: Target
    id: int = -1  # the router's
    group: Group | None = None
    session: "Session | None" = None  # whose it is, if it outlives the connection

    @property
    def delivered(self) -> int:
        """Messages handed to the connection, those that its slow policy took back not counted."""
        return self.target.delivered - self.client.outbox.evicted.get(self.number, 0)

    @property
    def dropped(self) -> int:
        """Messages it would have got, but for its slow policy or its credit."""
        return self.target.dropped + self.client.outbox.evicted.get(self.number, 0)
