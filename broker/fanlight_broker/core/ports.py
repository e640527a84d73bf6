"""Ports: what the core asks of the floors above it, and what it offers to be looked at through.

Calls go up only through these protocols, so that the core imports neither a socket nor a protocol.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fanlight_broker.core.identity import Identity
from fanlight_broker.core.marks import Mark
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.route import Route

if TYPE_CHECKING:
    from fanlight_broker.core.publication import Publication
    from fanlight_broker.core.subscriber import Subscriber
    from fanlight_broker.core.subscription import Subscription

View = dict[str, Any]  # a JSON object; the keys are listed where it is made (core/inspection.py)


class Authenticator(Protocol):
    """Decides who a client is. Raises `AuthenticationFailed`; never says which half was wrong."""

    async def authenticate(
        self, user: str | None, password: str | None, address: str, *, certified: str = "", counted: bool = True
    ) -> Identity:
        """Return who the client is.

        certified: whom the client's certificate, which the transport has verified, is of; "" without one.
        counted: it is a client that comes in, and not one of many requests.
        """
        ...

    def stands(self, identity: Identity) -> bool:
        """Would the credentials that let a client in let it in now? They may have been changed or deleted."""
        ...


class WrongProtocol(NamedTuple):
    """A client speaks another protocol than the listener it connected to."""

    text: str  # which protocol it is, and on which port the broker speaks it
    answer: bytes  # the same text in the client's protocol; empty if that protocol has no answer


# Takes the name of the listener and the first bytes of a connection. None: it may be the listener's protocol.
ProtocolCheck = Callable[[str, bytes], WrongProtocol | None]


class ClientConnection(Protocol):
    """The connection of a client, as the core addresses it (connection.ProtocolConnection is one)."""

    def subscription_ended(self, subscription: "Subscription", reason: str) -> None:
        """Tell the client that a subscription has ended by itself."""
        ...

    def say_goodbye(self, reason: str, text: str) -> None:
        """Tell the client why, then close its connection once everything is out."""
        ...

    def cut_off(self, reason: str, text: str) -> None:
        """Close its connection without waiting for it to read; what is unsent is lost and counted."""
        ...

    def unblocked(self) -> None:
        """An outbox that held this client's messages back has drained, or its own has that was to be refilled."""
        ...

    def notify_held(self, held: bool, seconds: float) -> None:
        """Tell the client that its messages wait for a slow consumer, or for how long they did; if there is a way."""
        ...


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

    def now(self) -> float:
        """The clock that `now` is from everywhere, in seconds."""
        ...

    def authenticate(self, user: str | None, password: str | None) -> None:
        """Check credentials; the protocol's `authenticated` or `refuse` is called with the outcome, later."""
        ...

    def close(self, reason: str = "") -> None:
        """Write out what is in the outbox, then close. `reason` is for the log."""
        ...

    def abort(self, reason: str) -> None:
        """Close at once; what is unsent is lost and counted."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def next_turn(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` when the other connections have had their turn; nothing is read until then."""
        ...


class Permissions(Protocol):
    """Decides who may publish and subscribe where, beside what no client may."""

    @property
    def unrestricted(self) -> bool:
        """True: everybody may do everything, and need not be checked."""
        ...

    def check_publish(self, publisher: "Subscriber", topic: bytes, syntax: str) -> None:
        """Raises NotPermitted."""
        ...

    def check_subscribe(self, subscriber: "Subscriber", filter: bytes, syntax: str) -> None:
        """Raises NotPermitted."""
        ...


class Rules(Protocol):
    """Decides about a message beside where it goes."""

    @property
    def empty(self) -> bool:
        """True: there are none."""
        ...

    def check(self, publication: "Publication", route: Route) -> None:
        """Raises NotPermitted for a message that a rule refuses."""
        ...


class Store(Protocol):
    """Keeps what must outlive the process: sessions, the messages in their queues and windows, retained messages."""

    @property
    def durable(self) -> bool:
        """False: nothing is kept, and `commit` need not be called."""
        ...

    def commit(self, then: Callable[[], None]) -> None:
        """Call `then`, an acknowledgement, when all that was accepted until now is stored: now or later, in order."""
        ...

    def note(self, mark: Mark, route: Route) -> None:
        """A message with this mark is about to be sent on the route: to be stored together, or neither of them."""
        ...

    def take_back(self) -> None:
        """The message of the last `note` was held back: it was not sent."""
        ...

    def blocker(self, route: Route) -> Outbox | None:
        """What holds back who wants an acknowledgement of a message on this route; None if there is room."""
        ...


class Recorded(Protocol):
    """What keeps the messages that pass, to be looked at."""

    @property
    def trouble(self) -> str | None:
        """Why messages do not get to where they are kept; None while they do."""
        ...

    def view(self) -> View: ...


class Inspection(Protocol):
    """What the HTTP listener may ask of the broker. Every call is bounded by `limit`."""

    def counters(self) -> Mapping[str, int]:
        """Monotonic counts since the start, by name (core/inspection.py has the list and each one's meaning)."""
        ...

    def gauges(self) -> Mapping[str, float]:
        """Present values by name."""
        ...

    def unwell(self) -> Sequence[str]:
        """The names of the parts that do not do what they are there for; the rest of the broker goes on."""
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

    def marks(self, *, offset: int, limit: int) -> Sequence[View]: ...

    def shares(self, *, limit: int) -> View:
        """How full each pot is, and the principals that hold most of any."""
        ...

    def hot_topics(self, *, limit: int, by_rate: bool = False) -> Sequence[View]:
        """The topics with the most messages; `by_rate`: with the most a second since the reading before."""
        ...

    def slow_consumers(self, *, limit: int) -> Sequence[View]: ...

    def explain(self, topic: str, *, syntax: str, client: str | None, limit: int) -> View:
        """Which subscriptions match and by which rows; for a client, why its others do not.

        Raises ValueError for an invalid topic or syntax.
        """
        ...

    @property
    def ready(self) -> bool:
        """Accepting clients: listening, and not draining."""
        ...
