"""Burial: what queues have discarded is published to the dead-letter topic of its queue.

    NamedQueue.graves --exhume--> Queues.bury, at the end of a turn --> Burial.bury_some --> Publishing.accept

A queue whose options name an *owner* of letters in place of the syntax of a topic has letters of another form: a
protocol's, which knows where they go. Its owner makes a publication of each dead message, or nothing. What dies before
the owner is there, after a restart, waits in the queue's graves, and in the journal.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from fanlight_broker import event_log
from fanlight_broker.core.dead_letters import dead_letter
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import Direct, Publishing, Refused
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.named_queue import DISCARDS

log: Final = event_log.get("queues")

BURIED_AT_ONCE: Final = 8  # dead letters between two readings of the clock: 20 µs each, with many deaths 1 ms


class DeadMessage(NamedTuple):
    """why: one of wire.named_queue.DISCARDS. wall: seconds since 1970."""

    message: Message
    queue: WorkQueue
    why: str
    wall: float


LetterMaker = Callable[[DeadMessage], Publication | None]
"""None: it is dropped. A publication has the queue's subscriber as its publisher, and mostly a route of its own."""


class Burial:
    """wall   seconds since 1970; without one, the time of the broker's clock
    queue  that has a name
    """

    def __init__(
        self, publishing: Publishing, wall: Callable[[], float] | None, queue: Callable[[str], WorkQueue | None]
    ) -> None:
        self.dead = self.refused = 0
        self.owners: dict[str, LetterMaker] = {}
        self._publishing = publishing
        self._wall = wall
        self._queue = queue

    def letters_of(self, name: str) -> tuple[bytes, str] | None:
        """The dead-letter topic of a queue, if it is there and has one."""
        queue = self._queue(name)
        return None if queue is None else queue.options.dead_letter

    def bury_some(self, queue: WorkQueue, now: float) -> None:
        """Publish the first dead letters of a queue."""
        target = queue.options.dead_letter
        if target is None:  # it has none any more: what waits to be buried is dropped
            queue.inside.exhume(BURIED_AT_ONCE)
            return
        topic, syntax = target
        make = self.owners.get(syntax)
        if make is None and syntax not in SYNTAXES:
            return  # its owner comes later: `Queues.bury_by`
        ledger = self._publishing.ledger
        for message, why, attempts, _ in queue.inside.exhume(BURIED_AT_ONCE):
            wall = self._wall() if self._wall is not None else now
            if make is not None:
                publication = make(DeadMessage(message, queue, DISCARDS[why], wall))
            else:
                letter = dead_letter(message, (topic, syntax), queue.name, why, attempts, wall, self.letters_of)
                publication = Publication(letter, queue.subscriber, ruled=False) if letter is not None else None
            if publication is None:
                self.refused += 1
                continue
            outcome = self._publishing.accept(
                publication, Direct(ledger, publication.message, queue.inside.origin.stand_in()), now
            )
            queue.inside.origin.detach()
            self.dead += 1
            if isinstance(outcome, Refused):
                self.refused += 1
                log.warning("dead_letter_refused", queue=queue.name, text=outcome.error.text)
