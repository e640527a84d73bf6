"""What changes slowly, as records: sessions, subscriptions, groups, named queues, marks.

Each is described in docs/store-format.md, and is a msgpack array, in the order of the fields here. A field that is
added stands at the end and has a default, so that records written before are read.
"""

from dataclasses import replace
from typing import Any, Final, NamedTuple, Self, TypeVar

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.core.permissions import NOWHERE, Origin
from fanlight_broker.core.selectors import where_of
from fanlight_broker.core.work_queue import Overflow, QueueOptions, WorkQueue
from fanlight_broker.storage.records import BadRecord

Fact = TypeVar("Fact", bound=NamedTuple)


def packed(fact: tuple[Any, ...]) -> bytes:
    """As a record. Fields at the end that have their default are left out, for versions that do not know them."""
    size = len(fact)
    for _ in getattr(fact, "_field_defaults", ()):
        if fact[size - 1] is not None:
            break
        size -= 1
    body: bytes = msgpack.packb(fact[:size], unicode_errors="surrogateescape")
    return body


def unpacked(body: bytes) -> tuple[Any, ...]:
    """Raises BadRecord."""
    try:
        found = msgpack.unpackb(body, unicode_errors="surrogateescape", use_list=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise BadRecord(f"no msgpack: {error}") from error
    if not isinstance(found, tuple):
        raise BadRecord("no array")
    return found


def read_fact(kind: type[Fact], body: bytes) -> Fact:
    """Raises BadRecord."""
    found, size = unpacked(body), len(kind._fields)
    if len(found) < least_fields(kind):
        raise BadRecord(f"{len(found)} fields in place of {size}")
    return kind(*found[:size])


def least_fields(kind: type[Fact]) -> int:
    """Of a record, with those that are left out at their default."""
    return len(kind._fields) - len(kind._field_defaults)


# Of a core Origin: groups, certificate, address, listener; and of a queue the client that made it, and its protocol.
# In a namespace: all of these, the client or None, and the namespace.
StoredOrigin = (
    tuple[tuple[str, ...], str, str, str] | tuple[tuple[str, ...], str, str, str, str, str]
    | tuple[tuple[str, ...], str, str, str, str | None, str, str]
)


UNKNOWN_MAKER: Final[StoredOrigin] = ((), "", "", "", "", "")  # of a queue: nobody of that name


def stored_origin(origin: Origin) -> StoredOrigin | None:
    """As it is stored; None: nothing is known."""
    groups = tuple(sorted(origin.groups))
    if origin.namespace:
        return groups, *origin[1:7]
    if origin.client is not None:
        return groups, origin.certificate, origin.address, origin.listener, origin.client, origin.protocol
    return None if origin == NOWHERE else (groups, origin.certificate, origin.address, origin.listener)


def origin_of(stored: StoredOrigin | None, own: str | None = None) -> Origin:
    """What `stored_origin` was made of, and the rules beside it."""
    origin = NOWHERE if stored is None else Origin(frozenset(stored[0]), *stored[1:])
    return origin if own is None else origin._replace(own=own)


class SessionFact(NamedTuple):
    """SESSION: a session, whole, each time that anything of it has changed."""

    id: int  # of its queue
    name: str
    user: str
    protocol: str
    family: str  # of its format
    verified: bool
    label: str
    principal: str
    inbox: str
    expiry: float  # seconds; inf: never
    left: float | None  # wall-clock time when its client left; None: it is connected
    numbers: int  # of subscriptions given so far
    will: tuple[bytes, float | None, float] | None  # MESSAGE record, lifetime, delay in seconds
    origin: StoredOrigin | None = None  # of its client's connection, the last one
    own: str | None = None  # the text of the rules that this one brought along


class SubscriptionFact(NamedTuple):
    """SUBSCRIBED: a subscription of a session, whole."""

    session: int
    number: int
    filter: bytes
    syntax: int
    group: str | None
    quality: int
    no_echo: bool
    retain: int  # RetainRule
    identifiers: bytes  # as the client's format encodes them
    where: str | None = None  # the text of its selector


class GroupFact(NamedTuple):
    """GROUP: a queue group whose queue is kept, because a member's session is."""

    id: int  # of its queue
    name: str
    filter: bytes
    syntax: str
    where: str | None = None  # the text of its members' selector
    namespace: str | None = None


# messages_max, bytes_max, message_seconds, unused_seconds, overflow, deliveries_max, dead_letter
StoredOptions = tuple[int | None, int | None, float | None, float | None, str | None, int | None,
                      tuple[bytes, str] | None]  # fmt: skip


def adjustable(declared: QueueOptions, options: QueueOptions) -> StoredOptions | None:
    """Of what a queue was declared with, what a policy may change; None if no policy has."""
    if declared == options:
        return None
    return (
        declared.messages_max, declared.bytes_max, declared.message_seconds, declared.unused_seconds,
        declared.overflow, declared.deliveries_max, declared.dead_letter,
    )


def restored_options(options: QueueOptions, stored: StoredOptions) -> QueueOptions:
    """Those that a queue was declared with. Raises BadRecord."""
    messages, octets, seconds, unused, overflow, deliveries, dead_letter = stored
    try:
        behaviour = Overflow(overflow) if overflow is not None else None
    except ValueError as error:
        raise BadRecord(f"a queue: {error}") from error
    return replace(
        options, messages_max=messages, bytes_max=octets, message_seconds=seconds, unused_seconds=unused,
        overflow=behaviour, deliveries_max=deliveries, dead_letter=dead_letter,
    )


class QueueFact(NamedTuple):
    """QUEUE: a durable named queue, whole, each time that anything of it has changed. Its creator pays for it."""

    id: int
    name: str
    filters: tuple[tuple[bytes, str], ...]  # texts and syntaxes
    messages_max: int | None
    bytes_max: int | None
    message_seconds: float | None
    unused_seconds: float | None
    overflow: str | None
    deliveries_max: int | None
    dead_letter: tuple[bytes, str] | None
    single_active: bool
    user: str
    verified: bool
    label: str
    principal: str
    inbox: str
    family: str  # of the creator's format
    unused_since: float | None  # wall-clock time; None: it has consumers
    priorities: int | None
    where: str | None = None  # the text of its selector
    origin: StoredOrigin | None = None  # of whoever made it
    own: str | None = None  # the text of the rules that this one brought along
    in_order: bool | None = None  # True, or left out
    by_bodies: bool | None = None
    # What it was declared with, if a policy has put something else in force: from messages_max to dead_letter.
    declared: StoredOptions | None = None
    stream: str | None = None

    @classmethod
    def of(cls, id: int, queue: WorkQueue, unused_since: float | None) -> Self:
        options, creator = queue.options, queue.subscriber
        return cls(
            id, queue.name, queue.filters, options.messages_max, options.bytes_max, options.message_seconds,
            options.unused_seconds, options.overflow, options.deliveries_max, options.dead_letter,
            options.single_active, creator.user, creator.verified, creator.label, creator.share.stored_name,
            creator.inbox, creator.format.family, unused_since, options.priorities,
            where_of(queue.condition), stored_origin(creator.origin), creator.origin.own or None,
            options.in_order or None, options.by_bodies or None, adjustable(queue.declared, options), options.stream,
        )

    @property
    def options(self) -> QueueOptions:
        """Raises BadRecord."""
        try:
            overflow = Overflow(self.overflow) if self.overflow is not None else None
        except ValueError as error:
            raise BadRecord(f"queue {self.name!r}: {error}") from error
        return QueueOptions(
            True, self.messages_max, self.bytes_max, self.message_seconds, self.unused_seconds, overflow,
            self.deliveries_max, self.dead_letter, self.single_active, self.priorities, bool(self.in_order),
            bool(self.by_bodies), self.stream,
        )

    @property
    def declared_options(self) -> QueueOptions:
        """Raises BadRecord."""
        return self.options if self.declared is None else restored_options(self.options, self.declared)


class DelayedFact(NamedTuple):
    """DELAYED: a message that is in no queue, when it is due, and who published it."""

    id: int  # its number
    due: float  # wall-clock time in seconds
    nbytes: int  # that it counts
    principal: str
    publisher: str  # name of its session, or of its client
    protocol: str
    session: bool
    namespace: str | None = None


class MarkFact(NamedTuple):
    """MARK: the progress of a producer."""

    user: str
    producer: str
    batch: int
    sequence: int


class DeclarationFact(NamedTuple):
    """DECLARED, and UNDECLARED without a body: core/declarations.py."""

    owner: str
    key: bytes
    body: bytes = b""


class RoundFact(NamedTuple):
    """ROUND: the last that were given."""

    number: int
    queue: int
    slot: int
    set: int


def pair(first: int, second: int) -> bytes:
    """A session or queue, and a number: UNSUBSCRIBED, RECEIVED, RELEASED; 0 as the number where there is none."""
    return first.to_bytes(8, "little") + second.to_bytes(4, "little")


def pair_of(body: bytes) -> tuple[int, int]:
    """Raises BadRecord."""
    if len(body) != 12:
        raise BadRecord(f"{len(body)} bytes in place of 12")
    return int.from_bytes(body[:8], "little"), int.from_bytes(body[8:], "little")
