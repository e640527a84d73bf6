"""Marks: deduplication. The progress of each producer, so that a message published again is accepted once.

    (user, producer) -> (batch, sequence)    the highest accepted, in the order in which they advanced

A message whose mark is not above its producer's is a duplicate. A mark belongs to the authenticated user, so that no
other user can advance it. Where user names prove nothing, knowing a producer's name is enough: therefore a producer
that a connected client uses belongs to that client. A client of another address is refused, and one of the same user or
address may not advance the mark far at once (`marks_jump_max`). docs/native-protocol.md, 3.8, has the remaining risks.

Bounded: past `marks_max`, or a principal's share of it, the principal's least recently used producer is removed, and
its duplicates are accepted. The recorder keeps marks together with messages (`ports.Recorder.note`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.core.journal import NO_JOURNAL
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.shares import Share, SharedPot, Shares, principal_of
from fanlight_broker.core.subscriber import Client
from fanlight_broker.wire.hidden import hide


class Mark(NamedTuple):
    """Identifies a message of a producer."""

    user: str  # as authenticated; "" if anonymous; with its namespace, if it is in one (`mark_user`)
    producer: str
    batch: int
    sequence: int


def mark_user(namespace: str, user: str) -> str:
    """The `user` of a mark: another one in each namespace, whatever users are called."""
    if namespace:
        return f"\0{namespace}\0{user}"
    return f"\0\0{user}" if user.startswith("\0") else user


def owner_of(mark: Mark) -> tuple[str, str]:
    """(namespace, user) of a mark."""
    if not mark.user.startswith("\0"):
        return "", mark.user
    namespace, _, user = mark.user[1:].partition("\0")
    return namespace, user


class ProducerProgress(NamedTuple):
    """The progress of a producer."""

    place: tuple[int, int]  # batch and sequence
    share: Share  # of the principal that advanced it last
    connection: int | None  # that did so; None: restored from the store


class MarksJournal(Protocol):
    """The part of `ports.Journal` that marks need."""

    def marked(self, mark: Mark) -> None: ...


class Marks:
    """connected  is a connection of this number open?"""

    def __init__(self, limits: Limits, shares: Shares, connected: Callable[[int], bool]) -> None:
        self.limits = limits
        self.shares = shares
        self.journal: MarksJournal = NO_JOURNAL
        self.repeated = 0  # duplicates that were dropped
        self.refused = 0  # messages refused because another client uses their producer
        self.forgotten = 0  # producers
        self._connected = connected
        self._known: dict[tuple[str, str], ProducerProgress] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Mark]:
        """The least recently used first."""
        return (Mark(*key, *progress.place) for key, progress in self._known.items())

    def producers(self) -> list[tuple[str, str]]:
        """Users and producers, the least recently used first: for `find`, while marks advance."""
        return list(self._known)

    def find(self, producer: tuple[str, str]) -> Mark | None:
        """How far a user's producer is now; None: it is not known any more."""
        found = self._known.get(producer)
        return Mark(*producer, *found.place) if found is not None else None

    def check(self, mark: Mark, client: Client) -> None:
        """Raises NotPermitted if another connected client uses the producer of this mark."""
        found = self._known.get(mark[:2])
        if found is None or found.connection is None or found.connection == client.number:
            return
        if not self._connected(found.connection):
            return
        user = f"the producer {mark.producer!r} is in use by connection {found.connection} of {found.share.principal}"
        if found.share.root is not client.subscriber.share.root:
            self.refused += 1
            raise NotPermitted(f"{user}; choose another name, or wait until that connection is closed")
        batch, sequence = found.place
        jump = mark.batch - batch if mark.batch != batch else mark.sequence - sequence
        if jump > self.limits.marks_jump_max:
            self.refused += 1
            raise NotPermitted(
                f"{user}, which is at batch {batch}, sequence {sequence}; another connection may move it by at most "
                f"{self.limits.marks_jump_max} (marks_jump_max)"
            )

    def repeats(self, mark: Mark) -> bool:
        """Was this mark, or a higher one of its producer, accepted before? Counted if so."""
        found = self._known.get(mark[:2])
        if found is None or mark[2:] > found.place:
            return False
        self.repeated += 1
        return True

    def advance(self, mark: Mark, client: Client) -> None:
        """A client's message with this mark was accepted."""
        self._move_up(mark, client.subscriber.share, client.number)
        self.journal.marked(mark)

    def restore(self, marks: Iterable[Mark]) -> None:
        """Restore stored marks, in their order. They belong to their users until a client advances them."""
        for mark in marks:
            found = self._known.get(mark[:2])
            namespace, user = owner_of(mark)
            share = found.share if found is not None else self.shares.of(
                principal_of(user, "", verified=True, namespace=namespace)
            )
            self._move_up(mark, share, found.connection if found is not None else None)

    def _move_up(self, mark: Mark, share: Share, connection: int | None) -> None:
        key, place = mark[:2], mark[2:]
        found = self._known.get(key)
        if found is not None:
            place = max(place, found.place)
            if found.share is not share:
                self._take_out(key)
        if key not in share.producers:
            self._make_room(share)
            self.shares.charge(share, SharedPot.MARKS)
        self._known.pop(key, None)
        self._known[key] = progress = ProducerProgress(place, share, connection)
        for each in share.with_parts:
            each.producers.pop(key, None)
            each.producers[key] = None
            hide(each.producers)
        hide(key, place, progress, self._known)

    def _make_room(self, share: Share) -> None:
        """Remove the least recently used producers of whoever has no room: the principal, or another holder of a quota.

        Where all producers together are too many, and the principal has none, those of the principal with most.
        """
        self.shares.admits(share, SharedPot.MARKS)
        for part in share.parts:
            while part.producers and not self.shares.fits(part, SharedPot.MARKS):
                self._forget(next(iter(part.producers)))
        while self._known and len(self) >= self.limits.marks_max:
            loser = share.root if share.root.producers else max(self.shares, key=lambda each: len(each.producers))
            self._forget(next(iter(loser.producers)))

    def _forget(self, key: tuple[str, str]) -> None:
        self._take_out(key)
        self.forgotten += 1

    def _take_out(self, key: tuple[str, str]) -> None:
        share = self._known.pop(key).share
        for each in share.with_parts:
            del each.producers[key]
        self.shares.refund(share, SharedPot.MARKS)
