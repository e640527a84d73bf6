"""Publishing: the one place where a message is accepted, from any publisher.

    accept:  route and permission --> mark --> rules --> room --> fan out --> retain, identifier --> receipt
                 |                     |        |         |
                 Refused               Repeated Refused   Held, Refused

    with a delay: all of this but the fan-out and the retained entry, which follow when it is due (`deliver`)

Protocols, wills and the broker's own messages are handed to `accept` as a Publication and a Sender. The sender delivers
the message to the outboxes: a lane forwards the PUBLISH at hand, `Direct` a message that is an object. A lane that
publishes on a cached route without Python uses the same decision, made when the route was looked up here.

A message is retained after the fan-out and not before it: the fan-out decides last whether there is room (`Held`, or
every queue is full), and a message that was not accepted must not be retained. Nothing runs between the two. The
receipt is last: it waits for the journal's position behind all that the message has changed (core/acknowledgements.py).

Where routing rules act on a message, all that they make of it is worked out and looked at before any of it is fanned
out: it is published as a whole, held, or refused. The receipt covers all of it (core/rules.py, docs/rules.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from fanlight_broker.core.acknowledgements import Acknowledgements
from fanlight_broker.core.delayed import Delayed
from fanlight_broker.core.delayed_message import DelayedMessage
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.errors import FanlightError, QueueFull, RateExceeded
from fanlight_broker.core.marks import Mark, Marks
from fanlight_broker.core.paces import Paces, pay
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.retained import Retained
from fanlight_broker.core.rewriting import Output, outputs_of
from fanlight_broker.core.router import Router
from fanlight_broker.core.rules import NoRules, Plan, Rules
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.topics import SYNTAXES, check_publisher
from fanlight_broker.wire.fanout import publish, receive
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.outbox import Outbox, Owner
from fanlight_broker.wire.receipts import Receiver
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.sampler import Sampler


@dataclass(frozen=True, slots=True)
class Accepted:
    """routed: subscriptions that get it; a queue group counts once. kept: False if every queue was full.

    delayed: it is kept until it is due, under this `id`, and nobody has got it yet.
    forwarded: False if the sender has not forwarded the message itself, but what takes its place, if anything does.
    """

    routed: int
    kept: bool = True
    delayed: bool = False
    id: int = field(default=0, compare=False)
    forwarded: bool = field(default=True, compare=False)


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


class Accept(Protocol):
    """`Publishing.accept`."""

    def __call__(
        self, publication: Publication, sender: "Sender", now: float, receipt: Receipt | None = None
    ) -> Outcome: ...


class Trace(Protocol):
    """What a message that is traced is followed by."""

    def forward(self, sender: "Sender", route: Route) -> bool:
        """`sender.forward`, and note who got it."""
        ...


class MessageTracer(Protocol):
    """Chooses messages, and follows them (decision 0031)."""

    @property
    def sampler(self) -> Sampler: ...

    def accept(
        self, publishing: "Publishing", publication: Publication, sender: "Sender", now: float, receipt: Receipt | None
    ) -> Outcome:
        """`Publishing.accept_untraced`, with a trace of the message if it is chosen."""
        ...


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

    @property
    def outbox(self) -> Outbox | None:
        """The publisher's."""
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
    """The sender of a message that cannot wait: a will, or one of the broker's own.

    Nobody is there who could wait for room in the store, so it is published however full that is. patient: somebody is.
    """

    unkept = False
    patient = False

    def __init__(self, ledger: Ledger, message: Message, publisher: Outbox | None, *, derived: bool = False) -> None:
        """derived: made by a rule, of a message that is counted already."""
        self.routed = 0
        self.outbox = publisher
        self._ledger = ledger
        self._message = message
        self._uncounted = derived or publisher is None

    @property
    def owner(self) -> Owner | None:
        """Whose message it is."""
        return self.outbox.owner if self.outbox is not None else None

    def forward(self, route: Route) -> bool:
        self.routed = publish(route, self._ledger, self.outbox, self._message, own=self._uncounted)
        return True

    def hold_back(self, blocker: Outbox | None) -> None:
        raise AssertionError("a message that cannot wait was held")

    def confirm(self, route: Route) -> bool:
        return True

    def waits(self, route: Route) -> bool:
        return False


