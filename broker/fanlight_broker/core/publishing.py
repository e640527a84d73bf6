"""Publishing: the one place where a message is accepted, from any publisher.

    accept:  route and permission --> mark --> rules --> room --> fan out --> retain, identifier --> receipt
                 |                     |        |         |
                 Refused               Repeated Refused   Held, Refused

Protocols, wills and the broker's own messages are handed to `accept` as a Publication and a Sender. The sender delivers
the message to the outboxes: a lane forwards the PUBLISH at hand, `Direct` a message that is an object. A lane that
publishes on a cached route without Python uses the same decision, made when the route was looked up here.

A message is retained after the fan-out and not before it: the fan-out decides last whether there is room (`Held`, or
every queue is full), and a message that was not accepted must not be retained. Nothing runs between the two. The
receipt is last: it waits for the journal's position behind all that the message has changed (core/acknowledgements.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from fanlight_broker.core.acknowledgements import Acknowledgements
from fanlight_broker.core.errors import FanlightError, QueueFull
from fanlight_broker.core.marks import Mark, Marks
from fanlight_broker.core.ports import Permissions, Rules
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.retained import Retained
from fanlight_broker.core.router import Router
from fanlight_broker.core.rules import NoRules
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.topics import SYNTAXES, check_publisher
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.receipts import Receiver
from fanlight_broker.wire.route import Route


@dataclass(frozen=True, slots=True)
class Accepted:
    """routed: subscriptions that get it; a queue group counts once. kept: False if every queue was full."""

    routed: int
    kept: bool = True


@dataclass(frozen=True, slots=True)
class Repeated:
    """A message with this mark, or a later one of its producer, was accepted before."""


@dataclass(frozen=True, slots=True)
class Held:
    """Nothing was published: try again when the sender's blocker has drained."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It must not be published, or not like this."""

    error: FanlightError


Outcome = Accepted | Repeated | Held | Refused
Receipt = Callable[[Accepted | Repeated], None]

REPEATED: Final = Repeated()
HELD: Final = Held()


class Sender(Protocol):
    """Delivers one message to the outboxes of a route."""

    @property
    def routed(self) -> int:
        """Subscriptions that `forward` gave it to."""
        ...

    @property
    def unkept(self) -> bool:
        """Was every queue full?"""
        ...

    def forward(self, route: Route) -> bool:
        """Fan it out. False if an outbox or a full queue holds it back."""
        ...

    def hold_back(self, blocker: Outbox | None) -> None:
        """Make it wait for this outbox."""
        ...

    def confirm(self, route: Route) -> bool:
        """Write the receipt of what was forwarded, if one is expected, when it is stored. False: the caller does."""
        ...

    def waits(self, route: Route) -> bool:
        """Would a receipt for the message have to wait for the recorder or the journal?"""
        ...


class Direct:
    """The sender of a message that cannot wait: a will, or one of the broker's own."""

    unkept = False

    def __init__(self, ledger: Ledger, message: Message, publisher: Outbox | None) -> None:
        self.routed = 0
        self._ledger = ledger
        self._message = message
        self._publisher = publisher

    def forward(self, route: Route) -> bool:
        self.routed = publish(route, self._ledger, self._publisher, self._message, own=self._publisher is None)
        return True

    def hold_back(self, blocker: Outbox | None) -> None:
        raise AssertionError("a message that cannot wait was held")

    def confirm(self, route: Route) -> bool:
        return True

    def waits(self, route: Route) -> bool:
        return False


