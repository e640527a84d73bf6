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
from functools import partial
from sys import getsizeof
from typing import TYPE_CHECKING, Protocol

import matchcore
from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.core.limits import TOPIC_WORDS_CEILING, Limits
from fanlight_broker.core.shares import NUMBERS, Share, SharedPot, Shares, percent_of
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import (
    CANONICAL,
    SYNTAXES,
    canonical,
    hidden,
    matches_everything,
    reserved,
    sees_reserved,
)
from fanlight_broker.wire.hidden import hide
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import HOLDER_BYTES, NEVER, Message, Variant
from fanlight_broker.wire.places import split_ids, take_ids
from fanlight_broker.wire.retained import TOPICS_IN_PART as PART
from fanlight_broker.wire.retained import RetainedEntry, RetainedTable, place_bytes, sums_of

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition, StoredSelector

SLICE = 256  # messages in one turn of the loop
PLACES_BYTES = PART // 8 + 4 * SLICE + 256  # of a cursor's current part: a bit for each topic, and the next ids
CURSOR_BYTES = 300  # of a cursor without that, and of its place in a table
SWEPT = 1_000  # expired messages removed in one sweep, about 5 ms; the others are no longer sent
LOOK = 16  # messages sent, or expired ones removed, between two readings of the clock
LOOK_SCREENED = 4  # the same where a selector is asked: 64 KiB of body take up to 0.4 ms
LOOK_UP = 32  # what looking up one part counts as, in messages of a SLICE
SKIPPED = 8  # parts that have not all words of a filter: what counts as one message


def nbytes_of(message: Message) -> int:
    """What a message takes while it is retained."""
    return message.nbytes + HOLDER_BYTES + place_bytes(message)


Found = tuple[Message, Share | None, str | None]  # with the share of its publisher, and the name of its session


class RetainedJournal(Protocol):
    """The part of `ports.Journal` that retained messages need."""

    def retained(self, message: Message, share: Share | None, origin: str | None) -> None: ...
    def cleared(self, topic: bytes, syntax: str) -> None: ...


