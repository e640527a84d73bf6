"""A connection, whatever its protocol: what comes is read in its order, no more in a turn than is fair; and its life.

    receive() --> lane.advance() --.-- NEED_MORE -> wait for the next read
         ^                         |-- FRAME     -> handle: decode, check against the state, act, answer --.
         |                         |-- PUBLISH   -> publish: find the route, lane.forward() ---------------|
         |                         '-- BLOCKED   -> stop reading until the blocker has drained             |
         '-------------------------------------------------------------------------------------------------'

    AWAITING --verify--> VERIFYING --authenticated--> CONNECTED --leave, lost--> CLOSED
        '--an exchange with a method--> AUTHENTICATING --^

The base of each protocol's connection, which says what a frame means and how to say goodbye. The other side is a
`ports.Transport`. One that is compiled advances the lane itself as long as the lane is `ready`, and comes here with the
event that needs Python. Time is an argument.
"""

from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import Any, Final

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import FanlightError, LimitExceeded
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.ports import Transport
from fanlight_broker.core.subscriber import Client, ClientConnection
from fanlight_broker.wire.lane import BLOCKED, FRAME, NEED_MORE, NO_ROOM, PUBLISH, TURN_OVER, Lane

FIRST_BYTES: Final = 24  # of a connection: they tell its protocol, and the version
ENOUGH_BYTES: Final = 8  # to tell the protocol; the first frame of each protocol here is at least as long


class ConnectionState(Enum):
    """Which frames are legal in each is the protocol's (protocols/*/state.py)."""

    AWAITING = auto()  # the client's first frame
    VERIFYING = auto()  # its credentials are being checked: nothing is read until that is done
    AUTHENTICATING = auto()  # an exchange with a method is under way
    CONNECTED = auto()
    CLOSED = auto()  # the last frame has been sent or received: nothing more is processed


