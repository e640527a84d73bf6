"""A session: what is kept of a client when its connection is gone (MQTT 5, 4.1).

    Client      one connection ......... the outbox, the protocol's side
    Session     many, one at a time .... window and queue, identifiers received, will, expiry
    Subscriber  the same ............... name, user, subscriptions

Clients whose protocol has no sessions have none: what they hold ends with their connection.
"""

from dataclasses import dataclass, field
from sys import getsizeof
from typing import TYPE_CHECKING, Final

from fanlight_broker.core.client import Client
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.retained import CURSOR_BYTES, PLACES_BYTES, Cursor
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.will import Will
from fanlight_broker.wire.ledger import PotShare
from fanlight_broker.wire.message import Format
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.subscriptions import Subscriptions
from fanlight_broker.wire.tag_set import TagSet
from fanlight_broker.wire.window import Window

if TYPE_CHECKING:
    from fanlight_broker.core.ports import Journal

SESSION_BYTES: Final = 3_072  # of a session and its present client, beside what it is charged for one by one


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """What a client says of itself and of its session."""

    client_id: str
    format: Format
    protocol: str
    address: str
    user: str = ""
    verified: bool = False
    label: str = ""
    agent: str = ""
    port: int = 0  # of the peer
    clean_start: bool = True
    expiry: float = 0.0  # seconds the session outlives its connection; inf: it never expires
    receive_max: int = 65_535
    frame_max: int | None = None  # bytes of the largest packet the client takes
    will: Will | None = None

    @property
    def nbytes(self) -> int:
        """What a session takes that begins with this."""
        return nbytes_of(self.client_id, self.user, self.label, self.will)


def nbytes_of(name: str, user: str, label: str, will: Will | None) -> int:
    return SESSION_BYTES + sum(map(getsizeof, (name, user, label))) + (will.message.nbytes if will is not None else 0)


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session's client wants the messages of one subscription."""

    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    identifier: bytes = b""  # the subscription identifier, as the client's format encodes it
    group: str | None = None


@dataclass(slots=True, eq=False)
class Session:
    subscriber: Subscriber  # its share is of the principal that made it, wherever its client connects from later
    window: Window
    pot: PotShare  # that counts what it takes: its share's for sessions
    journal: "Journal" = NO_JOURNAL
    expiry: float = 0.0
    connected: bool = False
    ended: bool = False
    will: Will | None = None
    unreleased: TagSet = field(init=False)  # identifiers received with QoS 2
    nbytes: int = 0  # entered in the pot
    # Retained messages still to be sent, by the number of the subscription; one after the other.
    cursors: dict[int, Cursor] = field(default_factory=dict)
    numbers: int = 0

    def __post_init__(self) -> None:
        self.subscriber.session = self
        self.unreleased = TagSet(self.pot)
        self.charge()

    @property
    def things(self) -> tuple[object, ...]:
        """The objects that it is made of, of those that the garbage collector looks at (wire/hidden.pxd)."""
        return self, self.subscriber, self.window, self.unreleased

    @property
    def name(self) -> str:
        """The client identifier."""
        return self.subscriber.name

    @property
    def user(self) -> str:
        return self.subscriber.user

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
        """Enter what it takes now, its identifiers received and its window's table not included."""
        nbytes = 0 if self.ended else nbytes_of(self.name, self.user, self.subscriber.label, self.will)
        self.pot.add(nbytes - self.nbytes)
        self.nbytes = nbytes

    @property
    def charged(self) -> int:
        """Bytes of the pot that its end gives back."""
        return self.nbytes + self.unreleased.nbytes + self.window.nbytes + self.cursor_bytes

    @property
    def cursor_bytes(self) -> int:
        """Of its cursors, of which the first alone has begun."""
        return len(self.cursors) * CURSOR_BYTES + PLACES_BYTES * bool(self.cursors)

    def add_cursor(self, cursor: Cursor) -> None:
        """Behind the others. Raises LimitExceeded."""
        more = CURSOR_BYTES if self.cursors else CURSOR_BYTES + PLACES_BYTES
        if not self.pot.reserve(more):
            raise self._no_room("the retained messages of one more subscription")
        self.cursors[cursor.subscription.number] = cursor

    def drop_cursor(self, number: int) -> None:
        before = self.cursor_bytes
        self.cursors.pop(number, None)
        self.pot.refund(before - self.cursor_bytes)

    def clear_cursors(self) -> None:
        self.pot.refund(self.cursor_bytes)
        self.cursors.clear()

    def _no_room(self, what: str) -> LimitExceeded:
        return LimitExceeded(
            f"sessions of {self.share.principal} hold {self.pot.used} bytes, those of all {self.pot.whole.used}: "
            f"there is no room for {what} (see also sessions_share_percent)",
            "sessions_bytes_max", self.pot.whole.limit,
        )

    def expect(self, identifier: int) -> None:
        """A PUBLISH with QoS 2 may come: make room to remember its identifier. Raises LimitExceeded."""
        if not self.unreleased.reserve(identifier):
            raise self._no_room("a packet identifier")

    def receive(self, identifier: int) -> bool:
        """A PUBLISH with QoS 2 has come. False if it was received before: it is not published again (4.3.3)."""
        if identifier in self.unreleased:
            return False
        self.expect(identifier)
        added = self.unreleased.add(identifier)
        self.journal.received(self, identifier)
        return added

    def release(self, identifier: int) -> bool:
        """A PUBREL has come. False if no message with this identifier was received."""
        known = self.unreleased.discard(identifier)
        if known:
            self.journal.released(self, identifier)
        return known

    @property
    def outbox(self) -> Outbox | None:
        return self.window.outbox