class Retained(RetainedTable):
    """Messages that no limit refuses are set by `RetainedTable.set`; all else is here."""

    journal: RetainedJournal | None
    indexes: list[matchcore.NameIndex]

    def __init__(
        self, ledger: Ledger, limits: Limits, shares: Shares,
        selector_of: "Callable[[Condition], StoredSelector] | None" = None,
        may_read: Callable[[Subscription, bytes, int], bool] = lambda subscription, topic, syntax: False,
    ) -> None:
        """may_read: may the owner of a partly allowed subscription have what is published on a topic?"""
        self.may_read = may_read
        self.shares = shares
        self._selector_of = selector_of
        self.limits = limits
        self.refused = self.expired = 0
        self.spell_with(SYNTAXES, CANONICAL, canonical)
        self._deadlines: Deadlines[int] = Deadlines()

    @property
    def limits(self) -> Limits:
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._limits = limits
        self.bound(
            limits.retains, limits.retained_messages_max, limits.retained_bytes_max,
            percent_of(limits, SharedPot.RETAINED_BYTES), percent_of(limits, SharedPot.STORED_BYTES),
            NUMBERS[SharedPot.RETAINED_MESSAGES],
        )

    def __len__(self) -> int:
        """Those of clients; the broker's own are bounded by their names."""
        return len(self.by_key) - self.own

    @property
    def index_bytes(self) -> int:
        """Bytes of the topic index."""
        return sum(index.nbytes for index in self.indexes)

    def put(
        self, message: Message, now: float, *, own: bool = False, share: Share | None = None, origin: str | None = None
    ) -> bool:
        """Set the value of a topic; clear it if the payload is empty (MQTT 5, 3.3.1.3). False if a limit refuses it.

        own     it is the broker's, on a topic that only the broker publishes: no limit of clients applies
        share   its publisher's, in which it is counted
        origin  name of its publisher's session, which may not want it back
        """
        key = canonical(message.topic, message.syntax)
        id = self.by_key.get(key)
        if not message.payload:
            if id is not None:
                self._remove(id)
            return True
        if message.expired(now):
            return True
        kept = message.keep()
        old = None if id is None else self.entries[id]
        if not own and not self._has_room(kept, old, share):
            self.refused += 1
            if id is not None:
                self._remove(id)
            return False
        self.revision += 1
        if id is None:
            id = self.free.pop() if self.free else len(self.entries)
            if id == len(self.entries):
                self.entries.append(None)
            self.by_key[key] = id
            hide(key, self.by_key)
            self._index(id).insert(kept.topic, id, syntax=SYNTAXES[kept.syntax])
        elif old is not None:
            self._respell(old.message, kept, id)
            self._uncount(old)
        entry = RetainedEntry(kept, key, id, own, origin, share)
        entry.revision = self.revision
        if old is not None:
            entry.deadline = old.deadline
            old.end()
        self.entries[id] = entry
        hide(self.entries)
        self._count(entry)
        if kept.expires_at < entry.deadline:
            self.schedule(entry)
        if not own and self.journal is not None:
            self.journal.retained(kept, share, origin)
        return True

    def restore(self, found: list[Found], now: float) -> list[Message]:
        """Set messages from before a restart, with share and origin. Returns those that a limit refuses, or the time.

        Each is on another topic. Where all of them have room together, none is looked at by itself.
        """
        lasting = [each for each in found if not each[0].expired(now)]
        refused = [message for message, _, _ in found if message.expired(now)] if len(lasting) < len(found) else []
        keys = [
            message.topic if message.syntax == CANONICAL else canonical(message.topic, message.syntax)
            for message, _, _ in lasting
        ]
        sums = sums_of(lasting)
        if self.free or not self.by_key.keys().isdisjoint(keys) or not self._have_room(sums):
            return refused + [
                message for message, share, origin in lasting
                if not self.put(message, now, share=share, origin=origin)
            ]
        first = len(self.entries)
        for entry in self.extend(lasting, keys, self.by_key):
            self.schedule(entry)
        self._index_all(first, [message for message, _, _ in lasting])
        hide(self.by_key, self.entries)
        for share, (count, nbytes, places) in sums.items():
            self.ledger.retained += nbytes
            self.ledger.keep(places)
            if share is not None:
                share.account.retain(nbytes)
                share.account.keep(places)
                self.shares.charge(share, SharedPot.RETAINED_MESSAGES, count)
        return refused

    def _index_all(self, first: int, messages: list[Message]) -> None:
        """Index messages whose ids are the `first` one and those behind it."""
        at = 0
        while at < len(messages):
            id = first + at
            part = PART - id % PART  # as many as this part has room for
            insert = self._index(id).insert
            for each, message in enumerate(messages[at : at + part], id):
                insert(message.topic, each, syntax=SYNTAXES[message.syntax])
            at += part

    def _have_room(self, sums: dict[Share | None, tuple[int, int, int]]) -> bool:
        """Would each of these messages have room if they came one after the other?"""
        total, nbytes = (sum(each[at] for each in sums.values()) for at in (0, 1))
        limits, ledger = self.limits, self.ledger
        return len(self) + total <= limits.retained_messages_max \
            and self.nbytes + nbytes <= limits.retained_bytes_max and ledger.stored + nbytes <= ledger.stored_limit \
            and all(
                share is None or (not share.holders and (
                    self.shares.fits(share, SharedPot.RETAINED_MESSAGES, count, count - total)
                    and self.shares.fits(share, SharedPot.RETAINED_BYTES, octets, octets - nbytes)
                    and self.shares.fits(share, SharedPot.STORED_BYTES, octets, octets - nbytes)
                )) for share, (count, octets, _) in sums.items()
            )

    def schedule(self, entry: RetainedEntry) -> None:
        """Look at an entry when its message expires. A later message may have more time: see `sweep`."""
        entry.deadline = entry.message.expires_at
        self._deadlines.set(entry.id, entry.deadline)

    def _has_room(self, new: Message, old: RetainedEntry | None, share: Share | None) -> bool:
        return self._fits(new, old) and (share is None or self._fits_share(new, old, share))

    def _fits_share(self, new: Message, old: RetainedEntry | None, share: Share) -> bool:
        return all(self._fits_part(new, old, part) for part in share.parts)

    def _fits_part(self, new: Message, old: RetainedEntry | None, share: Share) -> bool:
        mine = old if old is not None and old.share is not None and share in old.share.parts else None
        more = nbytes_of(new) - (nbytes_of(mine.message) if mine is not None else 0)
        wanted = {
            SharedPot.RETAINED_MESSAGES: mine is None,
            SharedPot.RETAINED_BYTES: more,
            SharedPot.STORED_BYTES: more,
        }
        return all(count <= 0 or self.shares.admits(share, pot, count) for pot, count in wanted.items())

    def _fits(self, new: Message, old: RetainedEntry | None) -> bool:
        nbytes = self.nbytes + nbytes_of(new) - (nbytes_of(old.message) if old is not None else 0)
        return (old is not None or len(self) < self.limits.retained_messages_max) \
            and nbytes <= self.limits.retained_bytes_max and self.ledger.stored <= self.ledger.stored_limit

    def _count(self, entry: RetainedEntry) -> None:
        if entry.own:
            self.own += 1
        else:
            self._add(entry, nbytes_of(entry.message))
            self._keep(entry, place_bytes(entry.message))
            entry.message.add_holder(self.ledger, entry.share.account if entry.share is not None else None)
            if entry.share is not None:
                self.shares.charge(entry.share, SharedPot.RETAINED_MESSAGES)

    def _uncount(self, entry: RetainedEntry) -> None:
        if entry.own:
            self.own -= 1
        else:
            self._add(entry, -nbytes_of(entry.message))
            self._keep(entry, -place_bytes(entry.message))
            entry.message.drop_holder(self.ledger, entry.share.account if entry.share is not None else None)
            if entry.share is not None:
                self.shares.refund(entry.share, SharedPot.RETAINED_MESSAGES)

    def _add(self, entry: RetainedEntry, octets: int) -> None:
        self.ledger.retained += octets
        if entry.account is not None:
            entry.account.retain(octets)

    def _keep(self, entry: RetainedEntry, octets: int) -> None:
        """Count the bytes of its place in the index."""
        self.ledger.keep(octets)
        if entry.share is not None:
            entry.share.account.keep(octets)

    def _index(self, id: int) -> matchcore.NameIndex:
        if id // PART == len(self.indexes):
            self.indexes.append(matchcore.NameIndex(max_words=TOPIC_WORDS_CEILING))
        return self.indexes[id // PART]

    def _respell(self, old: Message, new: Message, id: int) -> None:
        """Keep the topic in the index in its latest syntax."""
        if old.syntax != new.syntax:
            self._index(id).remove(old.topic, id, syntax=SYNTAXES[old.syntax])
            self._index(id).insert(new.topic, id, syntax=SYNTAXES[new.syntax])

    def _remove(self, id: int) -> None:
        entry = self.entries[id]
        assert entry is not None
        self.revision += 1
        self._uncount(entry)
        self._index(id).remove(entry.message.topic, id, syntax=SYNTAXES[entry.message.syntax])
        del self.by_key[entry.key]
        self.entries[id] = None
        self.free.append(id)
        self._deadlines.discard(id)
        message = entry.message
        entry.end()
        if not entry.own and self.journal is not None:
            self.journal.cleared(message.topic, SYNTAXES[message.syntax])

    def get(self, topic: bytes, syntax: str, now: float) -> Message | None:
        """The value of one topic."""
        entry = self.find(topic, syntax, now)
        return None if entry is None else entry.message

    def find(self, topic: bytes, syntax: str, now: float) -> RetainedEntry | None:
        """The entry of one topic that has a value."""
        id = self.by_key.get(canonical(topic, SYNTAXES.index(syntax)))
        entry = None if id is None else self.entries[id]
        return None if entry is None or entry.message.expired(now) else entry

    def clear(self, entry: RetainedEntry) -> bool:
        """Clear the value of a topic. False if it is another one's by now."""
        if entry.id >= len(self.entries) or self.entries[entry.id] is not entry:
            return False
        self._remove(entry.id)
        return True

    def wanted_by(self, condition: "Condition | None") -> Callable[[Message], bool] | None:
        """Is a selector true of a message? Valid for this turn. None: there is no selector."""
        if condition is None:
            return None
        assert self._selector_of is not None
        return self._selector_of(condition).is_true_of

    @property
    def parts(self) -> int:
        return len(self.indexes)

    def ids(self, filter: bytes, syntax: str, part: int) -> "range | array[int]":
        """The ids of the topics of one part that a filter matches; of all, and of ids not in use, for one that matches
        everything. At most PART of them: a million at once would hold the loop for 100 ms and more.
        """
        if matches_everything(filter):
            return range(part * PART, min(len(self.entries), (part + 1) * PART))
        return self.indexes[part].match_array(filter, syntax=syntax)

    def may_match(self, filter: bytes, syntax: str, part: int) -> bool:
        """False if a filter matches nothing in this part. A full look-up may take long."""
        return self.indexes[part].may_match(filter, syntax=syntax)

    @property
    def places(self) -> int:
        """Ids are below this number; not all are in use."""
        return len(self.entries)

    def entry(self, id: int) -> RetainedEntry | None:
        return self.entries[id]

    def sweep(self, now: float, over: Callable[[], bool] = lambda: False) -> None:
        """Remove expired messages, until `over`."""
        for looked_at, id in enumerate(self._deadlines.due(now, SWEPT), 1):
            entry = self.entries[id]
            assert entry is not None
            if entry.message.expired(now):
                self.expired += 1
                self._remove(id)
            elif entry.message.expires_at == NEVER:
                entry.deadline = NEVER
            else:
                self.schedule(entry)
            if looked_at % LOOK == 0 and over():
                break


def shown_to(filter: bytes, syntax: str, message: Message, now: float) -> bool:
    """Is a message that a filter matches one for its subscriber? Not if it has expired, or its topic is hidden."""
    if message.expired(now) or (matches_everything(filter) and hidden(message.topic, syntax)):
        return False
    its_syntax = SYNTAXES[message.syntax]
    return not reserved(message.topic, its_syntax) or sees_reserved(filter, syntax, message.topic, its_syntax)


class Cursor:
    """The retained messages for one subscription, sent as fast as its client reads.

    A client may be disconnected for a week: PLACES_BYTES at most are kept of the current part, not all ids.
    """

    __slots__ = ("_at", "_ids", "_later", "_origin", "_part", "_retained", "_revision", "_syntax", "_variant", "sent",
                 "subscription")  # fmt: skip

    def __init__(
        self, retained: Retained, subscription: Subscription, variant: Variant, part: int, ids: Sequence[int] = ()
    ) -> None:
        """`part` is the first to be looked up, behind the `ids`."""
        session = subscription.owner.session
        self.subscription = subscription
        self.sent = 0
        self._retained = retained
        self._variant = variant
        self._syntax = SYNTAXES[subscription.syntax_number]
        self._revision = retained.revision
        self._part = part  # the next to be looked up
        self._ids = ids  # the next ones, a SLICE of them or a range
        # Retained or not, it is the client's own [MQTT-3.8.3-3].
        self._origin: str | None = session.name if subscription.no_echo and session is not None else None
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
        return self._retained.has_room(self.subscription)

    def advance(self, now: float, most: int = SLICE, over: Callable[[], bool] = lambda: False) -> int:
        """Send messages while there is room. Returns how much of `most` was used; skipped messages count.

        The turn may be `over` before: then it is all of it.
        """
        subscription, retained = self.subscription, self._retained
        is_wanted = retained.wanted_by(subscription.condition)
        is_shown = partial(self._is_shown, now=now, is_wanted=is_wanted)
        step = LOOK if is_wanted is None else LOOK_SCREENED
        looked_at = 0
        while looked_at < most and not self.done and self.has_room:
            if looked_at and over():
                return most
            if self._at == len(self._ids):
                looked_at += self._look_up()
                continue
            begun = self._at
            self._at, sent = retained.send(
                self._ids, begun, min(begun + min(step, most - looked_at), len(self._ids)), subscription, self._variant,
                now, self._revision, self._origin, is_shown, is_wanted is not None or bool(subscription.partly),
            )
            looked_at += self._at - begun
            self.sent += sent
        return looked_at

    def _is_shown(self, message: Message, now: float, is_wanted: Callable[[Message], bool] | None) -> bool:
        subscription = self.subscription
        return shown_to(subscription.filter, self._syntax, message, now) and (
            is_wanted is None or is_wanted(message)
        ) and (not subscription.partly or self._retained.may_read(subscription, message.topic, message.syntax))

    def _look_up(self) -> int:
        """Look up the next ids. Returns what that counts as, in messages."""
        self._at = 0
        if self._later:
            self._ids, self._later = take_ids(self._later, (self._part - 1) * PART, SLICE)
            return 1
        filter, retained, begun = self.subscription.filter, self._retained, self._part
        while self._part < retained.parts and not retained.may_match(filter, self._syntax, self._part):
            self._part += 1
        skipped = (self._part - begun) // SKIPPED
        if self._part == retained.parts:
            self._ids = ()
            return skipped
        found = retained.ids(filter, self._syntax, self._part)
        self._part += 1
        if isinstance(found, range):
            self._ids = found
        else:
            self._ids, self._later = split_ids(found, (self._part - 1) * PART, SLICE, PART)
        return skipped + LOOK_UP
