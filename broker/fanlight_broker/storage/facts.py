"""What changes slowly, as records: sessions, subscriptions, groups, marks. docs/store-format.md describes each.

Each is a msgpack array, in the order of the fields here. A field that is added stands at the end and has a default, so
that records written before are read.
"""

from typing import Any, NamedTuple, Self

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.storage.records import BadRecord


def packed(fact: tuple[Any, ...]) -> bytes:
    body: bytes = msgpack.packb(fact, unicode_errors="surrogateescape")
    return body


def unpacked(body: bytes) -> list[Any]:
    """Raises BadRecord."""
    try:
        found = msgpack.unpackb(body, unicode_errors="surrogateescape", use_list=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise BadRecord(f"no msgpack: {error}") from error
    if not isinstance(found, tuple):
        raise BadRecord("no array")
    return list(found)


def _fields(names: tuple[str, ...], body: bytes) -> list[Any]:
    """Raises BadRecord."""
    found = unpacked(body)
    if len(found) < len(names):
        raise BadRecord(f"{len(found)} fields in place of {len(names)}")
    return found[: len(names)]


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

    @classmethod
    def read(cls, body: bytes) -> Self:
        return cls(*_fields(cls._fields, body))


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

    @classmethod
    def read(cls, body: bytes) -> Self:
        return cls(*_fields(cls._fields, body))


class SlotFact(NamedTuple):
    """SLOT: a queue, and how its copies are written; None in the queue of a group, where the member says it."""

    number: int
    queue: int
    variant: tuple[int, int, bytes] | None  # quality, RetainRule, identifiers

    @classmethod
    def read(cls, body: bytes) -> Self:
        return cls(*_fields(cls._fields, body))


class GroupFact(NamedTuple):
    """GROUP: a queue group whose queue is kept, because a member's session is."""

    id: int  # of its queue
    name: str
    filter: bytes
    syntax: str

    @classmethod
    def read(cls, body: bytes) -> Self:
        return cls(*_fields(cls._fields, body))


class MarkFact(NamedTuple):
    """MARK: the progress of a producer."""

    user: str
    producer: str
    batch: int
    sequence: int

    @classmethod
    def read(cls, body: bytes) -> Self:
        return cls(*_fields(cls._fields, body))


def pair(first: int, second: int) -> bytes:
    """A session or queue, and a number: UNSUBSCRIBED, RECEIVED, RELEASED; 0 as the number where there is none."""
    return first.to_bytes(8, "little") + second.to_bytes(4, "little")


def pair_of(body: bytes) -> tuple[int, int]:
    """Raises BadRecord."""
    if len(body) != 12:
        raise BadRecord(f"{len(body)} bytes in place of 12")
    return int.from_bytes(body[:8], "little"), int.from_bytes(body[8:], "little")
