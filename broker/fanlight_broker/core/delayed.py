"""Delayed messages: accepted now, routed when they are due (core/due.py routes them).

    PUBLISH with a delay --Publishing.accept--> Delayed.add --its time comes--> Publishing.deliver
                                                   |    '-- cancel               |
                                                   '-> journal: delayed          '-> journal: delayed_done

What is accepted is kept: in the journal before it is acknowledged. The end is reported in the turn in which the message
is routed, so that a journal that is atomic by turns has the message either here or in its queues.

A journal that `reads_delayed` has the messages on the disk. Here are their times, in some 100 bytes each
(wire/due_table.pxd), and those messages that are due soon: they are read before their time, some hundred at once.
Without such a journal all of them are in memory.

Times are of the clock of `now`. Wall-clock time is what a client asks for, and what the journal keeps. The difference
of the two is looked at again only when it has changed by more than SLACK, so that messages that are due at the same
wall-clock time keep their order.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Final, Protocol

from fanlight_broker import event_log
from fanlight_broker.core.delayed_message import DelayedEntry, DelayedMessage, DelayedPublisher, DelayedPublishers
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.shares import Share, SharedPot, Shares
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.turns import Clock
from fanlight_broker.wire.due_table import DueTable
from fanlight_broker.wire.hidden import hide
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import HOLDER_BYTES, NEVER, Message

log: Final = event_log.get("delayed")

PLACE_BYTES: Final = 100  # of a delayed message besides its octets
PUBLISHER_BYTES: Final = 400  # of each publisher of some
SLACK: Final = 0.05  # seconds by which wall-clock time may drift before it is looked at again
SOON_SECONDS: Final = 2.0  # what is due within them stays in memory at once
SOON_BYTES: Final = 4 << 20  # as long as no more is in memory
READ_AT_ONCE: Final = 512  # messages
READ_BYTES: Final = 1 << 20  # of them, one message at least
RETRY_SECONDS: Final = 1.0  # after which what cannot be routed is due again
RETRIES_AT_ONCE: Final = 1_000  # and this many of them at once: the others after more seconds, in their order
LISTED_MAX: Final = 10_000  # of the first


def nbytes_of(message: Message) -> int:
    return message.nbytes + HOLDER_BYTES + PLACE_BYTES


class DelayedJournal(Protocol):
    """The part of `ports.Journal` that delayed messages need."""

    @property
    def reads_delayed(self) -> bool: ...

    def delayed(self, due: float, delayed: DelayedMessage, nbytes: int) -> int: ...
    def read_delayed(self, ids: Sequence[int], then: Callable[[Mapping[int, Message]], None]) -> None: ...
    def delayed_done(self, id: int) -> None: ...


class Delayed:
    """The messages that are not due yet, by their ids: later ones have higher ones.

    wall  seconds since 1970; None: that of `now`
    """

    def __init__(self, ledger: Ledger, limits: Limits, shares: Shares, wall: Clock | None = None) -> None:
        self.limits = limits
        self.journal: DelayedJournal = NO_JOURNAL
        self.expect: Callable[[float], None] = lambda now: None  # called with the time when one is accepted
        self.arrived: Callable[[], None] = lambda: None  # called when messages were read
        self.nbytes = 0
        self.accepted = self.delivered = self.refused = self.put_off = self.lost = self.expired = self.cancelled = 0
        self.last_id = 0
        self.table = DueTable()
        self._ledger = ledger
        self._shares = shares
        self._wall = wall
        self._ahead: float | None = None  # of `now`; None: not looked at yet
        self._publishers = DelayedPublishers()
        self._messages: dict[int, Message] = {}  # those in memory
        self._octets = 0  # of these
        self._reading = False
        self._retry_at = 0.0  # when those are due again that were put off last
        self._retries = 0  # how many these are

    def __len__(self) -> int:
        return len(self.table)

    # -- time ---------------------------------------------------------------------------------------------------------

    def ahead(self, now: float) -> float:
        """Seconds of wall-clock time minus `now`."""
        found = self._wall() - now if self._wall is not None else 0.0
        if self._ahead is None or abs(found - self._ahead) > SLACK:
            self._ahead = found
        return self._ahead

    def due_at(self, wall: float, now: float) -> float:
        """The time of `now` at a wall-clock time."""
        return wall - self.ahead(now)

    def wall_of(self, due: float) -> float:
        """The wall-clock time when it is due: the same for all with the same time, whenever the journal asks."""
        return due + (self._ahead or 0.0)

    # -- accepting ----------------------------------------------------------------------------------------------------

    def check(self, message: Message, due: float, now: float, share: Share) -> None:
        """Raises LimitExceeded if a message cannot be delayed so long, or if there is no room for it."""
        try:
            self._check(message, due - now, share)
        except LimitExceeded:
            self.refused += 1
            raise

    def _check(self, message: Message, delay: float, share: Share) -> None:
        most = self.limits.delay_seconds_max
        if delay > most:
            raise LimitExceeded(f"a delay of {delay:.0f} s", "delay_seconds_max", most)
        nbytes = nbytes_of(message)
        self._shares.check(share, SharedPot.DELAYED_MESSAGES)
        self._shares.check(share, SharedPot.DELAYED_BYTES, nbytes)
        stored = PLACE_BYTES if self.journal.reads_delayed else nbytes
        if self._ledger.stored + stored > self._ledger.stored_limit:
            raise LimitExceeded("there is no room for one more message", "stored_bytes_max", self._ledger.stored_limit)
        self._shares.check(share, SharedPot.STORED_BYTES, stored)

    def add(self, message: Message, due: float, now: float, publisher: Subscriber) -> int:
        """Keep a message that `check` has let pass until it is due. Returns its id."""
        client, session = publisher.client, publisher.session
        who = DelayedPublisher(
            publisher.share, publisher.name, publisher.protocol, session is not None,
            client.number if client is not None and session is None else None,
        )
        # A message that expires does so as long after it is due as it would have after now.
        kept = message.postponed(due - now) if message.expires_at != NEVER else message.keep()
        self.ahead(now)
        nbytes = nbytes_of(kept)
        number = self.journal.delayed(self.wall_of(due), DelayedMessage(kept, due, who), nbytes)
        self.last_id = number or self._next_id(now)
        self.accepted += 1
        self._put(self.last_id, due, nbytes, who)
        if not number or (due - now <= SOON_SECONDS and self._octets < SOON_BYTES):
            self._hold(self.last_id, kept, who.share)
        self.expect(now)
        return self.last_id

    def _next_id(self, now: float) -> int:
        # An id that a client has kept from before a restart must not be that of another message.
        return self.last_id + 1 if self.last_id else int(self.wall_of(now) * 1_000) + 1

    def restore(self, id: int, due: float, nbytes: int, publisher: DelayedPublisher, ahead: float) -> None:
        """Take in one that was accepted before a restart, and whose time was computed with this difference of the
        clocks. The journal has it.
        """
        self._ahead = ahead
        self.last_id = max(self.last_id, id)
        self._put(id, due, nbytes, publisher)

    def _put(self, id: int, due: float, nbytes: int, who: DelayedPublisher) -> None:
        number, new = self._publishers.hold(who)
        self.table.add(id, due, nbytes, number)
        self.nbytes += nbytes
        self._shares.charge(who.share, SharedPot.DELAYED_MESSAGES)
        self._shares.charge(who.share, SharedPot.DELAYED_BYTES, nbytes)
        self._keep(who.share, PLACE_BYTES + (PUBLISHER_BYTES if new else 0))

    def _hold(self, id: int, message: Message, share: Share) -> None:
        """It is in memory."""
        self._messages[id] = message
        hide(self._messages)
        self._octets += message.nbytes
        message.add_holder(self._ledger, share.account)

    def _drop(self, id: int, share: Share) -> None:
        """It is not in memory any more."""
        message = self._messages.pop(id, None)
        if message is not None:
            self._octets -= message.nbytes
            message.drop_holder(self._ledger, share.account)

    # -- delivering ---------------------------------------------------------------------------------------------------

    @property
    def first(self) -> float | None:
        """When the next one is due; None: nothing is delayed."""
        return self.table.first

    @property
    def is_here(self) -> bool:
        """Is the next one in memory?"""
        return self.table.first_id in self._messages

    def take_due(self, now: float) -> tuple[int, DelayedMessage] | None:
        """The next one that is due, by time and then by id. `done` or `try_again` follows.

        None if none is, or if it is being read: then `arrived` is called.
        """
        first = self.table.first
        if first is None or first > now:
            return None
        id = self.table.first_id
        message = self._messages.get(id)
        if message is None:
            self.read(now)
            return None
        entry = self.find(id)
        assert entry is not None
        return id, DelayedMessage(message, entry.due, entry.publisher)

    def read(self, until: float) -> None:
        """Begin to read those that are due up to this time, unless that is going on."""
        if self._reading:
            return
        ids: list[int] = []
        room = READ_BYTES
        for id in self.table.ids(READ_AT_ONCE, until):
            entry = self.table.get(id)
            if id not in self._messages and entry is not None:
                room -= entry[1]
                if room < 0 and ids:
                    break
                ids.append(id)
        self._reading = True
        self.journal.read_delayed(ids, partial(self._arrived, ids))

    def _arrived(self, ids: Sequence[int], messages: Mapping[int, Message]) -> None:
        self._reading = False
        for id in ids:
            entry, message = self.find(id), messages.get(id)
            if entry is None:
                continue  # it was cancelled meanwhile
            if message is not None:
                self._hold(id, message, entry.publisher.share)
                continue
            self.lost += 1
            log.error("delayed_unreadable", client=entry.publisher.name, id=id, advice="it is lost")
            self.done(id)
        self.arrived()

    def try_again(self, id: int, now: float) -> None:
        """It cannot be routed now: it is due again later, behind those that were put off before it."""
        self.put_off += 1
        if not self.table.late or self._retry_at <= now:
            self._retry_at, self._retries = now + RETRY_SECONDS, 0
        elif self._retries == RETRIES_AT_ONCE:
            self._retry_at, self._retries = self._retry_at + RETRY_SECONDS, 0
        self._retries += 1
        self.table.put_off(id, self._retry_at)
        entry = self.find(id)
        if self.journal.reads_delayed and self._octets > SOON_BYTES and entry is not None:
            self._drop(id, entry.publisher.share)

    def done(self, id: int) -> None:
        """It was routed, or is given up."""
        entry = self.find(id)
        assert entry is not None
        share = entry.publisher.share
        last = self._publishers.release(entry.publisher)
        self.table.discard(id)
        self.nbytes -= entry.nbytes
        self._keep(share, -PLACE_BYTES - (PUBLISHER_BYTES if last else 0))
        self._drop(id, share)
        self._shares.refund(share, SharedPot.DELAYED_BYTES, entry.nbytes)
        self._shares.refund(share, SharedPot.DELAYED_MESSAGES)
        self.journal.delayed_done(id)

    def cancel(self, id: int) -> None:
        """Its publisher does not want it to be routed any more. There is one with this id."""
        self.cancelled += 1
        self.done(id)

    def _keep(self, share: Share, octets: int) -> None:
        self._ledger.keep(octets)
        share.account.keep(octets)

    # -- looking at them ----------------------------------------------------------------------------------------------

    def find(self, id: int) -> DelayedEntry | None:
        found = self.table.get(id)
        if found is None:
            return None
        due, nbytes, number = found
        return DelayedEntry(id, due, nbytes, self._publishers[number])

    def message(self, id: int) -> Message | None:
        """None: it is not in memory."""
        return self._messages.get(id)

    def page(self, offset: int, limit: int) -> list[DelayedEntry]:
        """In the order of their times, of the first LISTED_MAX."""
        ids = self.table.ids(min(offset + limit, LISTED_MAX), inf)[offset:]
        return [entry for id in ids if (entry := self.find(id)) is not None]

    def counters(self) -> Mapping[str, int]:
        return {
            "delayed_accepted": self.accepted,
            "delayed_delivered": self.delivered,
            "delayed_cancelled": self.cancelled,
            "delayed_refused": self.refused,
            "delayed_put_off": self.put_off,
            "delayed_lost": self.lost,
        }

    def gauges(self, now: float) -> Mapping[str, float]:
        first = self.first
        return {
            "delayed_messages": len(self), "delayed_bytes": self.nbytes,
            "delayed_in_memory": len(self._messages), "delayed_overdue": self.table.late,
            "delayed_next_seconds": max(0.0, first - now) if first is not None else 0.0,
        }


COUNTERS: Final[Mapping[str, str]] = {
    "delayed_accepted": "Messages accepted for later delivery",
    "delayed_delivered": "Delayed messages that were routed",
    "delayed_cancelled": "Delayed messages that were cancelled before they were due",
    "delayed_refused": "Messages not accepted for later delivery because a limit was reached",
    "delayed_put_off": "Times a delayed message was due and had to wait: a queue refused it, or the store had no room",
    "delayed_lost": "Delayed messages that were not routed: their topic is not valid any more, or the disk lost them",
}
GAUGES: Final[Mapping[str, str]] = {
    "delayed_messages": "Delayed messages that wait for their time",
    "delayed_bytes": "Bytes of delayed messages, on the disk or in memory",
    "delayed_in_memory": "Delayed messages that are in memory; with a store, those that are due soon",
    "delayed_overdue": "Delayed messages that were due and could not be routed: they are tried again",
    "delayed_next_seconds": "Time until the next delayed message is due; 0 if there is none",
}