def can_wait(sender: Sender) -> bool:
    """May its message be held back?"""
    return not isinstance(sender, Direct) or sender.patient


class Publishing:
    """Permissions and rules may be replaced at any time, between two messages."""

    def __init__(
        self, router: Router, retained: Retained, marks: Marks, ledger: Ledger, enforcement: Enforcement,
        acknowledgements: Acknowledgements, delayed: Delayed, paces: Paces,
    ) -> None:
        self.router = router
        self.retained = retained
        self.marks = marks
        self.ledger = ledger
        self.enforcement = enforcement
        self.acknowledgements = acknowledgements
        self.delayed = delayed
        self.paces = paces
        self.rules: Rules = NoRules()
        self.accept: Accept = self.accept_untraced
        self.traces = False  # does it choose messages at all?
        self.trace: Trace | None = None  # of the message that is being accepted
        # By families of formats: where a delayed message goes that is due; None: to the subscriptions of its topic.
        self.routed_by: dict[str, Callable[[Message], Route | None]] = {}

    def use_rules(self, rules: Rules) -> None:
        """Put rules in force in place of those before, between two messages."""
        self.rules = rules
        self.router.rule_topics(None if rules.empty else rules.concern)

    def route(self, publication: Publication) -> Route:
        """The route of a message, if its publisher may publish it. Raises InvalidTopic, NotPermitted."""
        publisher, message = publication.publisher, publication.message
        topic, syntax = message.topic, SYNTAXES[message.syntax]
        if publisher is None:
            return self.router.own_route(topic, syntax)
        check_publisher(topic)
        self.enforcement.check_publish(publisher, message, requests=publication.requests)
        return publication.route if publication.route is not None else self.router.route(topic, syntax)

    def trace_with(self, tracing: MessageTracer) -> None:
        """Let this choose messages that it traces. Before the first connection: without it nothing is asked."""
        self.router.trace_with(tracing.sampler)
        self.traces = True

        def accept(
            publication: Publication, sender: Sender, now: float, receipt: Receipt | None = None
        ) -> Outcome:
            return tracing.accept(self, publication, sender, now, receipt)

        self.accept = accept

    def accept_untraced(
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
            if client is not None and client.outbox.pace is not None:
                self.paces.check(client.outbox.pace, now)
            route = self.route(publication)
            if mark is not None and client is not None:
                self.marks.check(mark, client)
                if self.marks.repeats(mark):
                    if receipt is not None:
                        # The first one may not be stored yet.
                        self._commit(partial(receipt, REPEATED), sender, route)
                    pay(client, message, now)
                    return REPEATED
            if publication.due is not None:
                return self._put_off(publication, publication.due, sender, now, receipt, since)
            if route.ruled and publication.ruled and publisher is not None:
                format = self.router.body_format(message.topic, message.syntax)
                plan = self.rules.plan(message, publisher, format, due=False)
                if plan is not None:
                    return self._accept_planned(plan, publication, route, sender, now, receipt, since)
            wanted = self.router.for_message(route, message, publisher)
            if wanted.is_refused(self.ledger, message):
                raise QueueFull("a queue of this topic is full, and refuses what comes; consume from it, or enlarge it")
            waits = receipt is not None and sender.waits(wanted)
            blocker = None
            if can_wait(sender):
                blocker = self.acknowledgements.blocker(message, wanted, waits=waits)
        except FanlightError as error:
            if not isinstance(error, RateExceeded):
                pay(client, message, now)
            return Refused(error)
        if blocker is not None:
            sender.hold_back(blocker)
            return HELD
        self.ledger.now = now
        kept = message.keep() if message.retain else None  # forwarding invalidates what a lane's message points at
        if not self._send(mark, wanted, sender):
            return HELD
        if mark is not None and client is not None:
            self.marks.advance(mark, client)
        if kept is not None and not sender.unkept:
            self._retain(kept, publisher, route, now)
        if publication.identifier is not None and publisher is not None and not sender.unkept:
            assert publisher.session is not None
            publisher.session.receive(publication.identifier)
        outcome = Accepted(sender.routed, not sender.unkept)
        if receipt is not None and not sender.confirm(wanted):
            self._commit(partial(receipt, outcome), sender, route, since)
        return outcome

    def _put_off(
        self, publication: Publication, due: float, sender: Sender, now: float, receipt: Receipt | None, since: int
    ) -> Outcome:
        """Keep a message until it is due. Nothing is recorded yet. Raises LimitExceeded, StoreUnavailable."""
        publisher, mark = publication.publisher, publication.mark
        assert publisher is not None  # the broker delays nothing of its own
        self.delayed.check(publication.message, due, now, publisher.share)
        blocker = self.acknowledgements.blocker_of_stored(waits=receipt is not None) if can_wait(sender) else None
        if blocker is not None:
            sender.hold_back(blocker)
            return HELD
        id = self.delayed.add(publication.message, due, now, publisher)
        pay(publisher.client, publication.message, now)
        if mark is not None and publisher.client is not None:
            self.marks.advance(mark, publisher.client)
        if publication.identifier is not None:
            assert publisher.session is not None
            publisher.session.receive(publication.identifier)
        outcome = Accepted(0, delayed=True, id=id, forwarded=False)
        if receipt is not None:
            receiver = sender if isinstance(sender, Receiver) else None
            self.acknowledgements.commit(partial(receipt, outcome), receiver, recorded=False, since=since)
        return outcome

    def deliver(self, delayed: DelayedMessage, sender: Direct, now: float) -> bool:
        """Route a message that was delayed. Who may publish was checked when it was accepted.

        False if a queue refuses it now, or the store has no room. Raises InvalidTopic, LimitExceeded.
        """
        message, publisher, plan = delayed.message, delayed.publisher, None
        ask = self.routed_by.get(message.format.family)
        route = ask(message) if ask is not None else None
        if route is None:
            route = self.router.route(message.topic, SYNTAXES[message.syntax])
        if route.ruled:
            format = self.router.body_format(message.topic, message.syntax)
            plan = self.rules.plan(message, sender.owner, format, due=True)
        if plan is None:
            outputs = [Output(message, route, self.router.for_message(route, message, sender.owner))]
        else:
            outputs = outputs_of(plan, message, route, self.router, sender.owner)
        position = self.acknowledgements.position
        for each in outputs:
            if each.wanted.is_refused(self.ledger, each.message) or (
                (position.full or position.refusing) and self.acknowledgements.stores(each.message, each.wanted)
            ):
                return False
        self.ledger.now = now
        if not outputs:
            receive(self.ledger, sender.outbox, message)
        for number, each in enumerate(outputs):
            Direct(self.ledger, each.message, sender.outbox, derived=number > 0).forward(each.wanted)
            if each.message.retain:
                origin = publisher.name if publisher.session else None
                self.retained.put(each.message, now, share=publisher.share, origin=origin)
        if plan is not None:
            self.rules.count(plan)
        return True

    # -- what routing rules make of a message -------------------------------------------------------------------------

    def _accept_planned(
        self, plan: Plan, publication: Publication, route: Route, sender: Sender, now: float, receipt: Receipt | None,
        since: int,
    ) -> Outcome:
        """Publish what rules make of a message: all of it, or nothing. Raises FanlightError."""
        publisher, mark, message = publication.publisher, publication.mark, publication.message
        assert publisher is not None
        if plan.delay is not None:
            put_off = self._put_off(publication, now + plan.delay, sender, now, receipt, since)
            if put_off is not HELD:
                self.rules.count(plan)
            return put_off
        outputs = outputs_of(plan, message, route, self.router, publisher)
        waits = receipt is not None and any(sender.waits(each.wanted) for each in outputs)
        if self._held(outputs, publisher, message, sender, now, waits=waits):
            return HELD
        self.ledger.now = now
        forwarded = bool(outputs) and outputs[0].message is message
        kept = message.keep() if forwarded and message.retain else None
        if forwarded and not self._send(mark, outputs[0].wanted, sender):
            return HELD
        routed = sender.routed if forwarded else 0
        whole = not (forwarded and sender.unkept)  # else its publisher is to publish it again: it is not copied now
        if forwarded and kept is not None and whole:
            self._retain(kept, publisher, route, now)
        if whole:
            routed += self._send_made(outputs[forwarded:], publisher, mark, sender, now, counted=forwarded)
            self.rules.count(plan)
        if not outputs:
            receive(self.ledger, sender.outbox, message)
        if mark is not None and publisher.client is not None:
            self.marks.advance(mark, publisher.client)
        if publication.identifier is not None and whole:
            assert publisher.session is not None
            publisher.session.receive(publication.identifier)
        outcome = Accepted(routed, whole, forwarded=forwarded)
        if receipt is not None:
            receiver = sender if isinstance(sender, Receiver) else None
            recorded = any(each.wanted.tap is not None for each in outputs)
            self.acknowledgements.commit(partial(receipt, outcome), receiver, recorded=recorded, since=since)
        return outcome

    def _held(
        self, outputs: list[Output], publisher: Subscriber, message: Message, sender: Sender, now: float, *, waits: bool
    ) -> bool:
        """Must a message wait, for the sake of anything that is made of it? Raises QueueFull, LimitExceeded, ..."""
        for each in outputs:
            if each.delay is not None:
                self.delayed.check(each.message, now + each.delay, now, publisher.share)
                blocker = self.acknowledgements.blocker_of_stored(waits=waits) if can_wait(sender) else None
            else:
                if each.wanted.is_refused(self.ledger, each.message) or (
                    message.qos and each.message is not message
                    and not each.wanted.has_room(self.ledger, sender.outbox, message)
                ):
                    raise QueueFull("a queue of a topic that a rule sends the message to is full; consume from it")
                blocker = None
                if can_wait(sender):
                    blocker = self.acknowledgements.blocker(each.message, each.wanted, waits=waits)
                    if blocker is None and (self.ledger.pausing or self.ledger.used > self.ledger.limit):
                        blocker = each.wanted.blocker_of(sender.outbox)
            if blocker is not None:
                sender.hold_back(blocker)
                return True
        return False

    def _send_made(
        self, outputs: list[Output], publisher: Subscriber, mark: Mark | None, sender: Sender, now: float, *,
        counted: bool,
    ) -> int:
        """Publish what was made of a message, for its publisher. Returns the subscriptions that get it.

        counted  the message itself was published before: else the first of these counts, and is stored with the mark
        """
        routed = 0
        for each in outputs:
            if each.delay is not None:
                self.delayed.add(each.message, now + each.delay, now, publisher)
                continue
            direct = Direct(self.ledger, each.message, sender.outbox, derived=counted)
            self._send(None if counted else mark, each.wanted, direct)
            counted = True
            routed += direct.routed
            if each.message.retain:
                self._retain(each.message, publisher, each.route, now)
        if outputs and not counted:  # all of it is delayed
            pay(publisher.client, outputs[0].message, now)
        return routed

    def _send(self, mark: Mark | None, route: Route, sender: Sender) -> bool:
        """Fan out. A mark is stored together with its message, or not at all."""
        if mark is None:
            return sender.forward(route) if self.trace is None else self.trace.forward(sender, route)
        recorder = self.acknowledgements.recorder
        recorder.note(mark, route)
        sent = False
        try:
            sent = sender.forward(route) if self.trace is None else self.trace.forward(sender, route)
        finally:
            if not sent:
                recorder.undo_note()
        return sent

    def _retain(self, message: Message, publisher: Subscriber | None, route: Route, now: float) -> None:
        if publisher is None:
            self.retained.put(message, now, own=True)
        else:
            origin = publisher.name if publisher.session is not None else None
            route.retained = self.retained.set(message, now, publisher.share, origin)  # for the lanes, to replace

    def _commit(self, receipt: Callable[[], None], sender: Sender, route: Route, since: int | None = None) -> None:
        """Nobody waits for it any more when the connection has ended."""
        receiver = sender if isinstance(sender, Receiver) else None
        recorded = route.tap is not None or any(isinstance(each, NamedQueue) and each.recorder for each in route.groups)
        self.acknowledgements.commit(receipt, receiver, recorded=recorded, since=since)

    def announce(self, message: Message, now: float) -> Outcome:
        """Publish one of the broker's own messages, to which no limit of topics or retained messages applies."""
        return self.accept(Publication(message), Direct(self.ledger, message, None), now)
