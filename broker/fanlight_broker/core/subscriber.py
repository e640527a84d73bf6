"""Subscriber, session and client: an identity, what outlives its connections, and its present connection.

    Subscriber   name, user, protocol, format, share, subscriptions
       |-- Session   what is kept while it is not connected (MQTT 5, 4.1); None: everything ends with the connection
       '-- Client    the present connection; None: not connected

A session owns its subscriber, and so does a client without a session. Targets, windows and views refer to the
subscriber, so that a session can have subscriptions and messages before its client connects. Clients whose protocol
has no sessions have none. The three refer to each other, so they are in one file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from fanlight_broker.core.budget import HoldTime
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.permissions import EVERYTHING, NOWHERE, Asker, Grant, Origin
from fanlight_broker.core.pools import Membership
from fanlight_broker.core.quota import NO_QUOTA, Quota
from fanlight_broker.core.requests import session_bytes
from fanlight_broker.core.retained import CURSOR_BYTES, PLACES_BYTES, Cursor
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.will import Will
from fanlight_broker.wire.badge import Badge
from fanlight_broker.wire.ledger import PotShare
from fanlight_broker.wire.message import Format
from fanlight_broker.wire.outbox import Outbox, Owner
from fanlight_broker.wire.subscriptions import Subscriptions
from fanlight_broker.wire.tag_set import TagSet
from fanlight_broker.wire.window import Window


@dataclass(slots=True, eq=False)
class Subscriber(Owner):
    """Who has subscriptions, and who publishes."""

    name: str  # as the client says; unique among sessions
    user: str  # as authenticated; "" if anonymous
    protocol: str
    format: Format  # how its messages are written
    share: Share  # of its principal
    inbox: str  # where replies to it are published, in `.` spelling: no other client may subscribe there
    verified: bool = False  # is `user` proven to be its own? See identity.py
    label: str = ""  # a user name that nothing was checked against
    subscriptions: Subscriptions = field(default_factory=lambda: Subscriptions(by_filter=False))
    searching: int = 0  # subscriptions whose filters have several `#`
    origin: Origin = NOWHERE  # of its present connection, or the last one
    badge: Badge | None = None  # of its permission class; ask `Enforcement.badge_of`, which keeps it up to date
    session: "Session | None" = None
    client: "Client | None" = None

    @property
    def gone(self) -> bool:
        """Has its session ended, or its connection without one? What it has asked for may still go on."""
        if self.session is not None:
            return self.session.ended
        return self.client is None and self.origin.client is None  # else it is a queue's

    @property
    def namespace(self) -> str:
        """The namespace that it is in; "": the root."""
        return self.origin.namespace

    @property
    def asker(self) -> Asker:
        """It, as rules of permissions may ask about it."""
        return self.origin.asker(self.user if self.verified else "", self.name, self.protocol)

    @property
    def grant(self) -> Grant:
        """What it may do, as it was asked last."""
        grant: Grant = EVERYTHING if self.badge is None else self.badge.grant
        return grant

    @property
    def subscriber(self) -> "Subscriber":
        """Itself: the owner of a window, or of the outbox of a session without a connection."""
        return self


# -- its connection -------------------------------------------------------------------------------------------------


class ClientConnection(Protocol):
    """The connection of a client, as the core addresses it (connection.ProtocolConnection is one)."""

    def subscription_ended(self, subscription: Subscription, reason: str) -> None:
        """Notify the client that the broker has ended a subscription."""
        ...

    def say_goodbye(self, reason: str, text: str) -> None:
        """Send the client the reason, then close its connection once the outbox is empty."""
        ...

    def cut_off(self, reason: str, text: str) -> None:
        """Close its connection without waiting for it to read; what is unsent is lost and counted."""
        ...

    def unblocked(self) -> None:
        """An outbox that held this publisher back has drained, or its own outbox, which was to be refilled."""
        ...

    def use_badge(self, badge: Badge | None) -> None:
        """This is the badge of its client's permission class from now on; None: everything is permitted."""
        ...

    def recheck(self) -> Iterator[None]:
        """Other permissions are in force: end what they do not allow, beside subscriptions and consumers; in steps."""
        ...

    def use_quota(self, quota: Quota) -> None:
        """This is its client's quota from now on."""
        ...

    def notify_held(self, held: bool, seconds: float) -> None:
        """Notify the client that its messages wait for a slow consumer, or how long they waited, if possible."""
        ...


class ClosedConnection:
    """Stands for the connection of a client whose connection is closed."""

    def subscription_ended(self, subscription: Subscription, reason: str) -> None: ...
    def say_goodbye(self, reason: str, text: str) -> None: ...
    def cut_off(self, reason: str, text: str) -> None: ...
    def unblocked(self) -> None: ...
    def use_badge(self, badge: Badge | None) -> None: ...

    def recheck(self) -> Iterator[None]:
        return iter(())

    def use_quota(self, quota: Quota) -> None: ...
    def notify_held(self, held: bool, seconds: float) -> None: ...


CLOSED_CONNECTION: Final = ClosedConnection()


