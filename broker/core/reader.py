"""Reading: what a connection does with the bytes that come, in their order, and no more in a turn than is fair.

    receive() --> lane.advance() --.-- NEED_MORE -> wait for the next read
         ^                         |-- FRAME     -> handle: decode, check against the state, act, answer --.
         |                         |-- PUBLISH   -> publish: find the route, lane.forward() ---------------|
         |                         '-- BLOCKED   -> stop reading until the blocker has drained             |
         '-------------------------------------------------------------------------------------------------'

The base of each protocol's connection, which says what a frame means. A transport that is compiled advances the lane
itself as long as the lane is `ready`, and comes here with the event that needs Python.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from broker.core.errors import FanlightError, LimitExceeded
from broker.core.ports import WireConnection
from broker.wire.lane import BLOCKED, FRAME, NEED_MORE, NO_ROOM, PUBLISH, TURN_OVER, Lane

if TYPE_CHECKING:
    from broker.core.broker import Broker
    from broker.core.client import Client

FIRST_BYTES: Final = 24  # of a connection: they tell its protocol, and the version
ENOUGH_BYTES: Final = 8  # to tell the protocol; the first frame of each protocol here is at least as long


class Reader(ABC):
    """The protocol side of one connection.

    receive(now)       after bytes have been put into `inbox`
    take(event, now)   the same, when the transport has advanced the lane up to this event
    authenticated(..)  when the credentials it passed to `wire.authenticate` have been checked
    lost(reason)       when the transport is gone
    """

    def __init__(self, broker: "Broker", wire: WireConnection, now: float, lane: Lane) -> None:
        self.broker = broker
        self.wire = wire
        self.lane = lane
        self.inbox = lane.inbox
        self.outbox = lane.outbox
        self.client: Client | None = None
        self.blocked = False
        self.turn_over = False  # the rest of the inbox is for the next turn
        self.refused = 0  # requests answered with an error
        self.met = False  # the first bytes have been checked
        self.failed: str | None = None  # the reason it was closed for, if it broke the protocol
        lane.hear(now)
        self._complained = False

    @property
    def things(self) -> tuple[object, ...]:
        """What it is made of and lasts as long, of what the garbage collector looks at (wire/hidden.pxd)."""
        return self, self.lane, self.inbox

    # -- the protocol's ---------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Is it over? What still comes is thrown away."""

    @property
    @abstractmethod
    def waiting(self) -> bool:
        """Are its credentials being checked? What comes meanwhile is kept."""

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
    def leave(self, reason: str) -> None:
        """Close without an error of its own; what is in the outbox is still sent."""

    @abstractmethod
    def fail(self, error: FanlightError) -> None:
        """Tell the peer what was wrong, and close."""

    def works_on(self) -> bool:
        """Do a turn's share of a frame that takes more than one. True if there is more of it to do."""
        return False

    def wait_for_room(self, now: float) -> None:
        """The PUBLISH at hand waits, and nothing is read, until a queue has room for it."""
        raise NotImplementedError(f"{type(self).__name__} does not let its publishers wait for a queue")

    def settle(self, now: float) -> bool:
        """All that came has been looked at. False if Python is to be asked again at the next read, whatever comes."""
        return True

    # -- the loop ---------------------------------------------------------------------------------------------------

    def receive(self, now: float) -> None:
        """Process what is in the inbox, as far as it goes."""
        if not self.met:
            self._meet()
        if not self.closed and (self.blocked or self.turn_over or self.waiting):
            # Reading is paused, but a transport may have had something in hand: it waits behind what came before.
            self.inbox.pause()
        else:
            self.take(None, now)

    def _meet(self) -> None:
        """Check that the client speaks this protocol at all: an error about its first frame would not say so."""
        first = self.inbox.first(FIRST_BYTES)
        self.met = len(first) >= ENOUGH_BYTES
        answer = self.wire.wrong_protocol(first)
        if answer is not None:
            self.met = True
            self.failed = "wrong_protocol"
            if answer:
                self.outbox.write(answer)
            self.leave("closed by the broker: wrong_protocol")

    def take(self, event: int | None, now: float) -> None:
        """Go on from an event of the lane's; None: from where it stands."""
        begun, dry = False, False  # one decision is made, however late it is: there is an end to everything
        try:
            while not (self.closed or self.waiting):
                if event is None:
                    if (begun and self.broker.turns.over()) or self.works_on():
                        self._put_off()
                        break
                    event = self.lane.advance(now)
                begun = True
                if event == NEED_MORE:
                    dry = True
                    break
                if event == TURN_OVER:
                    self._put_off()
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
            dry = self.settle(now) and dry
        except FanlightError as error:
            self.fail(error)
        if self.closed:
            self.inbox.clear()
        self.lane.ready = dry and not (self.closed or self.waiting)
        self.broker.finish()

    def _put_off(self) -> None:
        """The rest is for a later turn."""
        self.turn_over = True
        self.inbox.pause()
        self.wire.next_turn(self._next_turn)

    def _next_turn(self) -> None:
        self.turn_over = False
        if not (self.closed or self.waiting):
            now = self.wire.now()
            self.lane.hear(now)  # the silence so far was ours: we did not read
            self.resume(now)

    def resume(self, now: float) -> None:
        """Go on with what is in the inbox."""
        self.inbox.resume()
        self.take(None, now)

    def unblock(self, now: float) -> None:
        """The outbox that held it back has drained."""
        self.blocked = False
        self.lane.hear(now)  # the silence so far was ours: we did not read
        self.wire.resume_reading()
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
        self.wire.pause_reading()
        if blocker is None:
            self.wait_for_room(now)
            return
        self.broker.flow.hold(self.client, blocker, now)

    # -- for the log ------------------------------------------------------------------------------------------------

    @property
    def who(self) -> str:
        return str(self.client) if self.client is not None else "(not through its handshake)"

    def complains(self) -> bool:
        """Count a request that is refused. True the first time in a connection's life: the log hears of that one."""
        self.refused += 1
        first, self._complained = not self._complained, True
        return first