class Publishing:
    """Rules may be replaced before the first message; permissions are shared with `Subscribing`."""

    def __init__(
        self, router: Router, retained: Retained, marks: Marks, ledger: Ledger, permissions: Permissions,
        acknowledgements: Acknowledgements,
    ) -> None:
        self.router = router
        self.retained = retained
        self.marks = marks
        self.ledger = ledger
        self.permissions = permissions
        self.acknowledgements = acknowledgements
        self.rules: Rules = NoRules()

    @property
    def cacheable(self) -> bool:
        """May a lane publish again on a route that was looked up for another message? Else it asks for each one."""
        return self.permissions.unrestricted and self.rules.empty

    def route(self, publisher: Subscriber | None, topic: bytes, syntax: str) -> Route:
        """The route of a topic, for its publisher (None: the broker itself). Raises InvalidTopic, NotPermitted."""
        if publisher is None:
            return self.router.own_route(topic, syntax)
        check_publisher(topic)
        self.permissions.check_publish(publisher, topic, syntax)
        return self.router.route(topic, syntax)

    def accept(
        self, publication: Publication, sender: Sender, now: float, receipt: Receipt | None = None
    ) -> Outcome:
        """Publish one message.

        receipt  called once when the message is stored, now or later, unless the sender answers itself; not called
                 for a message that is held or refused. None: its publisher expects no acknowledgement
        """
        publisher, mark, message = publication.publisher, publication.mark, publication.message
        client = publisher.client if publisher is not None else None  # a mark belongs to the connection that sent it
        since = self.acknowledgements.position.appended
        try:
            route = self.route(publisher, message.topic, SYNTAXES[message.syntax])
            if mark is not None and client is not None:
                self.marks.check(mark, client)
                if self.marks.repeats(mark):
                    if receipt is not None:
                        # The first one may not be stored yet.
                        self._commit(partial(receipt, REPEATED), sender, route)
                    return REPEATED
            if not self.rules.empty:
                self.rules.check(publication, route)
            if route.is_refused(self.ledger, message):
                raise QueueFull("a queue of this topic is full, and refuses what comes; consume from it, or enlarge it")
            waits = receipt is not None and sender.waits(route)
            blocker = self.acknowledgements.blocker(message, route, waits=waits)
        except FanlightError as error:
            return Refused(error)
        if blocker is not None:
            sender.hold_back(blocker)
            return HELD
        self.ledger.now = now
        kept = message.keep() if message.retain else None  # forwarding invalidates what a lane's message points at
        if not self._send(mark, route, sender):
            return HELD
        if mark is not None and client is not None:
            self.marks.advance(mark, client)
        if kept is not None and not sender.unkept:
            self._retain(kept, publisher, now)
        if publication.identifier is not None and publisher is not None and not sender.unkept:
            assert publisher.session is not None
            publisher.session.receive(publication.identifier)
        outcome = Accepted(sender.routed, not sender.unkept)
        if receipt is not None and not sender.confirm(route):
            self._commit(partial(receipt, outcome), sender, route, since)
        return outcome

    def _send(self, mark: Mark | None, route: Route, sender: Sender) -> bool:
        """Fan out. A mark is stored together with its message, or not at all."""
        if mark is None:
            return sender.forward(route)
        recorder = self.acknowledgements.recorder
        recorder.note(mark, route)
        sent = False
        try:
            sent = sender.forward(route)
        finally:
            if not sent:
                recorder.undo_note()
        return sent

    def _retain(self, message: Message, publisher: Subscriber | None, now: float) -> None:
        if publisher is None:
            self.retained.put(message, now, own=True)
        else:
            origin = publisher.name if publisher.session is not None else None
            self.retained.put(message, now, share=publisher.share, origin=origin)

    def _commit(self, receipt: Callable[[], None], sender: Sender, route: Route, since: int | None = None) -> None:
        """Nobody waits for it any more when the connection has ended."""
        receiver = sender if isinstance(sender, Receiver) else None
        self.acknowledgements.commit(receipt, receiver, recorded=route.tap is not None, since=since)

    def announce(self, message: Message, now: float) -> None:
        """Publish one of the broker's own messages, to which no limit of topics or retained messages applies."""
        self.accept(Publication(message), Direct(self.ledger, message, None), now)
