"""The base of every protocol's connection: frames are processed in order, a fair share in each turn; its life cycle.

    receive() --> lane.advance() --.-- NEED_MORE -> wait for the next read
         ^                         |-- FRAME     -> handle: decode, check against the state, act, answer --.
         |                         |-- PUBLISH   -> publish: find the route, lane.forward() ---------------|
         |                         '-- BLOCKED   -> stop reading until the blocker has drained             |
         '-------------------------------------------------------------------------------------------------'

    AWAITING --verify--> VERIFYING --authenticated--> CONNECTED --leave, lost--> CLOSED
        '--an exchange with a method--> AUTHENTICATING --^

A protocol decides what a frame means and what its last frame is. The other side is a `ports.Transport`. A compiled
transport advances the lane itself as long as the lane is `ready`, and calls `process` with the event that needs Python;
`receive` does the same for other transports. Time is an argument.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from enum import Enum, auto
from functools import partial
from typing import Any, Final

from fanlight_broker.core.errors import FanlightError, LimitExceeded
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.permissions import Origin
from fanlight_broker.core.ports import Transport
from fanlight_broker.core.quota import Quota
from fanlight_broker.core.shares import principal_of
from fanlight_broker.core.subscriber import Client, ClientConnection
from fanlight_broker.wire.badge import Badge
from fanlight_broker.wire.lane import ANY_SIZE, BLOCKED, FRAME, NEED_MORE, NO_ROOM, PUBLISH, TURN_OVER, Lane

FIRST_BYTES: Final = 24  # of a connection: enough to recognise the protocol and its version
ENOUGH_BYTES: Final = 8  # to recognise the protocol; the first frame of each protocol here is at least as long


class ConnectionState(Enum):
    """Each protocol decides which frames are legal in each state (protocols/*/state.py)."""

    AWAITING = auto()  # the client's first frame
    VERIFYING = auto()  # its credentials are checked, or its session is stored: nothing is read meanwhile
    AUTHENTICATING = auto()  # an exchange with a method is under way
    CONNECTED = auto()
    CLOSED = auto()  # the last frame was sent or received: nothing more is processed


WORK_SECONDS: Final = 0.000_1  # for a client's subscriptions, before it is looked at how much they take
DECISIONS: Final = (FRAME, PUBLISH)  # events that ask for one
AWAITING, VERIFYING, AUTHENTICATING, CONNECTED, CLOSED = ConnectionState  # in Python 3.11 a class looks them up slowly


class ProtocolConnection(ClientConnection, ABC):
    """The protocol side of one connection.

    receive(now)       after bytes were put into `inbox`
    process(event, now)  the same, when the transport has advanced the lane up to this event
    authenticated(..)  when the credentials passed to `verify` are valid; `refuse` if not
    idle(now)          periodically
    lost(reason)       when the transport is closed
    """

    log: Any  # the protocol's logger

    def __init__(self, broker: Namespace, transport: Transport, now: float, lane: Lane) -> None:
        self.broker = broker  # the namespace of the client; before it is known, the root
        self.transport = transport
        self.lane = lane
        self.inbox = lane.inbox
        self.outbox = lane.outbox
        self.state = AWAITING
        self.client: Client | None = None
        self.at_work: Iterator[Any] | None = None  # what is left to do of a frame that takes several turns
        self.blocked = False
        self.turn_over = False  # the rest of the inbox waits for the next turn
        self.first_checked = False  # the first bytes have been checked
        self.failed: str | None = None  # why it was closed, if it broke the protocol
        lane.note_activity(now)
        lane.receipts = broker.acknowledgements.for_lanes()
        self._refused = 0
        self._worked = 0.0  # seconds for its subscriptions, since that was looked at
        self._asked_in_vain = 0  # of them, those that count for `refusals_per_second_max`, since that was looked at
        self._complained = False

    @property
    def things(self) -> tuple[object, ...]:
        """The objects that live as long as it does, of those that the garbage collector looks at (wire/hidden.pxd)."""
        return self, self.lane, self.inbox

    @property
    def refused(self) -> int:
        """Requests answered with an error."""
        return self._refused

    # -- for the protocol -------------------------------------------------------------------------------------------

    def recognises(self, first: bytes) -> bool:
        """Do these first bytes show that the client speaks this protocol? If not, the transport looks for another."""
        return False

    @abstractmethod
    def handle(self, now: float) -> None:
        """Act on the frame at hand. Raises FanlightError, which closes the connection."""

    @abstractmethod
    def publish(self, now: float) -> bool:
        """Publish the PUBLISH at hand. False if an outbox holds it back. Raises as `handle` does."""

    @abstractmethod
    def reject(self, event: int) -> None:
        """The lane stopped with FAULT or TOO_LARGE. Raises the error, or calls `fail` with it."""

    @abstractmethod
    def fail(self, error: FanlightError) -> None:
        """Send the peer the error, and close."""

    @abstractmethod
    def farewell(self, reason: str, text: str) -> bytes | None:
        """The last frame. None if the protocol has no such frame."""

    @abstractmethod
    def welcome(self, identity: Identity, now: float) -> None:
        """The client is authenticated: make it a client of the broker and answer. Raises FanlightError.

        An answer that waits is followed by `go_on`; the state is VERIFYING until then.
        """

    @abstractmethod
    def check_silence(self, silence: float, now: float) -> None:
        """The peer has been silent for this many seconds."""

    def end(self) -> None:
        """The connection has ended, by `leave` or `lost`: drop what is kept for the handshake and the client."""

    def refill(self, now: float) -> None:
        """The outbox has drained: send what waited for that."""

    def continue_work(self) -> bool:
        """Process a frame that takes several turns, for one turn. True if more of it is left."""
        return False

    def wait_for_room(self, now: float) -> None:
        """Read nothing until a queue has room for the PUBLISH at hand."""
        raise NotImplementedError(f"{type(self).__name__} does not let its publishers wait for a queue")

    def end_of_input(self, now: float) -> bool:
        """All input is processed. False if the next read must enter Python whatever it brings."""
        return True

    # -- the loop ---------------------------------------------------------------------------------------------------

    def receive(self, now: float) -> None:
        """Process the frames in the inbox that are complete."""
        if self.lane.ready and self.state is CONNECTED:
            # As a compiled transport does: what follows below is a dozen calls, for TLS and WebSocket with each read.
            event, ledger = self.lane.advance(now), self.broker.ledger
            if event != NEED_MORE or ledger.ended or ledger.attention or ledger.faults or ledger.graves:
                self.process(event, now)
            return
        if not self.first_checked:
            self._check_first_bytes()
        if not self.closed and (self.blocked or self.turn_over or self.waiting):
            # Reading is paused, but a transport may have had bytes at hand: they wait behind earlier ones.
            self.inbox.pause()
        else:
            self.process(None, now)

    def _check_first_bytes(self) -> None:
        """Check that the client speaks this protocol at all. An error about its first frame would not explain that."""
        first = self.inbox.first(FIRST_BYTES)
        self.first_checked = len(first) >= ENOUGH_BYTES
        if self.recognises(first):
            return
        answer = self.transport.wrong_protocol(first)
        if answer is not None:
            self.first_checked = True
            self.failed = "wrong_protocol"
            if answer:
                self.outbox.write(answer)
            self.leave("closed by the broker: wrong_protocol")

    def process(self, event: int | None, now: float) -> None:
        """Continue from an event of the lane, or with None from the lane's present position."""
        begun, dry = False, False  # at least one decision per turn, so that everything ends
        lane, turn_over = self.lane, self.broker.turns.over
        try:
            while (state := self.state) is not CLOSED and state is not VERIFYING:
                if event is None:
                    unfinished = (begun and turn_over()) or (self.at_work is not None and self.continue_work())
                    if (self._asked_in_vain or self._worked > WORK_SECONDS) and self._must_wait(now):
                        break
                    if unfinished:
                        self._defer()
                        break
                    event = lane.advance(now)
                begun = True
                if event in DECISIONS:
                    if lane.pending_acks and self._waits_for_receipts():
                        self._wait_for_blocker(now)
                        break
                    if event == FRAME:
                        self.handle(now)
                    elif not self.publish(now):
                        self._wait_for_blocker(now)
                        break
                elif event == NEED_MORE:
                    dry = True
                    break
                elif event == TURN_OVER:
                    self._defer()
                    break
                elif event == BLOCKED:
                    self._wait_for_blocker(now)
                    break
                elif event == NO_ROOM:
                    raise self.no_room()
                else:
                    self.reject(event)
                event = None
            dry = self.end_of_input(now) and dry
        except FanlightError as error:
            self.fail(error)
        if (state := self.state) is CLOSED:
            self.inbox.clear()
        lane.ready = dry and state is not CLOSED and state is not VERIFYING
        self.broker.finish()

    def _waits_for_receipts(self) -> bool:
        """Leave the frame at hand for later if too many acknowledgements wait in all; some of this client's do."""
        gate = self.broker.acknowledgements.crowded()
        if gate is None:
            return False
        self.lane.hold_back(gate)
        return True

    def note_work(self, began: float) -> None:
        """Subscriptions were begun or ended, since that time of `turns.now(0)`."""
        self._worked += self.broker.turns.now(began) - began

    def _must_wait(self, now: float) -> bool:
        """Was its principal refused too often, or are its subscriptions too much work? Raises LimitExceeded."""
        count, self._asked_in_vain = self._asked_in_vain, 0
        seconds, self._worked = self._worked, 0.0
        if self.client is None or self.state is not CONNECTED:
            return False
        broker, principal, bucket = self.broker, self.client.subscriber.share.principal, None
        if seconds and len(broker.shares) > 1 and broker.login_turns.is_crowded:
            bucket = broker.paces.subscribed_too_long(principal, seconds, now)
        if count:
            bucket = broker.paces.refused_too_often(principal, count, now) or bucket
        if bucket is None:
            return False
        broker.paces.check_line(bucket)
        self.lane.hold_back(bucket.gate)
        self._wait_for_blocker(now)
        broker.paces.wait_in_turn(bucket, now)
        return True

    def _defer(self) -> None:
        """Leave the rest to a later turn."""
        self.turn_over = True
        self.inbox.pause()
        self.transport.next_turn(self._next_turn)

    def _next_turn(self) -> None:
        self.turn_over = False
        if not (self.closed or self.waiting):
            now = self.transport.now()
            self.lane.note_activity(now)  # the broker did not read: the silence so far does not count
            self.resume(now)

    def resume(self, now: float) -> None:
        """Continue with what is in the inbox."""
        self.inbox.resume()
        self.process(None, now)

    def unblock(self, now: float) -> None:
        """The outbox that held this publisher back has drained."""
        self.blocked = False
        if self.client is not None:
            self.broker.paces.absent.discard(self.client)
        self.lane.note_activity(now)  # the broker did not read: the silence so far does not count
        self.transport.resume_reading()
        self.resume(now)

    def no_room(self) -> LimitExceeded:
        """The error when the inboxes of all connections are full, and this connection needs more."""
        pots, limits = self.broker.ledger, self.broker.limits
        if self.inbox.stranger_max >= 0:
            return LimitExceeded(
                f"unfinished handshakes of all connections hold {pots.handshakes.used} bytes", "handshakes_bytes_max",
                limits.handshakes_bytes_max,
            )
        return LimitExceeded(
            f"unfinished frames of all connections hold {pots.inboxes.used} bytes", "inboxes_bytes_max",
            limits.inboxes_bytes_max,
        )

    def _wait_for_blocker(self, now: float) -> None:
        blocker = self.lane.blocker
        assert self.client is not None
        self.blocked = True
        self.transport.pause_reading()
        if blocker is None:
            self.wait_for_room(now)
            return
        self.broker.flow.hold_back(self.client, blocker, now)
        for bucket in self.outbox.pace.buckets if self.outbox.pace is not None else ():
            if blocker is bucket.gate:
                self.broker.paces.wait(bucket, now)

    # -- life cycle -------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Further input is discarded."""
        return self.state is CLOSED

    @property
    def waiting(self) -> bool:
        """Its credentials are being checked, or its session is being stored; input waits meanwhile."""
        return self.state is VERIFYING

    def verify(self, user: str | None, password: str | None, now: float, client: str = "") -> None:
        """Check the client's credentials. Nothing is read meanwhile. Raises FanlightError, as `welcome` does."""
        address = principal_of("", self.transport.address, verified=False)
        if self.broker.login_turns.enter(self, address, partial(self._verify_in_turn, user, password, client)):
            identity = self.transport.authenticate(user, password, client)
            if identity is not None:  # nothing to check: most brokers, and most connections of a storm
                self.welcome(identity, now)
                return
        self.hold_input()

    def _verify_in_turn(self, user: str | None, password: str | None, client: str) -> None:
        """Its turn has come, while its input is held."""
        now = self.transport.now()
        identity = self.transport.authenticate(user, password, client)
        if identity is not None:
            self.authenticated(identity, now)

    def hold_input(self) -> None:
        """Read nothing until `go_on`."""
        self.state = VERIFYING
        self.inbox.pause()
        self.transport.pause_reading()

    def go_on(self, now: float) -> None:
        """The client is welcome: continue with what is in the inbox."""
        self.transport.resume_reading()
        self.resume(now)

    def enter(self, identity: Identity, protocol: str) -> Origin:
        """Move into the namespace of the client, before anything is looked up for it. Returns what rules of permissions
        may ask about the connection, and those that it brings along. Raises NotPermitted, LimitExceeded.
        """
        transport = self.transport
        origin = Origin(
            identity.groups, transport.certified, transport.address, transport.listener, own=identity.permissions
        )
        if self.broker.enforcement.restricted:
            home = self.broker.common.home_of(
                origin.asker(identity.user if identity.verified else "", "", protocol)
            )
            if home is not self.broker:
                self.move(home)
                origin = origin._replace(namespace=home.name)
        return origin

    def move(self, home: Namespace) -> None:
        """From here on all is looked up in this namespace."""
        self.broker = home
        self.lane.use_routes(home.routes)

    def authenticated(self, identity: Identity, now: float) -> None:
        """The credentials are valid."""
        if not self.waiting:
            return
        try:
            self.welcome(identity, now)
        except FanlightError as error:
            self.fail(error)
            return
        if not self.waiting:
            self.go_on(now)

    def stepped(self, answer: bytes | None, identity: Identity | None, now: float) -> None:
        """The outcome of `Transport.step`: an answer for the client, and who it is once that is known."""
        raise NotImplementedError(f"{type(self).__name__} has no exchanges")

    def refuse(self, error: FanlightError) -> None:
        """The credentials are invalid, or could not be checked."""
        if self.waiting:
            self.fail(error)

    def admit(self) -> None:
        """Lift the limits of an unauthenticated connection, and let the lane work without Python where it can."""
        assert self.client is not None
        if self.lane.badge is None:
            self.lane.badge = self.broker.enforcement.badge_of(self.client.subscriber)
        self.inbox.read_max = 0
        self.inbox.admitted()
        self.use_quota(self.client.quota)

    def use_badge(self, badge: Badge | None) -> None:
        self.lane.badge = badge

    def recheck(self) -> Iterator[None]:
        return iter(())

    def use_quota(self, quota: Quota) -> None:
        most = quota.least("message_bytes")
        self.lane.publish_max = ANY_SIZE if most is None else most

    def check_size(self) -> None:
        """Raises LimitExceeded if the PUBLISH at hand is larger than its client's quota allows."""
        if self.lane.frame_size > self.lane.publish_max:
            self.broker.clients.check_size(self.lane.frame_size, self.lane.publish_max)

    def idle(self, now: float) -> None:
        """Check periodically for a silent peer, unless the broker itself does not read from it."""
        if self.state is CONNECTED and not (self.blocked or self.turn_over):
            self.check_silence(self.lane.silence(now), now)

    def leave(self, reason: str) -> None:
        """Close after sending what is in the outbox. `reason` is for the log."""
        self.state = CLOSED
        self.broker.login_turns.leave(self)
        self.lane.forget_receipts()
        self.end()
        self.transport.close(reason)

    def peer_gone(self) -> None:
        """Its peer has closed while nothing is read from it. If it may stay, what it has sent has its turn."""
        if self.blocked and self.client is not None and not self.broker.paces.may_stay(self.client):
            self.transport.abort("the peer left while its requests, refused too often, had to wait")

    def lost(self, reason: str) -> list[Client]:
        """The transport is closed. Returns the publishers that were held back for this client."""
        self.inbox.clear()
        if not self.closed:  # else `leave` has done this
            self.state = CLOSED
            self.broker.login_turns.leave(self)
            self.lane.forget_receipts()
            self.end()
        if self.client is None:
            self.outbox.discard()
            return []
        released = self.broker.clients.disconnect(self.client, reason, self.transport.now())
        self.broker.finish()
        return released

    # -- ClientConnection -------------------------------------------------------------------------------------------

    def say_goodbye(self, reason: str, text: str) -> None:
        if self.closed:
            return
        farewell = self.farewell(reason, text)
        if farewell is not None:
            self.outbox.write(farewell)
        self.leave(f"closed by the broker: {reason}")

    def cut_off(self, reason: str, text: str) -> None:
        if self.closed:
            self.transport.abort(reason)
            return
        # The peer does not read: what is unsent is discarded, so that the last frame need not wait behind it.
        self.outbox.discard(self.farewell(reason, text))
        self.leave(reason)

    def unblocked(self) -> None:
        """Continue: the outbox that held this publisher back has drained, or its own outbox is empty."""
        if self.state is not CONNECTED:
            return
        now = self.transport.now()
        self.refill(now)
        if self.blocked:
            self.unblock(now)

    # -- for the log ------------------------------------------------------------------------------------------------

    @property
    def who(self) -> str:
        return str(self.client) if self.client is not None else "(not through its handshake)"

    def note_refusal(self, code: str, error: FanlightError) -> None:
        """A request was answered with an error. Counted; logged once per connection."""
        self._refused += 1
        self._asked_in_vain += not error.passing
        if not self._complained:
            self._complained = True
            self.log.info("request_refused", **self._peer(), code=code, text=error.text)

    def note_failure(self, code: str, text: str, **details: Any) -> None:
        """The connection is closed because of an error. Logged: it happens once per connection at most."""
        self.failed = code.lower()
        self.log.warning("connection_failed", **self._peer(), code=code, text=text, **details)

    def _peer(self) -> dict[str, Any]:
        return {"address": self.transport.address, "port": self.transport.port, "client": self.who}
