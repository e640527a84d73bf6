"""Which messages of sparse segments are live: marked in slices, while queues go on. Then the log compacts them.

    groups' and named queues, delayed messages  -->  sessions' queues and windows     each at one moment, in this order
    what moves meanwhile is marked with its move (QueueRecords.marking)

No number of such a segment comes into a queue or window again that had none of its copies: they are older than the
log's floor. So a copy can be missed only if it moves. From a queue to a window it goes from what is looked at first to
what is looked at later. The other way it is reported, and marked with that.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from fanlight_broker.core.broker import Broker
from fanlight_broker.storage.live_numbers import LiveNumbers
from fanlight_broker.storage.restating import mark_due, mark_flights, mark_named, mark_waiting
from fanlight_broker.storage.store import Store, journal_of, stored

PLACES: Final = 16_384  # of delayed messages that are marked in one step


class LiveMarking:
    """later  called with a function to call in another turn"""

    def __init__(self, store: Store, broker: Broker, later: Callable[[Callable[[], None]], object]) -> None:
        self._store, self._broker, self._later = store, broker, later
        self._steps: Iterator[None] | None = None
        self._live = LiveNumbers(0, 0)
        self._seen = (-1, -1)  # rounds and compactions, when there was nothing to do

    def progress(self, rounds: int) -> None:
        """The log is further. rounds: that were synced so far."""
        log = self._store.log
        if self._steps is not None or log.compaction is not None or self._seen == (rounds, log.compactions):
            return
        found = log.sparse() if self._store.failure is None else None
        if found is None:
            self._seen = rounds, log.compactions
            return
        self._live = self._store.records.marking = LiveNumbers(*found)
        self._steps = self._mark(self._live)
        self._later(self.step)

    def step(self, most: int = 1 << 62) -> None:
        """As much as the turn allows, and at most so many queues and sessions."""
        if self._steps is None or self._store.records.closed:
            return
        for _ in self._steps:
            most -= 1
            if most <= 0 or self._broker.turns.over():
                self._later(self.step)
                return
        self._steps = self._store.records.marking = None
        self._store.log.compact(self._live.first, self._live.end, self._live.bits)

    def _mark(self, live: LiveNumbers) -> Iterator[None]:
        store, broker = self._store, self._broker
        for key in store.group_keys():
            queue = store.group_queue(key)
            if queue is not None:
                mark_waiting(live, queue)
                yield
        homes = broker.everywhere()
        for named in chain.from_iterable(list(home.queues) for home in homes):
            if stored(named.inside.queue) is not None:
                mark_named(live, named.inside)
                yield
        for home in homes:
            for place in range(0, home.delayed.table.places, PLACES):
                mark_due(live, home.delayed.table, place, PLACES)
                yield
        # A namespace that has begun since then has nothing that is older than its beginning.
        for session in chain.from_iterable(home.sessions.in_pieces() for home in homes):
            if session is not None:
                if journal_of(session) is not None:
                    mark_waiting(live, session.window.queue)
                mark_flights(live, session.window)
            yield
