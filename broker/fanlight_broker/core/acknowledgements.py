"""Acknowledgements that wait until what they promise is stored, and the publishers held back when too many do.

    message --fan out--> tap of the archive      Recorder.taken
                     '-> queues, retained ...    JournalPosition.appended
                             |
    acknowledgement --> wire.Receipts --both have come so far--> sent, in the order of its connection

One ring and one gate for the archive and the store; a listener with a durability of its own has a ring of its own, too.
The gate is closed while one of the two has no room, or while too many acknowledgements wait; it holds back publishers
whose message is for one of the two, until both have room. A store that refuses (its disk is full or broken) holds
nobody back: such a publisher is refused, by the means of its protocol.
"""

from collections.abc import Callable
from typing import Final

from fanlight_broker.core.errors import StoreUnavailable
from fanlight_broker.core.flow import Flow
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import StoreDurability
from fanlight_broker.core.ports import Journal, Recorder
from fanlight_broker.core.recorder import NO_RECORDER
from fanlight_broker.wire.journal import JournalPosition
from fanlight_broker.wire.lane import Lane
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.receipts import Receipts, Receiver
from fanlight_broker.wire.route import Route

WAITING_MAX: Final = 100_000  # acknowledgements: some 100 bytes each


class Acknowledgements:
    """Recorder and journal may be replaced before the first connection."""

    def __init__(self, flow: Flow) -> None:
        self.recorder: Recorder = NO_RECORDER
        self.position: JournalPosition = NO_JOURNAL.position
        self.receipts = Receipts(WAITING_MAX, None, self.position)
        self._rings: dict[StoreDurability | None, Receipts] = {None: self.receipts}
        self.held_back = 0  # times that the gate was closed
        self._flow = flow
        # The outbox of no connection, in a ledger of its own: publishers wait for it.
        self._gate = Outbox(Ledger(1, lambda: None), 1, "pause")

    def record_to(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.receipts.recording, self.receipts.begun = recorder.awaited, recorder.hurry

    def journal_to(self, journal: Journal) -> None:
        self.position = self.receipts.position = journal.position
        self.receipts.journaling = True

    def for_lanes(self, durability: StoreDurability | None = None) -> Receipts | None:
        """The ring for what is to be as durable as this, or as the broker promises; None if nothing ever waits."""
        if not self.receipts.recording and not self.receipts.journaling:
            return None
        ring = self._rings.get(durability)
        if ring is None:
            ring = self._rings[durability] = Receipts(WAITING_MAX, self.receipts.begun, self.position, durability)
            ring.recording, ring.journaling = self.receipts.recording, self.receipts.journaling
            ring.closed = self.closed
        return ring

    @property
    def waiting(self) -> int:
        """Acknowledgements that wait."""
        return sum(ring.count for ring in self._rings.values())

    @property
    def closed(self) -> bool:
        """Are publishers held back?"""
        return self.receipts.closed

    def _close(self, closed: bool) -> None:
        for ring in self._rings.values():
            ring.closed = closed

    def _ring(self, receiver: Receiver | None) -> Receipts:
        own = receiver.receipts if isinstance(receiver, Lane) else None
        return self.receipts if own is None else own

    # -- one acknowledgement ------------------------------------------------------------------------------------------

    def commit(
        self, then: Callable[[], None], receiver: Receiver | None = None, *, recorded: bool = True,
        since: int | None = None,
    ) -> None:
        """Call `then`, an acknowledgement, when all that was accepted until now is stored: now or later, in order.

        receiver  a lane whose other acknowledgements wait behind this one, and it behind those
        recorded  False: what it acknowledges is not for the recorder
        since     where the journal was before what it acknowledges: if it is not further, it is not waited for
        """
        taken = self.recorder.taken if recorded else 0
        journaled = 0 if self.position.appended == since else self.position.appended
        self._ring(receiver).call(then, taken, receiver, journaled)

    def stored(self, since: int, receiver: Receiver) -> bool:
        """Is all as durable as it was to be, for this lane, that the journal got since it was at this position?"""
        appended = self.position.appended
        return appended == since or self._ring(receiver).reaches(appended)

    # -- room ---------------------------------------------------------------------------------------------------------

    def blocker(self, message: Message, route: Route, *, waits: bool) -> Outbox | None:
        """The outbox that the publisher of a message must wait for; None if there is room.

        waits  its acknowledgement would have to wait. Raises StoreUnavailable if that would be in vain
        """
        position = self.position
        if (position.full or position.refusing or self.closed) and self.stores(message, route) \
                and self._must_wait(waits):
            return self.close_gate()
        if waits and (self._full or not self.recorder.has_room(route)):
            return self.close_gate()
        return None

    def blocker_of_stored(self, *, waits: bool) -> Outbox | None:
        """The same for a message that is for the store whatever its route is, and not for the recorder now."""
        position = self.position
        stored = self.receipts.journaling and (position.full or position.refusing or self.closed)
        return self.close_gate() if (stored and self._must_wait(waits)) or (waits and self._full) else None

    def _must_wait(self, waits: bool) -> bool:
        """Of a message for the store, while that has no room: must its publisher wait? Raises StoreUnavailable."""
        if self.position.refusing:
            if waits:
                raise StoreUnavailable
            return False
        return self.position.full or waits

    def stores(self, message: Message, route: Route) -> bool:
        """Is a message on this route for the store?"""
        return self.receipts.journaling and (message.retain or route.stores(message.qos))

    def crowded(self) -> Outbox | None:
        """The outbox that clients must wait for whose acknowledgements wait already; None if more may wait."""
        return self.close_gate() if self._full else None

    @property
    def _full(self) -> bool:
        return any(ring.full for ring in self._rings.values())

    def close_gate(self) -> Outbox:
        """Hold publishers back until there is room again."""
        if not self._gate.pausing:
            self.held_back += 1
            self._gate.hold_publishers()
            self._close(True)
            self.recorder.make_room()
        return self._gate

    def release(self, now: float, recorded: int = 0) -> None:
        """The recorder has come so far, or the journal is further: send what waited, let publishers go on."""
        self._flow.ledger.now = now
        try:
            for ring in self._rings.values():
                ring.release(recorded)
        finally:
            self._open_gate(now)

    def _open_gate(self, now: float) -> None:
        """Let held-back publishers continue once half of the room is free."""
        if not self._gate.pausing or 2 * self.waiting > self.receipts.most or not self.recorder.roomy:
            return
        if self.position.full and not self.position.refusing:
            return
        self._close(False)
        self._gate.drained()
        self._flow.go_on(self._gate, now)