@dataclass(slots=True, eq=False)
class Client(Owner):
    """One connection that is through its handshake, whatever protocol it speaks."""

    number: int  # unique in this broker's life; in logs and views
    subscriber: Subscriber
    agent: str
    address: str
    port: int  # the peer's
    outbox: Outbox
    connection: ClientConnection
    format: Format  # how messages are written on this connection; its subscriber's is that of the latest one
    connected_at: float  # seconds, by the clock of every `now`
    limits: Mapping[str, int] | None = None  # quotas that are known of its user alone
    quota: Quota = NO_QUOTA
    memberships: tuple[Membership, ...] = ()
    parts: tuple[Share, ...] = ()  # shares in which its connection counts, its principal's first
    slow: bool = False  # its outbox or its session's queue was full at least once
    slow_since: float | None = None  # when that was first, by the ledger's clock
    hold_times: dict[int, HoldTime] = field(default_factory=dict)  # by whose time a hold takes: core.flow

    def hold_time(self, kind: int) -> HoldTime:
        found = self.hold_times.get(kind)
        if found is None:
            found = self.hold_times[kind] = HoldTime()
        return found

    def __str__(self) -> str:
        return f"{self.subscriber.name!r} (connection {self.number}, {self.address} port {self.port})"


# -- what outlives it -----------------------------------------------------------------------------------------------


class SessionJournal(Protocol):
    """The part of `ports.Journal` that a session needs."""

    def received(self, session: "Session", identifier: int) -> None: ...
    def released(self, session: "Session", identifier: int) -> None: ...
    def session_changed(self, session: "Session") -> None: ...


@dataclass(slots=True, eq=False)
class Session:
    """Window and queue, identifiers received, retained messages still to be sent, will and expiry."""

    subscriber: Subscriber  # its share is of the principal that created it, wherever its client connects from later
    window: Window
    pot: PotShare  # counts what it takes: its share's for sessions
    journal: SessionJournal = NO_JOURNAL
    expiry: float = 0.0
    connected: bool = False
    ended: bool = False
    will: Will | None = None
    unreleased: TagSet = field(init=False)  # identifiers received with QoS 2
    nbytes: int = 0  # entered in the pot
    # Retained messages still to be sent, by the number of the subscription; one after the other.
    cursors: dict[int, Cursor] = field(default_factory=dict)
    numbers: int = 0
    place: int = -1  # in its SessionTable

    def __post_init__(self) -> None:
        self.subscriber.session = self
        self.unreleased = TagSet(self.pot)
        self.charge()

    @property
    def things(self) -> tuple[object, ...]:
        """The objects that it consists of, of those that the garbage collector looks at (wire/hidden.pxd)."""
        return self, self.subscriber, self.window, self.unreleased

    @property
    def name(self) -> str:
        """The client identifier."""
        return self.subscriber.name

    @property
    def outlives(self) -> bool:
        """Is it kept when its connection ends?"""
        return self.expiry > 0

    @property
    def share(self) -> Share:
        return self.subscriber.share

    @property
    def client(self) -> Client | None:
        """Its present connection."""
        return self.subscriber.client if self.connected else None

    @property
    def subscriptions(self) -> Subscriptions:
        """One for each filter."""
        return self.subscriber.subscriptions

    def charge(self) -> None:
        """Enter what it takes now, without its identifiers received and its window's table."""
        subscriber = self.subscriber
        nbytes = 0 if self.ended else session_bytes(
            subscriber.name, subscriber.user, subscriber.label, self.will, subscriber.origin.own
        )
        self.pot.add(nbytes - self.nbytes)
        self.nbytes = nbytes

    @property
    def charged(self) -> int:
        """Bytes of the pot that its end gives back."""
        return self.nbytes + self.unreleased.nbytes + self.window.nbytes + self.cursor_bytes

    @property
    def cursor_bytes(self) -> int:
        """Of its cursors, of which only the first has begun."""
        return len(self.cursors) * CURSOR_BYTES + PLACES_BYTES * bool(self.cursors)

    def add_cursor(self, cursor: Cursor) -> None:
        """Behind the others. Raises LimitExceeded."""
        more = CURSOR_BYTES if self.cursors else CURSOR_BYTES + PLACES_BYTES
        if not self.pot.reserve(more):
            raise self._no_room("the retained messages of one more subscription")
        self.cursors[cursor.subscription.number] = cursor

    def drop_cursor(self, number: int) -> None:
        if not self.cursors:  # mostly
            return
        before = self.cursor_bytes
        self.cursors.pop(number, None)
        self.pot.refund(before - self.cursor_bytes)

    def clear_cursors(self) -> None:
        if not self.cursors:
            return
        self.pot.refund(self.cursor_bytes)
        self.cursors.clear()

    def _no_room(self, what: str) -> LimitExceeded:
        return LimitExceeded(
            f"sessions of {self.share.principal} hold {self.pot.used} bytes, those of all {self.pot.whole.used}: "
            f"there is no room for {what} (see also sessions_share_percent)",
            "sessions_bytes_max", self.pot.whole.limit,
        )

    def expect(self, identifier: int) -> None:
        """Make room to remember the identifier of a PUBLISH with QoS 2. Raises LimitExceeded."""
        if not self.unreleased.reserve(identifier):
            raise self._no_room("a packet identifier")

    def receive(self, identifier: int) -> bool:
        """Remember the identifier of a PUBLISH with QoS 2. False if it was received before: it is not published
        again (4.3.3).
        """
        if identifier in self.unreleased:
            return False
        self.expect(identifier)
        added = self.unreleased.add(identifier)
        self.journal.received(self, identifier)
        return added

    def release(self, identifier: int) -> bool:
        """Handle a PUBREL. False if no message with this identifier was received."""
        known = self.unreleased.discard(identifier)
        if known:
            self.journal.released(self, identifier)
        return known