class ProtocolConnection(ClientConnection, ABC):
    """The protocol side of one connection.

    receive(now)       after bytes have been put into `inbox`
    process(event, now)  the same, when the transport has advanced the lane up to this event
    authenticated(..)  when the credentials it passed to `verify` were right; `refuse` if not
    idle(now)          now and then
    lost(reason)       when the transport is gone
    """

    log: Any  # the protocol's logger

    def __init__(self, broker: Broker, transport: Transport, now: float, lane: Lane) -> None:
        self.broker = broker
        self.transport = transport
        self.lane = lane
        self.inbox = lane.inbox
        self.outbox = lane.outbox
        self.state = ConnectionState.AWAITING
        self.client: Client | None = None
        self.blocked = False
        self.turn_over = False  # the rest of the inbox is for the next turn
        self.first_checked = False  # the first bytes have been checked
        self.failed: str | None = None  # the reason it was closed for, if it broke the protocol
        lane.note_activity(now)
        self._refused = 0
        self._complained = False

    @property
    def things(self) -> tuple[object, ...]:
        """What it is made of and lasts as long, of what the garbage collector looks at (wire/hidden.pxd)."""
        return self, self.lane, self.inbox

    @property
    def refused(self) -> int:
        """Requests answered with an error."""
        return self._refused

    # -- the protocol's ---------------------------------------------------------------------------------------------

    @abstractmethod
    def handle(self, now: float) -> None:
        """Do what the frame at hand asks. Raises FanlightError, which closes the connection."""

    @abstractmethod
    def publish(self, now: float) -> bool:
        """Do the PUBLISH at hand. False if an outbox holds it back. Raises as `handle` does."""

    @abstractmethod
    def reject(self, event: int) -> None:
        """The lane can read nothing more: FAULT or TOO_LARGE. Raises the error, or calls `fail` with it."""

    @abstractmethod
    def fail(self, error: FanlightError) -> None:
        """Tell the peer what was wrong, and close."""

    @abstractmethod
    def farewell(self, reason: str, text: str) -> bytes | None:
        """The last frame. None if the protocol has no word for it."""

    @abstractmethod
    def welcome(self, identity: Identity, now: float) -> None:
        """The client is who it says it is: make it a client of the broker and answer. Raises FanlightError."""

    @abstractmethod
    def check_silence(self, silence: float, now: float) -> None:
        """Nothing has been heard of the peer for so many seconds."""

    def end(self) -> None:
        """It is over, by `leave` or `lost`: give up what is kept for the handshake and for this client."""

    def refill(self, now: float) -> None:
        """The outbox has drained: put in what waited for that."""

    def continue_work(self) -> bool:
        """Do a turn's share of a frame that takes more than one. True if there is more of it to do."""
        return False

    def wait_for_room(self, now: float) -> None:
        """The PUBLISH at hand waits, and nothing is read, until a queue has room for it."""
        raise NotImplementedError(f"{type(self).__name__} does not let its publishers wait for a queue")

    def end_of_input(self, now: float) -> bool:
        """All that came has been looked at. False if Python is to be asked again at the next read, whatever comes."""
        return True

    # -- the loop ---------------------------------------------------------------------------------------------------

    def receive(self, now: float) -> None:
        """Process what is in the inbox, as far as it goes."""
        if not self.first_checked:
            self._check_first_bytes()
        if not self.closed and (self.blocked or self.turn_over or self.waiting):
            # Reading is paused, but a transport may have had something in hand: it waits behind what came before.
            self.inbox.pause()
        else:
            self.process(None, now)

    def _check_first_bytes(self) -> None:
        """Check that the client speaks this protocol at all: an error about its first frame would not say so."""
        first = self.inbox.first(FIRST_BYTES)
        self.first_checked = len(first) >= ENOUGH_BYTES
        answer = self.transport.wrong_protocol(first)
        if answer is not None:
            self.first_checked = True
            self.failed = "wrong_protocol"
            if answer:
                self.outbox.write(answer)
            self.leave("closed by the broker: wrong_protocol")

    def process(self, event: int | None, now: float) -> None:
        """Go on from an event of the lane's; None: from where it stands."""
        begun, dry = False, False  # one decision is made, however late it is: there is an end to everything
        try:
            while not (self.closed or self.waiting):
                if event is None:
                    if (begun and self.broker.turns.over()) or self.continue_work():
                        self._defer()
                        break
                    event = self.lane.advance(now)
                begun = True
                if event == NEED_MORE:
                    dry = True
                    break
                if event == TURN_OVER:
                    self._defer()
                    break
                if event == BLOCKED:
                    self._wait_for_blocker(now)
                    break
                if event == PUBLISH:
                    if not self.publish(now):
                        self._wait_for_blocker(now)
                        break
                elif event == FRAME:
                    self.handle(now)
                elif event == NO_ROOM:
                    raise self.no_room()
                else:
                    self.reject(event)
                event = None
            dry = self.end_of_input(now) and dry
        except FanlightError as error:
            self.fail(error)
        if self.closed:
            self.inbox.clear()
        self.lane.ready = dry and not (self.closed or self.waiting)
        self.broker.finish()

    def _defer(self) -> None:
        """The rest is for a later turn."""
        self.turn_over = True
        self.inbox.pause()
        self.transport.next_turn(self._next_turn)

    def _next_turn(self) -> None:
        self.turn_over = False
        if not (self.closed or self.waiting):
            now = self.transport.now()
            self.lane.note_activity(now)  # the silence so far was ours: we did not read
            self.resume(now)

    def resume(self, now: float) -> None:
        """Go on with what is in the inbox."""
        self.inbox.resume()
        self.process(None, now)

    def unblock(self, now: float) -> None:
        """The outbox that held it back has drained."""
        self.blocked = False
        self.lane.note_activity(now)  # the silence so far was ours: we did not read
        self.transport.resume_reading()
        self.resume(now)

    def no_room(self) -> LimitExceeded:
        """All connections together have received more than may be kept, and this one wants more."""
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

    # -- its life ---------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Is it over? What still comes is thrown away."""
        return self.state is ConnectionState.CLOSED

    @property
    def waiting(self) -> bool:
        """Are its credentials being checked? What comes meanwhile is kept."""
        return self.state is ConnectionState.VERIFYING

    def verify(self, user: str | None, password: str | None) -> None:
        """Have the client's credentials checked. Nothing is read until that is done."""
        self.state = ConnectionState.VERIFYING
        self.inbox.pause()
        self.transport.pause_reading()
        self.transport.authenticate(user, password)

    def authenticated(self, identity: Identity, now: float) -> None:
        """The credentials were right."""
        if not self.waiting:
            return
        try:
            self.welcome(identity, now)
        except FanlightError as error:
            self.fail(error)
            return
        self.transport.resume_reading()
        self.resume(now)

    def refuse(self, error: FanlightError) -> None:
        """The credentials were wrong, or could not be checked."""
        if self.waiting:
            self.fail(error)

    def admit(self) -> None:
        """The limits of a stranger are for this connection no more, and the lane may do without Python what it can."""
        publishing = self.broker.publishing
        self.lane.receipts = publishing.recorder.receipts
        self.lane.plain = self.lane.plain or not publishing.cacheable
        self.inbox.read_max = 0
        self.inbox.admitted()

    def idle(self, now: float) -> None:
        """Called now and then: has nothing been heard of the peer, though we listen?"""
        if self.state is ConnectionState.CONNECTED and not (self.blocked or self.turn_over):
            self.check_silence(self.lane.silence(now), now)

    def leave(self, reason: str) -> None:
        """Close; what is in the outbox is still sent. `reason` is for the log."""
        self.state = ConnectionState.CLOSED
        self.lane.forget_receipts()
        self.end()
        self.transport.close(reason)

    def lost(self, reason: str) -> list[Client]:
        """The transport is gone. Returns the publishers that need not wait for this client any more."""
        self.state = ConnectionState.CLOSED
        self.lane.forget_receipts()
        self.inbox.clear()
        self.end()
        if self.client is None:
            self.outbox.discard()
            return []
        released = self.broker.clients.disconnect(self.client, reason, self.transport.now())
        self.broker.finish()
        return released

    # -- what the core asks (subscriber.ClientConnection) -----------------------------------------------------------

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
        # What is in the outbox is not being read: it is given up, and the last frame does not come behind all of it.
        self.outbox.discard(self.farewell(reason, text))
        self.leave(reason)

    def unblocked(self) -> None:
        """Go on where a full outbox stopped this publisher, or where its own, empty now, has room for more."""
        if self.state is not ConnectionState.CONNECTED:
            return
        now = self.transport.now()
        self.refill(now)
        if self.blocked:
            self.unblock(now)

    # -- for the log ------------------------------------------------------------------------------------------------

    @property
    def who(self) -> str:
        return str(self.client) if self.client is not None else "(not through its handshake)"

    def note_refusal(self, code: str, text: str) -> None:
        """A request is answered with an error: counted, and logged once in a connection's life."""
        self._refused += 1
        if not self._complained:
            self._complained = True
            self.log.info("request_refused", **self._peer(), code=code, text=text)

    def note_failure(self, code: str, text: str, **details: Any) -> None:
        """The connection is closed for an error: logged, for there is only one such in a connection's life."""
        self.failed = code.lower()
        self.log.warning("connection_failed", **self._peer(), code=code, text=text, **details)

    def _peer(self) -> dict[str, Any]:
        return {"address": self.transport.address, "port": self.transport.port, "client": self.who}
