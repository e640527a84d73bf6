"""Rounds: all that is known is written once more at the end of the log, so that a restart need not read what is before.

    log   ... | ROUND  groups  queues  sessions  retained, delayed ones  declarations  marks | ... and changes between
               ^ the floor of the log, once the last of them is synced

A round takes many turns, a slice in each, so it is no picture of one moment. It need not be:

* What is restated replaces what is known of it at that place of the log.
* A change between is applied whatever is known of its queue or window: what was restated before gets it, and what is
  restated later has it.

Queues and windows are restated as numbers (restating.pyx). The messages themselves are found by their numbers, also
before the floor. So are delayed ones. Retained messages are restated with what they say.

Two orders matter. A group's queue comes before the sessions: what a session that is not kept has taken of it is added
to it, and no session may come later that has taken from it before. Slots come before what is written by them.

A replay may have the beginning of a round only, for the broker was killed then. It has read what was before, too, and
what it knows of a group's queue that was not restated with it still waits: it can only be on loan.

A round is due when the log has grown to GARBAGE_SEGMENTS from its floor on, and to twice the bytes of the round itself:
so at most as much is written again as was written before.

While the disk has too little room publishers are refused, and a file in which nothing is live any more is needed soon.
Then a round that makes it free is due after a part of a segment; but none so long that it would use up what is left.
"""

from collections.abc import Callable, Iterator
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.storage.store import Store

log: Final = event_log.get("store")

GARBAGE_SEGMENTS: Final = 4  # 256 MiB
BUFFERED_BYTES: Final = 8 << 20  # past which a round waits for the disk
SHORT_PART: Final = 4  # of a segment: the longest round, and the changes between two, while there is too little room


class Checkpoint:
    """later          called with a function to call in another turn
    garbage_bytes  of the log, from its floor on, that a restart may have to read, and more if a round is long; None:
                   GARBAGE_SEGMENTS
    round_bytes    what a round would write, about: else a restart behind a long one would begin another at once
    """

    def __init__(
        self, store: Store, broker: Broker, later: Callable[[Callable[[], None]], object], *,
        garbage_bytes: int | None = None, round_bytes: int = 0,
    ) -> None:
        self.rounds = 0  # that are synced
        self.round_bytes = round_bytes  # of the last
        self._store, self._broker, self._later = store, broker, later
        segment_bytes = store.log.segment_bytes
        self._garbage_bytes = GARBAGE_SEGMENTS * segment_bytes if garbage_bytes is None else garbage_bytes
        self._short_bytes = segment_bytes // SHORT_PART
        self._steps: Iterator[None] | None = None
        self._held = False  # for the disk
        self._began = 0  # at this entry
        self._restated = 0  # bytes of records when it began
        self._until: int | None = None  # it is over when this entry is synced

    @property
    def running(self) -> bool:
        """Is a round being written, or waiting for its last sync?"""
        return self._steps is not None or self._until is not None

    def progress(self) -> None:
        """The log is further: end a round, go on with it, or begin one."""
        if self._until is not None:
            if self._store.log.synced >= self._until:
                self._finish()
        elif self._held:
            if self._store.log.buffered <= BUFFERED_BYTES:
                self._held = False
                self._later(self.step)
        elif self._steps is None and self._due():
            self.begin()
        if not self.running and self._store.crowded:
            self._make_room()

    def _due(self) -> bool:
        if self._store.failure is not None:
            return False
        nbytes = self._store.log.bytes_behind_floor()
        return nbytes > max(self._garbage_bytes, 2 * self.round_bytes) or (
            self._store.crowded and self.round_bytes <= self._short_bytes
            and nbytes > 2 * self.round_bytes + self._short_bytes and self._store.log.stuck
        )

    def _make_room(self) -> None:
        """A file is given back when two headers have a floor behind it: begin the second at once."""
        if self._store.failure is None and self._store.log.spread_floor():
            self._store.restate_round()
            self._store.seal()

    def begin(self) -> None:
        """Begin a round."""
        self._store.seal()
        self._began, self._restated = self._store.log.appended + 1, self._store.records.restated
        self._store.restate_round()
        self._steps = self._round()
        self._later(self.step)

    def step(self, most: int = 1 << 62) -> None:
        """A slice of the round: as much as the turn and the disk allow, and at most so many steps."""
        if self._steps is None or self._store.records.closed:
            return
        self._store.records.flush()
        for _ in self._steps:
            most -= 1
            if self._store.records.error is not None:
                return
            if self._store.log.buffered > BUFFERED_BYTES:
                self._held = True
                return
            if most <= 0 or self._broker.turns.over():
                self._later(self.step)
                return
        self._steps = None
        self._store.seal()
        self._until = self._store.log.appended
        self.round_bytes = self._store.records.restated - self._restated
        self.progress()

    def _finish(self) -> None:
        self._until = None
        self._store.log.raise_floor(self._began)
        self.rounds += 1
        log.info("store_checkpoint", bytes=self.round_bytes)

    def _round(self) -> Iterator[None]:
        store, broker = self._store, self._broker
        for key in store.group_keys():
            store.restate_group(key)
            yield
        for home in broker.everywhere():
            yield from self._restate(home)
        for declaration in broker.declarations:
            store.restate_declaration(declaration)
            yield
        for producer in broker.marks.producers():
            mark = broker.marks.find(producer)
            if mark is not None:
                store.restate_mark(mark)
                yield

    def _restate(self, home: Namespace) -> Iterator[None]:
        """What is in one namespace."""
        store = self._store
        for queue in list(home.queues):
            if not queue.inside.origin.ended:
                store.restate_queue(queue)
                yield
        for session in home.sessions.in_pieces():
            if session is not None:
                yield from store.restate_session(session)
            yield
        for id in range(home.retained.places):
            entry = home.retained.entry(id)
            if entry is not None and not entry.own:
                store.restate_retained(entry.message, entry.share, entry.origin, home.name)
                yield
        for place in range(home.delayed.table.places):
            delayed = home.delayed.find(home.delayed.table.at(place))
            if delayed is not None:
                store.restate_delayed(home.delayed.wall_of(delayed.due), delayed, home.name)
                yield
