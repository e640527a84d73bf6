"""What an operator does with a named queue that may take many turns: purge it, remove it, move its messages.

    purge, remove   drop what waited when the job began, oldest first     --> `done` with how many
    move            the oldest --lift--> another queue, or its first topic --carry_off--> the next
                                         '-- not taken: put_down, and the job stops

A job does a slice, and the rest after everybody else's turn (core/turns.py). A queue has one job at a time.

A message that is moved is in its new place before it leaves the old one, and nothing runs between the two. With a store
both changes are in one entry of the log, so a crash finds the message in one of the two places.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from fanlight_broker.core.dead_letters import revived
from fanlight_broker.core.errors import (
    FanlightError,
    LimitExceeded,
    NoSuchQueue,
    QueueNotEmpty,
    StoreUnavailable,
    Unsupported,
)
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import HELD, Accepted, Direct, Publishing, Refused
from fanlight_broker.core.queues import Queues
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.turns import Turns
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.operating import carry_off, lift, put_down, put_in, read_soon
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.route import Route

PURGED_PER_LOOK: Final = 256  # messages between two readings of the clock, some 0.3 µs each
MOVED_PER_LOOK: Final = 8  # some 5 µs each to a queue, 30 µs to a topic
FULL: Final = "the store takes no more for now; move the rest later"

Done = Callable[[int], None]
Moved = Callable[[int, str | None], None]  # how many, and why no more


class QueueJobs:
    """finish: called after a slice, with which a turn ends (Broker.finish)."""

    def __init__(self, queues: Queues, publishing: Publishing, turns: Turns, finish: Callable[[], None]) -> None:
        self.queues = queues
        self.publishing = publishing
        self._turns = turns
        self._finish = finish
        self._busy: set[WorkQueue] = set()

    def __len__(self) -> int:
        """Jobs that have not ended."""
        return len(self._busy)

    def purge(self, queue: WorkQueue, done: Done) -> None:
        """Drop what waits now; what is in flight stays. Raises LimitExceeded, StoreUnavailable."""
        self._begin(queue)
        Purge(self, queue, done).go_on()

    def remove(self, queue: WorkQueue, done: Done, *, if_empty: bool = False, force: bool = False) -> None:
        """End a queue that has neither messages nor consumers.

        if_empty  it may have consumers
        force     it may have both: its messages are lost

        Raises QueueNotEmpty, LimitExceeded, StoreUnavailable.
        """
        messages, consumers = len(queue.inside), len(queue.consumers)
        if (messages and not force) or (consumers and not force and not if_empty):
            raise QueueNotEmpty(queue.name, messages, consumers)
        self._begin(queue)

        def end(purged: int) -> None:
            done(purged + (self.queues.end(queue) if self.exists(queue) else 0))

        Purge(self, queue, end).go_on()  # the end itself takes one turn: it finds what came meanwhile

    def move(
        self, source: WorkQueue, target: WorkQueue | None, most: int | None, mover: Subscriber, done: Moved
    ) -> None:
        """Move the oldest messages that wait now.

        target  None: to the topic that each was published to first
        most    None: all
        mover   who publishes them

        Raises LimitExceeded, StoreUnavailable, Unsupported.
        """
        if target is source:
            raise Unsupported("messages cannot be moved to the queue that they are in; name another", option="to")
        self._begin(source)
        count = len(source.inside.queue)
        Move(self, source, target, count if most is None else min(most, count), mover, done).go_on()

    def _begin(self, queue: WorkQueue) -> None:
        if queue in self._busy:
            raise LimitExceeded(f"the queue {queue.name!r} is being purged or moved; try again later", "queue_jobs", 1)
        if queue.options.durable and self.queues.journal.position.refusing:
            raise StoreUnavailable
        self._busy.add(queue)

    @property
    def now(self) -> float:
        """The time of the latest event."""
        return self.publishing.ledger.now

    def pause(self, go_on: Callable[[], None]) -> bool:
        """Is the turn over? Then the job goes on in a later one."""
        if self._turns.over():
            self.later(go_on)
            return True
        return False

    def later(self, go_on: Callable[[], None]) -> None:
        self._turns.later(partial(self._slice, go_on))

    def _slice(self, go_on: Callable[[], None]) -> None:
        try:
            go_on()
        finally:
            self._finish()

    def ended(self, queue: WorkQueue) -> None:
        self._busy.discard(queue)
        if queue.options.durable and self.exists(queue):
            self.queues.journal.queue_purged(queue)

    def exists(self, queue: WorkQueue) -> bool:
        return self.queues.get(queue.name) is queue


class Purge:
    """Counts down by what leaves the queue otherwise, too: what comes during the purge is not dropped."""

    def __init__(self, jobs: QueueJobs, queue: WorkQueue, done: Done) -> None:
        self._jobs = jobs
        self._queue = queue
        self._done = done
        self._count = 0
        self._end = self._left_so_far() + len(queue.inside.queue) + queue.inside.queue.apart

    def _left_so_far(self) -> int:
        inside = self._queue.inside
        return inside.deliveries + inside.queue.expired + inside.queue.dropped

    def go_on(self) -> None:
        jobs = self._jobs
        while jobs.exists(self._queue) and (left := self._end - self._left_so_far()) > 0:
            purged = self._queue.inside.purge(min(left, PURGED_PER_LOOK))
            if not purged:
                break
            self._count += purged
            if jobs.pause(self.go_on):
                return
        jobs.ended(self._queue)
        self._done(self._count)


class MovingSender(Direct):
    """A message that is not published now, or that every queue turns away, stays where it is."""

    unkept = False
    patient = True

    def forward(self, route: Route) -> bool:
        forwarded = super().forward(route)
        self.unkept = self._ledger.unkept
        return forwarded

    def hold_back(self, blocker: Outbox | None) -> None:
        pass  # `accept` returns HELD

    def waits(self, route: Route) -> bool:
        return True  # a store that refuses is to refuse it


class Move:
    def __init__(
        self, jobs: QueueJobs, source: WorkQueue, target: WorkQueue | None, left: int, mover: Subscriber, done: Moved
    ) -> None:
        self._jobs = jobs
        self._source = source
        self._target = target
        self._left = left
        self._mover = mover
        self._done = done
        self._count = 0

    def go_on(self) -> None:
        jobs, inside = self._jobs, self._source.inside
        while self._left > 0:
            if not jobs.exists(self._source):
                self._finish(NoSuchQueue(self._source.name).text)
                return
            now = jobs.now
            flight = lift(inside, now)
            if flight is None:
                if len(inside.queue):
                    read_soon(inside, partial(jobs.later, self.go_on))
                    return
                break
            assert flight.message is not None
            try:
                refusal = self._put(flight.message, now)
            except BaseException:
                put_down(inside, flight)
                jobs.ended(self._source)
                raise
            if refusal is not None:
                put_down(inside, flight)
                self._finish(refusal)
                return
            carry_off(inside, flight)
            self._left -= 1
            self._count += 1
            if self._count % MOVED_PER_LOOK == 0 and jobs.pause(self.go_on):
                return
        self._finish(None)

    def _finish(self, why: str | None) -> None:
        self._jobs.ended(self._source)
        self._done(self._count, why)

    def _put(self, message: Message, now: float) -> str | None:
        """Why it cannot be put there; None: it is there."""
        return self._publish(message, now) if self._target is None else self._put_in(self._target, message)

    def _put_in(self, target: WorkQueue, message: Message) -> str | None:
        if not self._jobs.exists(target):
            return NoSuchQueue(target.name).text
        position = self._jobs.queues.journal.position
        if target.options.durable and (position.refusing or position.full):
            return StoreUnavailable().text if position.refusing else FULL
        if not put_in(target.inside, message):
            return f"the queue {target.name!r} is full; consume from it, then move the rest"
        return None

    def _publish(self, message: Message, now: float) -> str | None:
        jobs = self._jobs
        try:
            letter = revived(message, jobs.queues.burial.letters_of)
        except Unsupported as error:
            return error.text
        if letter is None:
            return "the oldest message has too many headers to be published again; consume it"
        origin = self._source.inside.origin
        sender = MovingSender(jobs.publishing.ledger, letter, origin.stand_in())
        try:
            outcome = jobs.publishing.accept(Publication(letter, self._mover, ruled=False), sender, now)
        except FanlightError as error:
            return error.text
        finally:
            origin.detach()
        if isinstance(outcome, Refused):
            return outcome.error.text
        if outcome is HELD:
            return FULL
        topic = letter.topic.decode("utf-8", "backslashreplace")
        if isinstance(outcome, Accepted) and not outcome.routed:
            return f"nobody is subscribed to {topic!r}, so the message stays; add a queue for it, then move the rest"
        if isinstance(outcome, Accepted) and not outcome.kept:
            return f"the queues for {topic!r} are full; consume from them, then move the rest"
        return None
