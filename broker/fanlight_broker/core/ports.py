"""Ports: what the core needs from the layers above it, and what it offers for inspection.

Calls go up only through these protocols, so that the core imports neither a socket nor a protocol.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fanlight_broker.core.declarations import Declaration
from fanlight_broker.core.delayed_message import DelayedMessage
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.wire.journal import JournalPosition, QueueJournal
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route

if TYPE_CHECKING:
    from fanlight_broker.wire.packed_row import Pages

View = dict[str, Any]  # a JSON object; the keys are listed where it is made (core/inspection.py)


class LoginExchange(Protocol):
    """One login of several messages, whatever the mechanism: SASL (RFC 4422), enhanced authentication of MQTT 5."""

    async def step(self, data: bytes | None) -> tuple[bytes | None, Identity | None]:
        """Take a message of the client. Returns the answer, and who the client is once that is known.

        Raises AuthenticationFailed, which ends it.
        """
        ...


class Authenticator(Protocol):
    """Decides who a client is. Raises `AuthenticationFailed`, which never says what was wrong."""

    async def authenticate(
        self, user: str | None, password: str | None, address: str, *, certified: str = "", counted: bool = True,
        client: str = "", protocol: str = "", listener: str = "",
    ) -> Identity:
        """Return who the client is.

        certified: the subject of the client's certificate, verified by the transport; "" without one.
        counted: it is a connecting client, and not one of many requests.
        client, protocol, listener: the identifier that the client gives itself, and where it connects.
        """
        ...

    def identify(
        self, user: str | None, password: str | None, *, certified: str = "", address: str = "", client: str = "",
        protocol: str = "", listener: str = "",
    ) -> Identity | None:
        """The same for a connecting client whose credentials need no check; None: ask `authenticate`."""
        ...

    def exchange(
        self, mechanism: str, user: str | None, address: str, *, protocol: str = "", listener: str = ""
    ) -> LoginExchange | None:
        """Begin a login of several messages; None for a mechanism that is not known.

        user: the name that the client gave beside it; None if it gave none.
        """
        ...

    def offers(self) -> frozenset[str]:
        """How clients may log in now, beside a password or a certificate: ANONYMOUS, SCRAM-SHA-256 (SASL's names)."""
        ...

    def stands(self, identity: Identity) -> bool:
        """Are the credentials of a connected client still valid? They may have been changed or deleted."""
        ...


class WrongProtocol(NamedTuple):
    """A client speaks another protocol than the listener it connected to."""

    text: str  # which protocol it is, and on which port the broker speaks it
    answer: bytes  # the same text in the client's protocol; empty if that protocol has no answer


# Takes the name of the listener and the first bytes of a connection. None: it may be the listener's protocol.
ProtocolCheck = Callable[[str, bytes], WrongProtocol | None]


class Transport(Protocol):
    """The transport side of a connection, as its protocol sees it."""

    @property
    def address(self) -> str:
        """The peer's address, for logs and limits."""
        ...

    @property
    def port(self) -> int:
        """The peer's port, for logs."""
        ...

    def wrong_protocol(self, first: bytes) -> bytes | None:
        """Log it if a connection that begins like this speaks another protocol than its listener.

        Returns the answer to send before it is closed, which may be empty; None if its protocol may be the right one.
        """
        ...

    @property
    def certified(self) -> str:
        """The name in the peer's certificate, verified; "" without one."""
        ...

    @property
    def listener(self) -> str:
        """The name of the port: native, mqtt_websocket_tls, ..."""
        ...

    def now(self) -> float:
        """The clock of every `now`, in seconds."""
        ...

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        """Check credentials. Returns who it is if there is nothing to check; otherwise the protocol's `authenticated`
        or `refuse` is called with the outcome, later.

        client: the identifier that the client gives itself, unchecked
        """
        ...

    def offers(self) -> frozenset[str]:
        """What the authenticator offers: see there."""
        ...

    def exchange(self, mechanism: str, user: str | None) -> LoginExchange | None:
        """Begin a login of several messages; None for a mechanism that is not known."""
        ...

    def step(self, exchange: LoginExchange, data: bytes | None) -> None:
        """Hand a message to an exchange. The protocol's `stepped` or `refuse` is called with the outcome, later."""
        ...

    def close(self, reason: str = "") -> None:
        """Send what is in the outbox, then close. `reason` is for the log."""
        ...

    def abort(self, reason: str) -> None:
        """Close at once; what is unsent is lost and counted."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def next_turn(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` after the other connections' turns; nothing is read until then."""
        ...


class NamespaceJournal(Protocol):
    """The part of `Journal` that router, retained and delayed messages report to, which know no namespace."""

    def group_begun(self, name: str, filter: bytes, syntax: str, where: str | None) -> QueueJournal | None: ...
    def group_ended(self, name: str, filter: bytes, syntax: str, where: str | None) -> None: ...
    def retained(self, message: Message, share: Share | None, origin: str | None) -> None: ...
    def cleared(self, topic: bytes, syntax: str) -> None: ...
    @property
    def reads_delayed(self) -> bool: ...
    def delayed(self, due: float, delayed: DelayedMessage, nbytes: int) -> int: ...
    def read_delayed(self, ids: Sequence[int], then: Callable[[Mapping[int, Message]], None]) -> None: ...
    def delayed_done(self, id: int) -> None: ...


class Journal(Protocol):
    """What must survive a restart, reported as it changes, after the change. `core.journal.NoJournal` keeps nothing.

    Messages in queues and in flight are reported by the queue's own part of it, a compiled `wire.QueueJournal`. Put in
    by `Broker.journal_to` before the first session.
    """

    @property
    def position(self) -> JournalPosition:
        """Where it is: always the same object. After each change of it the journal calls `Broker.position_changed`.

        While it is `full`, publishers of what it would get are held back. While it is `refusing`, what would have to be
        acknowledged is refused. Other changes (ends of flights, retained messages of QoS 0) still come and may be lost.
        """
        ...

    def within(self, namespace: str) -> "NamespaceJournal":
        """The journal of what has no session, in a namespace that is not the root."""
        ...

    def session_begun(self, session: Session) -> QueueJournal | None:
        """A session is there. Returns the journal of its queue and window; None: what is in them is not kept."""
        ...

    def session_changed(self, session: Session) -> None:
        """Its client, will or expiry is another, or its client is away now."""
        ...

    def session_ended(self, session: Session) -> None:
        """It is over, and so are its subscriptions and messages: each may still be reported as removed."""
        ...

    def session_drained(self, session: Session) -> None:
        """It has ended, and no message waits in its queue any more."""
        ...

    def received(self, session: Session, identifier: int) -> None:
        """A message of QoS 2 has come with this identifier, and is not released."""
        ...

    def released(self, session: Session, identifier: int) -> None:
        """The identifier may be used for another message."""
        ...

    @property
    def pages(self) -> "Pages | None":
        """Where queues that keep no journal put what memory is too small for; None: nowhere."""
        ...

    def group_begun(self, name: str, filter: bytes, syntax: str, where: str | None) -> QueueJournal | None:
        """A queue group has its first member. Returns the journal of its queue, or None. where: its selector."""
        ...

    def group_ended(self, name: str, filter: bytes, syntax: str, where: str | None) -> None:
        """Nobody is left who takes from its queue: each message in it may still be reported as removed."""
        ...

    def group_drained(self, queue: Queue) -> None:
        """The group of this queue has ended, and no message waits in it any more."""
        ...

    def settle(self) -> None:
        """An acknowledgement is to wait for all that was reported until now, also for what nothing waits for else."""
        ...

    def queue_begun(self, queue: WorkQueue) -> QueueJournal | None:
        """A durable named queue is there, with its filters, for which `subscribed` is not called. Returns the journal
        of what is in it: tags are those of its deliveries, whichever consumer has them; or None.
        """
        ...

    def queue_changed(self, queue: WorkQueue) -> None:
        """A durable named queue is used now, or is not used any more, or has other filters."""
        ...

    def queue_adjusted(self, queue: WorkQueue) -> None:
        """Other options of a durable named queue are in force."""
        ...

    def queue_purged(self, queue: WorkQueue) -> None:
        """Messages of a durable named queue were removed by an operator, whose acknowledgement waits for that."""
        ...

    def queue_ended(self, queue: WorkQueue) -> None:
        """It is over, and so are its messages: each may still be reported as removed."""
        ...

    def queue_drained(self, queue: WorkQueue) -> None:
        """It has ended, and no message is in it any more."""
        ...

    def read_waiting(self, queue: Queue, most: int, then: Callable[[Sequence[Message]], None]) -> None:
        """Call `then` with the oldest messages, so many at most, that wait in a queue and not in memory: at once if
        there are none. They stay where they are.
        """
        ...

    def subscribed(self, subscription: Subscription) -> None:
        """A subscription is in force, or its options have changed."""
        ...

    def unsubscribed(self, subscription: Subscription) -> None:
        """It is not in force any more. For a session that has ended these follow later."""
        ...

    def retained(self, message: Message, share: Share | None, origin: str | None) -> None:
        """This is the retained message of its topic now. Not called for the broker's own.

        share   of the principal that pays for it
        origin  name of the session that published it
        """
        ...

    def cleared(self, topic: bytes, syntax: str) -> None:
        """The topic has no retained message any more."""
        ...

    def marked(self, mark: Mark) -> None:
        """The message with this mark was accepted: its producer is so far."""
        ...

    def declared(self, declaration: Declaration) -> None:
        """A protocol's client has declared this, or declares it otherwise now."""
        ...

    def undeclared(self, owner: str, key: bytes) -> None:
        """It is gone."""
        ...

    @property
    def reads_delayed(self) -> bool:
        """Does it give the messages that are `delayed` back? Else they stay in memory. Always the same."""
        ...

    def delayed(self, due: float, delayed: DelayedMessage, nbytes: int) -> int:
        """A message was accepted that is due at this wall-clock time, and counts so many bytes. Returns its id, which
        is larger than those before; 0 if it does not give it back.
        """
        ...

    def read_delayed(self, ids: Sequence[int], then: Callable[[Mapping[int, Message]], None]) -> None:
        """Call `then` later with these messages, as far as they can be read."""
        ...

    def delayed_done(self, id: int) -> None:
        """It was routed in this turn, or is given up."""
        ...


class SubscriptionTrail(Protocol):
    """Is told of each subscription when it is in force, and before it ends. Put in by `Broker.trail_with`."""

    def subscribed(self, subscription: Subscription) -> None: ...
    def unsubscribed(self, subscription: Subscription) -> None: ...


class Recorder(Protocol):
    """Records the messages that pass on routes with a tap: the archive. Put in by `Broker.record_to`.

    It calls `Acknowledgements.release` when it has recorded more.
    """

    @property
    def awaited(self) -> bool:
        """Do acknowledgements wait until their message is recorded? Always the same."""
        ...

    @property
    def taken(self) -> int:
        """Messages taken so far, of which an acknowledgement has to wait for the last; 0 if none waits."""
        ...

    def hurry(self) -> None:
        """The first acknowledgement waits."""
        ...

    def note(self, mark: Mark, route: Route) -> None:
        """A message with this mark is about to be sent on the route: to be stored together, or neither of them."""
        ...

    def undo_note(self) -> None:
        """The message of the last `note` was held back: it was not sent."""
        ...

    def has_room(self, route: Route) -> bool:
        """Is there room for a message whose acknowledgement waits until it is recorded?"""
        ...

    def make_room(self) -> None:
        """Publishers are held back from now on, until it is `roomy`."""
        ...

    @property
    def roomy(self) -> bool:
        """Is half of its room free?"""
        ...


class Recorded(Protocol):
    """What keeps the messages that pass, to be looked at."""

    @property
    def trouble(self) -> str | None:
        """Why messages do not get to where they are kept; None while they do."""
        ...

    def view(self) -> View: ...


class StoreView(Protocol):
    """What keeps what must survive a restart, to be looked at."""

    @property
    def trouble(self) -> str | None:
        """Why it can keep nothing; None while it can."""
        ...

    @property
    def promise(self) -> str:
        """The `durability` of what is acknowledged; "in memory only" if nothing is kept."""
        ...


class Inspection(Protocol):
    """What the HTTP listener may ask of the broker. Every call is bounded by `limit`."""

    def counters(self) -> Mapping[str, int]:
        """Monotonic counts since the start, by name (core/inspection.py has the list and each one's meaning)."""
        ...

    def gauges(self) -> Mapping[str, float]:
        """Present values by name."""
        ...

    def unwell(self) -> Sequence[str]:
        """The names of the parts that do not work, while the rest of the broker does."""
        ...

    @property
    def durability(self) -> str:
        """What an acknowledgement promises: "synced", "written", "memory", or "in memory only" without a store."""
        ...

    def archive(self) -> View | None:
        """The archive; None if there is none."""
        ...

    def connections(self, *, offset: int, limit: int) -> Sequence[View]: ...

    def subscriptions(self, *, offset: int, limit: int) -> Sequence[View]: ...

    def snapshot(self, *, place: int, places: int) -> tuple[Sequence[View], int | None]:
        """Subscriptions by ascending id, of `places` ids from `place` on; and where to go on, None at the end."""
        ...

    def sessions(self, *, offset: int, limit: int) -> Sequence[View]: ...

    def queues(self, *, offset: int, limit: int) -> Sequence[View]: ...

    def delayed(self, *, offset: int, limit: int) -> Sequence[View]: ...

    def marks(self, *, offset: int, limit: int) -> Sequence[View]: ...

    def shares(self, *, limit: int) -> View:
        """How full each pot is, and the principals that hold most of any."""
        ...

    def quotas(
        self, *, offset: int, limit: int, by: str, principal: str | None, entry: str | None, per: str
    ) -> Generator[None, None, View]:
        """Users and addresses: what they use, of how much, how fast; by one of `quota_views.QUOTA_ORDERS`. In steps.

        per: one of `quota_views.HOLDER_KINDS`, of which holders are shown instead
        """
        ...

    def hot_topics(self, *, limit: int, by_rate: bool = False) -> Sequence[View]:
        """The topics with the most messages; `by_rate`: with the most a second since the reading before."""
        ...

    def slow_consumers(self, *, limit: int) -> Generator[None, None, Sequence[View]]: ...

    def explain(
        self, topic: str, *, syntax: str, client: str | None, limit: int, fields: Mapping[str, Any] | None = None,
        namespace: str = "", near: int = 0,
    ) -> Generator[None, None, View]:
        """Which subscriptions match and by which rows; for a client, why its others do not; `near` that do not, those
        first that nearly do. In steps.

        Raises ValueError for an invalid topic or syntax, or a namespace that is not there.
        """
        ...

    @property
    def ready(self) -> bool:
        """Accepting clients: listening, and not draining."""
        ...
