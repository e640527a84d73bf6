"""Retained messages: the last message of each topic.

    name   --> id          the same words have one id, in either syntax
    filter --> ids         matchcore.NameIndex: names are indexed and a filter is asked, the mirror image of routing

A subscriber gets them through a Cursor, in slices. Topics are looked up a part at a time, the message when it is sent.
Messages set since the SUBSCRIBE are skipped: their live copies were sent to the subscriber already, and an older
message must not follow. Messages deleted or expired since then are skipped, too.

A message that exceeds a limit is delivered, counted and not retained; its topic's retained message is cleared, because
it is no longer the last. No message is removed to make room for one on another topic.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, Protocol

import numpy as np

import matchcore
from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import TOPIC_WORDS_CEILING, Limits
from fanlight_broker.core.shares import Share, SharedPot, Shares
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import (
    SYNTAXES,
    Canonical,
    canonical,
    hidden,
    matches_everything,
    reserved,
    sees_reserved,
)
from fanlight_broker.wire.hidden import hide
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import HOLDER_BYTES, NEVER, Message, Variant

AHEAD_BYTES = 64 * 1024  # unsent bytes beyond which a cursor waits: 0.25 ms of a socket's time
PART = 8_192  # topics in one index: looking up a hostile filter among long topics takes 20 ms at most
SLICE = 256  # messages in one turn of the loop
PLACES_BYTES = PART // 8 + 4 * SLICE + 256  # of a cursor's current part: a bit for each topic, and the next ids
CURSOR_BYTES = 300  # of a cursor without that, and of its place in a table
SWEPT = 1_000  # expired messages removed in one sweep, about 5 ms; the others are no longer sent
WORD_BYTES = 30  # of a word of a topic, in the index of topics
PLACE_BYTES = 32  # of a topic there, beside its words
LOOK = 16  # expired messages removed between two readings of the clock
LOOK_UP = 32  # what looking up one part counts as, in messages of a SLICE


@dataclass(slots=True)
class Entry:
    message: Message
    key: Canonical
    revision: int
    own: bool  # the broker's: not counted, not limited
    origin: str | None  # the session that published it: its no-local subscriptions do not get it
    share: Share | None  # of the principal that published it


def place_bytes(topic: bytes) -> int:
    """About what a topic takes in the index, independent of other topics, so that it can be subtracted again."""
    return PLACE_BYTES + len(topic) + WORD_BYTES * (1 + max(topic.count(b"/"), topic.count(b".")))


def nbytes_of(message: Message) -> int:
    """What a message takes while it is retained."""
    return message.nbytes + HOLDER_BYTES + place_bytes(message.topic)


class RetainedJournal(Protocol):
    """The part of `ports.Journal` that retained messages need."""

    def retained(self, message: Message, share: Share | None, origin: str | None) -> None: ...
    def cleared(self, topic: bytes, syntax: str) -> None: ...


class Retained:
    def __init__(self, ledger: Ledger, limits: Limits, shares: Shares) -> None:
        self.ledger = ledger
        self.shares = shares
        self.limits = limits
        self.journal: RetainedJournal = NO_JOURNAL
        self.nbytes = 0
        self.revision = 0  # counts the changes
        self.refused = self.expired = 0
        self._own = 0
        self._ids: dict[Canonical, int] = {}
        self._entries: list[Entry | None] = []
        self._free: list[int] = []
        self._indexes: list[matchcore.NameIndex] = []  # of PART ids each, so that no look-up takes long
        self._deadlines: Deadlines[int] = Deadlines()

    def __len__(self) -> int:
        """Those of clients; the broker's own are bounded by their names."""
        return len(self._ids) - self._own

    @property
    def index_bytes(self) -> int:
        """Bytes of the topic index."""
        return sum(index.nbytes for index in self._indexes)

    def put(
        self, message: Message, now: float, *, own: bool = False, share: Share | None = None, origin: str | None = None
    ) -> bool:
        """Set the value of a topic; clear it if the payload is empty (MQTT 5, 3.3.1.3). False if a limit refuses it.

        own     it is the broker's, on a topic that only the broker publishes: no limit of clients applies
        share   its publisher's, in which it is counted
        origin  name of its publisher's session, which may not want it back
        """
        key = canonical(message.topic, message.syntax)
        id = self._ids.get(key)
        if not message.payload:
            if id is not None:
                self._remove(id)
            return True
        if message.expired(now):
            return True
        kept = message.keep()
        old = None if id is None else self._entries[id]
        if not own and not self._has_room(kept, old, share):
            self.refused += 1
            if id is not None:
                self._remove(id)
            return False
        self.revision += 1
        entry = Entry(kept, key, self.revision, own, origin, share)
        if id is None:
            id = self._free.pop() if self._free else len(self._entries)
            if id == len(self._entries):
                self._entries.append(None)
            self._ids[key] = id
            hide(key, self._ids)
            self._index(id).insert(kept.topic, id, syntax=SYNTAXES[kept.syntax])
        elif old is not None:
            self._respell(old.message, kept, id)
            self._uncount(old)
        self._entries[id] = entry
        hide(entry, self._entries)  # nothing else refers to it: it is freed when it is removed
        self._count(entry)
        if kept.expires_at != NEVER:
            self._deadlines.set(id, kept.expires_at)
        else:
            self._deadlines.discard(id)
        if not own:
            self.journal.retained(kept, share, origin)
        return True

    def _has_room(self, new: Message, old: Entry | None, share: Share | None) -> bool:
        return self._fits(new, old) and (share is None or self._fits_share(new, old, share))

    def _fits_share(self, new: Message, old: Entry | None, share: Share) -> bool:
        mine = old if old is not None and old.share is share else None
        more = nbytes_of(new) - (nbytes_of(mine.message) if mine is not None else 0)
        wanted = {
            SharedPot.RETAINED_MESSAGES: mine is None,
            SharedPot.RETAINED_BYTES: more,
            SharedPot.STORED_BYTES: more,
        }
        return all(count <= 0 or self.shares.admits(share, pot, count) for pot, count in wanted.items())

    def _fits(self, new: Message, old: Entry | None) -> bool:
        nbytes = self.nbytes + nbytes_of(new) - (nbytes_of(old.message) if old is not None else 0)
        return (old is not None or len(self) < self.limits.retained_messages_max) \
            and nbytes <= self.limits.retained_bytes_max and self.ledger.stored <= self.ledger.stored_limit

    def _count(self, entry: Entry) -> None:
        if entry.own:
            self._own += 1
        else:
            self.nbytes += nbytes_of(entry.message)
            self._keep(entry, place_bytes(entry.message.topic))
            entry.message.add_holder(self.ledger, entry.share.account if entry.share is not None else None)
            if entry.share is not None:
                self.shares.charge(entry.share, SharedPot.RETAINED_MESSAGES)
                self.shares.charge(entry.share, SharedPot.RETAINED_BYTES, nbytes_of(entry.message))

    def _uncount(self, entry: Entry) -> None:
        if entry.own:
            self._own -= 1
        else:
            self.nbytes -= nbytes_of(entry.message)
            self._keep(entry, -place_bytes(entry.message.topic))
            entry.message.drop_holder(self.ledger, entry.share.account if entry.share is not None else None)
            if entry.share is not None:
                self.shares.refund(entry.share, SharedPot.RETAINED_BYTES, nbytes_of(entry.message))
                self.shares.refund(entry.share, SharedPot.RETAINED_MESSAGES)

    def _keep(self, entry: Entry, octets: int) -> None:
        """Count the bytes of its place in the index."""
        self.ledger.keep(octets)
        if entry.share is not None:
            entry.share.account.keep(octets)

    def _index(self, id: int) -> matchcore.NameIndex:
        if id // PART == len(self._indexes):
            self._indexes.append(matchcore.NameIndex(max_words=TOPIC_WORDS_CEILING))
        return self._indexes[id // PART]

    def _respell(self, old: Message, new: Message, id: int) -> None:
        """Keep the topic in the index in its latest syntax."""
        if old.syntax != new.syntax:
            self._index(id).remove(old.topic, id, syntax=SYNTAXES[old.syntax])
            self._index(id).insert(new.topic, id, syntax=SYNTAXES[new.syntax])

    def _remove(self, id: int) -> None:
        entry = self._entries[id]
        assert entry is not None
        self.revision += 1
        self._uncount(entry)
        self._index(id).remove(entry.message.topic, id, syntax=SYNTAXES[entry.message.syntax])
        del self._ids[entry.key]
        self._entries[id] = None
        self._free.append(id)
        self._deadlines.discard(id)
        if not entry.own:
            self.journal.cleared(entry.message.topic, SYNTAXES[entry.message.syntax])

    def get(self, topic: bytes, syntax: str, now: float) -> Message | None:
        """The value of one topic."""
        id = self._ids.get(canonical(topic, SYNTAXES.index(syntax)))
        entry = None if id is None else self._entries[id]
        return None if entry is None or entry.message.expired(now) else entry.message

    @property
    def parts(self) -> int:
        return len(self._indexes)

    def ids(self, filter: bytes, syntax: str, part: int) -> "range | array[int]":
        """The ids of the topics of one part that a filter matches; of all, and of ids not in use, for one that matches
        everything. At most PART of them: a million at once would hold the loop for 100 ms and more.
        """
        if matches_everything(filter):
            return range(part * PART, min(len(self._entries), (part + 1) * PART))
        ids = array("I")
        ids.frombytes(self._indexes[part].match_array(filter, syntax=syntax).tobytes())
        return ids

    def may_match(self, filter: bytes, syntax: str) -> bool:
        """False if a filter matches none of them. Takes time by the number of parts; a full look-up may take long."""
        return any(index.may_match(filter, syntax=syntax) for index in self._indexes)

    def entry(self, id: int) -> Entry | None:
        return self._entries[id]

    def sweep(self, now: float, over: Callable[[], bool] = lambda: False) -> None:
        """Remove expired messages, until `over`."""
        for id in self._deadlines.due(now, SWEPT):
            self.expired += 1
            self._remove(id)
            if self.expired % LOOK == 0 and over():
                break


class Cursor:
    """The retained messages for one subscription, sent as fast as its client reads.

    A client may be disconnected for a week: PLACES_BYTES at most are kept of the current part, not all ids.
    """

    __slots__ = ("_at", "_ids", "_later", "_part", "_retained", "_revision", "_syntax", "_variant", "sent",
                 "subscription")  # fmt: skip

    def __init__(self, retained: Retained, subscription: Subscription, variant: Variant) -> None:
        self.subscription = subscription
        self.sent = 0
        self._retained = retained
        self._variant = variant
        self._syntax = SYNTAXES[subscription.syntax_number]
        self._revision = retained.revision
        self._part = 0  # the next to be looked up
        self._ids: Sequence[int] = ()  # the next ones, a SLICE of them or a range
        self._at = 0
        self._later = b""  # a bit for each other id of the same part

    @property
    def done(self) -> bool:
        """Is everything sent?"""
        return self._at == len(self._ids) and not self._later and self._part == self._retained.parts

    @property
    def nbytes(self) -> int:
        """Bytes kept of the current part."""
        return getsizeof(self._ids) + getsizeof(self._later)

    @property
    def has_room(self) -> bool:
        """May more be sent now? If not, the socket must drain first, or the client acknowledge."""
        window = self.subscription.window
        assert window is not None
        if window.outbox is None:
            return False
        return window.outbox.size <= AHEAD_BYTES and len(window.queue) < SLICE and not window.queue.filled(1)

    def advance(self, now: float, most: int = SLICE, over: Callable[[], bool] = lambda: False) -> int:
        """Send messages while there is room. Returns how much of `most` was used; skipped messages count.

        The turn may be `over` before: then it is all of it.
        """
        subscription, retained = self.subscription, self._retained
        looked_at = 0
        while looked_at < most and not self.done and self.has_room:
            if looked_at and over():
                return most
            if self._at == len(self._ids):
                looked_at += self._look_up()
                continue
            entry = retained.entry(self._ids[self._at])
            self._at += 1
            looked_at += 1
            if entry is not None and entry.revision <= self._revision and self._wanted(entry, now):
                subscription.send(entry.message, self._variant, now)
                self.sent += 1
        return looked_at

    def _look_up(self) -> int:
        """Look up the next ids. Returns what that counts as, in messages."""
        self._at = 0
        if self._later:
            self._split(np.flatnonzero(np.unpackbits(np.frombuffer(self._later, np.uint8))))
            return 1
        found = self._retained.ids(self.subscription.filter, self._syntax, self._part)
        self._part += 1
        if isinstance(found, range) or len(found) <= SLICE:
            self._ids = found
        else:
            self._split(np.frombuffer(found, np.uint32) % PART)
        return LOOK_UP

    def _split(self, places: "np.ndarray[Any, Any]") -> None:
        """Ids of the part that was looked up last, counted from its first."""
        ids = array("I")
        ids.frombytes((places[:SLICE] + (self._part - 1) * PART).astype(np.uint32).tobytes())
        bits = np.zeros(PART, bool)
        bits[places[SLICE:]] = True
        self._ids, self._later = ids, np.packbits(bits).tobytes() if len(places) > SLICE else b""

    def _wanted(self, entry: Entry, now: float) -> bool:
        message, subscription = entry.message, self.subscription
        if message.expired(now):
            return False
        session = subscription.owner.session
        if subscription.no_echo and session is not None and entry.origin == session.name:
            return False  # retained or not, it is the client's own [MQTT-3.8.3-3]
        syntax = SYNTAXES[message.syntax]
        if matches_everything(subscription.filter) and hidden(message.topic, self._syntax):
            return False
        return not reserved(message.topic, syntax) or sees_reserved(
            subscription.filter, self._syntax, message.topic, syntax
        )

