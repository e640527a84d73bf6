"""A named queue as the core knows it: what it was declared with, its consumers, and its compiled inside."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import inf

from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.window import Window


class Overflow(StrEnum):
    """What happens when a message comes and the queue is full."""

    REFUSE_PUBLISHER = "refuse_publisher"  # its publisher gets an error
    DROP_NEWEST = "drop_newest"
    DROP_OLDEST = "drop_oldest"
    DEAD_LETTER = "dead_letter"  # the oldest goes to the dead-letter topic


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """What a queue is declared with. None: the default, or whatever a queue that exists has."""

    durable: bool = True
    messages_max: int | None = None  # that wait
    bytes_max: int | None = None  # of these
    message_seconds: float | None = None  # that a message may wait
    unused_seconds: float | None = None  # without a consumer, after which the queue ends
    overflow: Overflow | None = None  # REFUSE_PUBLISHER
    deliveries_max: int | None = None  # of one message; it is discarded then
    dead_letter: tuple[bytes, str] | None = None  # topic and syntax to which what is discarded is published
    single_active: bool = False  # only the consumer that came first gets messages; the next when it has gone

    def first_difference(self, other: "QueueOptions") -> str | None:
        """The name of an option that is given here and is another there; None if they agree."""
        for each in fields(self):
            given = getattr(self, each.name)
            if given not in (None, False) and given != getattr(other, each.name):
                return each.name
        return None


@dataclass(slots=True, eq=False)
class QueueConsumer:
    """One subscription of a client that takes from a queue."""

    queue: "WorkQueue"
    client: Client
    window: Window
    ended: Callable[[str], None]


@dataclass(slots=True, eq=False)
class WorkQueue:
    """A named queue. Its filters belong to a subscriber of its own, which is never connected."""

    name: str
    filters: tuple[tuple[bytes, str], ...]  # texts and syntaxes
    options: QueueOptions
    subscriber: Subscriber
    inside: NamedQueue
    unused_since: float | None  # None while it has consumers
    consumers: dict[Window, QueueConsumer] = field(default_factory=dict)

    @property
    def unused_seconds(self) -> float:
        """Without a consumer, after which it ends. One that is not durable ends with its last consumer."""
        if self.options.unused_seconds is not None:
            return self.options.unused_seconds
        return inf if self.options.durable else 0.0
