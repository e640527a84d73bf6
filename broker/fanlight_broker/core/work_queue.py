"""A named queue as the core knows it: what it was declared with, its consumers, and its compiled inside."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from fanlight_broker.core.errors import FanlightError, LimitExceeded, QueueInUse
from fanlight_broker.core.permissions import Origin
from fanlight_broker.core.quota import Quota
from fanlight_broker.core.share import Share
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.window import Window

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition

SAME_SELECTOR: Final = "all who declare it give the same selector, or none; give that, or choose another name"
QUEUE_ROOT: Final = b"$queue."  # and the name of a queue: its subject


class Overflow(StrEnum):
    """What happens when a message comes and the queue is full."""

    REFUSE_PUBLISHER = "refuse_publisher"  # its publisher gets an error
    DROP_NEWEST = "drop_newest"
    DROP_OLDEST = "drop_oldest"
    DEAD_LETTER = "dead_letter"  # the oldest goes to the dead-letter topic
    DEAD_LETTER_NEWEST = "dead_letter_newest"  # the new one does


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """What a queue is declared with. None: the default, or whatever a queue that exists has."""

    durable: bool = True
    messages_max: int | None = None  # that wait
    bytes_max: int | None = None  # of these
    message_seconds: float | None = field(default=None, metadata={"said": "message_ttl"})  # that a message may wait
    # without a consumer, after which the queue ends
    unused_seconds: float | None = field(default=None, metadata={"said": "expires"})
    overflow: Overflow | None = None  # REFUSE_PUBLISHER
    deliveries_max: int | None = None  # of one message; it is discarded then
    # Topic and syntax to which what is discarded is published; or an owner of letters (core/burial.py) in place of the
    # syntax, and where that sends them.
    dead_letter: tuple[bytes, str] | None = None
    single_active: bool = False  # only the consumer that came first gets messages; the next when it has gone
    priorities: int | None = None  # messages of higher ones first: 0 to one less than this; None: all are alike
    in_order: bool = False  # what has expired leaves when it is the oldest, and not before
    by_bodies: bool = False  # bytes_max counts payloads alone
    stream: str | None = None  # what comes goes to the archive, below a topic that ends with this word: core/streams.py

    def first_difference(self, other: "QueueOptions") -> str | None:
        """The option that is given here and is another there, by the name that clients use; None if they agree."""
        for each in fields(self):
            given = getattr(self, each.name)
            if given not in (None, False) and given != getattr(other, each.name):
                return str(each.metadata.get("said", each.name))
        return None


def within_quota(options: QueueOptions, quota: Quota) -> QueueOptions:
    """The options of a new queue, not above the quota of its declarer. Raises LimitExceeded if they ask for more."""
    messages = _within(options.messages_max, quota, "queue_messages")
    octets = _within(options.bytes_max, quota, "queue_bytes")
    return replace(options, messages_max=messages, bytes_max=octets)


def _within(wanted: int | None, quota: Quota, name: str) -> int | None:
    most = quota.least(name)
    if most is not None and wanted is not None and wanted > most:
        raise LimitExceeded(f"a queue for {wanted} {name.removeprefix('queue_')}", f"quota {name}", most)
    return most if wanted is None else wanted


@dataclass(slots=True, eq=False)
class QueueConsumer:
    """One subscription of a client that takes from a queue."""

    queue: "WorkQueue"
    client: Client
    window: Window
    ended: Callable[[str], None]
    activated: Callable[[], None] | None = None
    paused: bool = False  # by its client: it gets nothing
    started: bool = False  # its client knows of it: before that it gets nothing
    share: Share = field(init=False)  # in which it counts

    def __post_init__(self) -> None:
        self.share = self.client.subscriber.share

    @property
    def active(self) -> bool:
        """False: it is not the one consumer that gets anything."""
        return not self.queue.inside.single or self.queue.inside.windows[0] is self.window


class Filling(Protocol):
    """What fills a new queue with messages from before it: core/filling.py."""

    def start(self) -> None: ...

    def drained(self) -> None:
        """The queue has room, perhaps."""
        ...

    def cancel(self) -> None: ...


def made_by(creator: Subscriber) -> Origin:
    """Rules ask about whoever made a queue, and not about its name, which anybody may choose."""
    origin = creator.origin
    return origin if origin.client is not None else origin._replace(client=creator.name, protocol=creator.protocol)


def subject_of(name: str) -> tuple[bytes, str]:
    """A queue as permissions know it by its name: a topic and its syntax."""
    return QUEUE_ROOT + name.encode(), SYNTAXES[0]


@dataclass(slots=True, eq=False)
class WorkQueue:
    """A named queue. Its filters belong to a subscriber of its own, which is never connected."""

    name: str
    filters: tuple[tuple[bytes, str], ...]  # texts and syntaxes
    options: QueueOptions
    subscriber: Subscriber
    inside: NamedQueue
    unused_since: float | None  # None while it has consumers
    condition: "Condition | None" = None  # on what comes into it, by each of its filters
    consumers: dict[Window, QueueConsumer] = field(default_factory=dict)
    filling: Filling | None = None  # until it has caught up with what is published
    # Called when it is known that it can be filled, or with the error; None: that is known.
    waiting: list[Callable[[FanlightError | None], None]] | None = None
    failure: FanlightError | None = None  # why it could not be filled, and has ended
    # What it was declared with in its protocol's words, for its views: options that are not obeyed as well.
    arguments: Mapping[str, str | int | None] = field(default_factory=dict)
    addressed: bool = False  # messages come to it by its name, too, and not by its filters alone
    reader: Subscriber | None = None  # who takes from it whatever the permissions are, as long as it is connected
    # What its declaration asked for. `options` are in force, which a protocol's policy may have narrowed.
    declared: QueueOptions = field(init=False)
    policy: str = ""  # its name
    # `arguments` and the policy together, for its views; None: there is no policy.
    effective: Mapping[str, str | int | None] | None = None

    def __post_init__(self) -> None:
        self.declared = self.options

    def check_agreement(
        self, filters: tuple[tuple[bytes, str], ...], options: QueueOptions, condition: "Condition | None"
    ) -> None:
        """Raises QueueInUse if it was made with something else than what is asked for."""
        for each in filters:
            if each not in self.filters:
                raise QueueInUse(self.name, "filter")
        if condition != self.condition:
            raise QueueInUse(self.name, "where", SAME_SELECTOR)
        different = options.first_difference(self.declared)
        if different is not None:
            raise QueueInUse(self.name, different)

    @property
    def subjects(self) -> tuple[tuple[bytes, str], ...]:
        """The filters that permissions are asked about: its own, and one of its name if that leads messages to it."""
        if self.filters and not self.addressed:
            return self.filters
        return *self.filters, subject_of(self.name)

    @property
    def unused_seconds(self) -> float:
        """Without a consumer, after which it ends. One that is not durable ends with its last consumer."""
        if self.options.unused_seconds is not None:
            return self.options.unused_seconds
        return inf if self.options.durable else 0.0
