"""Burial: what queues have discarded is published to the dead-letter topic of its queue.

    NamedQueue.graves --exhume--> Queues.bury, at the end of a turn --> Burial.bury_some --> Publishing.accept
"""

from collections.abc import Callable
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.dead_letters import dead_letter
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import Direct, Publishing, Refused
from fanlight_broker.core.work_queue import WorkQueue

log: Final = event_log.get("queues")

BURIED_PER_TURN: Final = 64  # dead letters between two readings of the clock, about 20 µs each


class Burial:
    """wall: seconds since 1970; without one, the time of the broker's clock."""

    def __init__(self, publishing: Publishing, wall: Callable[[], float] | None) -> None:
        self.dead = self.refused = 0
        self._publishing = publishing
        self._wall = wall

    def bury_some(self, queue: WorkQueue, now: float) -> None:
        """Publish the first dead letters of a queue."""
        topic = queue.options.dead_letter
        assert topic is not None  # else nothing is kept to be buried
        ledger = self._publishing.ledger
        for message, why, attempts, _ in queue.inside.exhume(BURIED_PER_TURN):
            wall = self._wall() if self._wall is not None else now
            letter = dead_letter(message, topic, queue.name, why, attempts, wall)
            if letter is None:
                self.refused += 1
                continue
            outcome = self._publishing.accept(
                Publication(letter, queue.subscriber, ruled=False),
                Direct(ledger, letter, queue.inside.origin.stand_in()), now,
            )
            queue.inside.origin.detach()
            self.dead += 1
            if isinstance(outcome, Refused):
                self.refused += 1
                log.warning("dead_letter_refused", queue=queue.name, text=outcome.error.text)
