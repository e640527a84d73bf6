"""Marks: how far each producer has got, so that what it publishes again is taken once.

    (user, producer) -> (batch, sequence)    the highest that was taken, in the order in which they moved up

A message whose mark is not above its producer's is a repetition. A mark belongs to the user who was authenticated, so
that nobody can push up another's. Where user names prove nothing, whoever knows a producer's name can: therefore a
producer that a connected client uses is that client's. One from another address is refused, and one of the same user or
address may not move the mark far at once (`marks_jump_max`). docs/native-protocol.md, 3.8, has what that leaves open.

Bounded: past `marks_max`, or a principal's share of it, the principal's producer that moved up longest ago is
forgotten, and what it publishes again is taken again. Keeping marks with the messages is the store's matter
(`ports.Recorder.note`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.shares import Share, SharedPot, Shares, principal_of
from fanlight_broker.core.subscriber import Client
from fanlight_broker.wire.hidden import hide


class Mark(NamedTuple):
    """Which message of whom."""

    user: str  # as authenticated; "" if anonymous
    producer: str
    batch: int
    sequence: int


class ProducerProgress(NamedTuple):
    """How far a producer has got."""

    place: tuple[int, int]  # batch and sequence
    share: Share  # of the principal that moved it up last
    connection: int | None  # that did so; None: it is known from the store


class Marks:
    """connected  is there a connection of this number?"""

    def __init__(self, limits: Limits, shares: Shares, connected: Callable[[int], bool]) -> None:
        self.limits = limits
        self.shares = shares
        self.repeated = 0  # messages that were not taken again
        self.refused = 0  # messages of a producer that another client uses
        self.forgotten = 0  # producers
        self._connected = connected
        self._known: dict[tuple[str, str], ProducerProgress] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Mark]:
        """The one that moved up longest ago first."""
        return (Mark(*key, *progress.place) for key, progress in self._known.items())

    def check(self, mark: Mark, client: Client) -> None:
        """May a client publish with this mark? Raises NotPermitted if another one, connected, uses the producer."""
        found = self._known.get(mark[:2])
        if found is None or found.connection is None or found.connection == client.number:
            return
        if not self._connected(found.connection):
            return
        user = f"the producer {mark.producer!r} is in use by connection {found.connection} of {found.share.principal}"
        if found.share is not client.subscriber.share:
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
        """Was the message of this mark taken before, or a later one of its producer? Counted if so."""
        found = self._known.get(mark[:2])
        if found is None or mark[2:] > found.place:
            return False
        self.repeated += 1
        return True

    def advance(self, mark: Mark, client: Client) -> None:
        """The message of this mark, which a client has published, is taken."""
        self._move_up(mark, client.subscriber.share, client.number)

    def restore(self, marks: Iterable[Mark]) -> None:
        """Those that a store has kept, in their order. Their users' they are, until somebody moves them up."""
        for mark in marks:
            found = self._known.get(mark[:2])
            share = found.share if found is not None else self.shares.of(principal_of(mark.user, "", verified=True))
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
        for order in (self._known, share.producers):
            order.pop(key, None)
        self._known[key] = progress = ProducerProgress(place, share, connection)
        share.producers[key] = None
        hide(key, place, progress, self._known, share.producers)

    def _make_room(self, share: Share) -> None:
        """Forget the principal's own idlest producers; those of the one with most, if it has none."""
        if not self.shares.admits(share, SharedPot.MARKS) or len(self) >= self.limits.marks_max:
            while self._known and (not self.shares.fits(share, SharedPot.MARKS) or len(self) >= self.limits.marks_max):
                loser = share if share.producers else max(self.shares, key=lambda each: len(each.producers))
                self._take_out(next(iter(loser.producers)))
                self.forgotten += 1

    def _take_out(self, key: tuple[str, str]) -> None:
        share = self._known.pop(key).share
        del share.producers[key]
        self.shares.refund(share, SharedPot.MARKS)
