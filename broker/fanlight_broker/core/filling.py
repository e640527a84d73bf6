"""What a new queue begins with: archived messages from an offset or a time on, or what is retained; then live ones.

    archive    READING    parts of the archive, each when the queue has room again; no filter of the queue is in force
                  | nothing is left to read
               CLOSING    the filters are in force, and what is published is held apart. The source reports the offset
                  |       at which that began; the archive up to it goes into the queue
                  v
               then what was held follows, and whatever comes

    retained   the filters are in force at once, and what is published is held apart. The messages that were retained
               before go into the queue, a slice a turn; then what was held follows

So no message is missing or there twice, and each is in its place. A retained message that was set since is skipped: its
live copy is held.

A durable queue is stored when it has caught up. Until then a restart loses the queue as a whole: its consumers declare
it again, and it is filled anew.
"""

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from fanlight_broker.core.content import Content
from fanlight_broker.core.errors import FanlightError, LimitExceeded
from fanlight_broker.core.replay import ReplayPart, ReplayRequest, ReplaySource
from fanlight_broker.core.retained import SLICE, Retained, shown_to
from fanlight_broker.core.turns import Turns
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.retained import RetainedEntry

AHEAD: Final = 1_024  # messages that wait while the archive is read; below half of it more are read

Then = Callable[[FanlightError | None], None]


class Beginning(NamedTuple):
    """What a new queue begins with. Without any of the values: the whole archive."""

    retained: bool = False
    offset: int | None = None
    epoch: int | None = None  # of the offset: a different one now is an error
    since: int | None = None  # microseconds UTC


class FillState(Enum):
    READING = auto()
    CLOSING = auto()
    OVER = auto()


class ArchiveFilling:
    """Fills a queue with one filter from the archive. Raises LimitExceeded.

    bind   puts the queue's filter in force; raises FanlightError
    begun  called once the archive was found to have what is asked for, or with the error
    then   called when the queue has caught up, or with the error that ended it
    """

    def __init__(
        self, queue: WorkQueue, source: ReplaySource, wanted: Beginning, ledger: Ledger, bind: Callable[[], None],
        begun: Then, then: Then,
    ) -> None:
        ((text, syntax),) = queue.filters
        self._inside, self._format, self._ledger = queue.inside, queue.subscriber.format, ledger
        self._source, self._bind, self._begun, self._then = source, bind, begun, then
        self._ahead = max(1, min(AHEAD, self._inside.queue.messages_max // 2))
        self._state = FillState.READING
        self._first = self._asked = True
        self._end: int | None = None
        self._part = ReplayPart()
        self._messages: deque[Message] = deque()  # of the part, not in the queue yet
        request = ReplayRequest(
            text, syntax, offset=wanted.offset, epoch=wanted.epoch, since=wanted.since, condition=queue.condition
        )
        self._reading = source.read(request, self._encode, lambda message: len(message.fields))

    def start(self) -> None:
        self._ask()

    def drained(self) -> None:
        """The queue has room, perhaps."""
        if self._state is not FillState.OVER and not self._asked:
            self._pour()

    def cancel(self) -> None:
        if self._state is not FillState.OVER:
            self._state = FillState.OVER
            self._messages.clear()
            self._reading.close()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _encode(
        self, offset: int, timestamp: int, topic: bytes, syntax: int, payload: bytes, content: Content | None
    ) -> Message:
        """In the reader's thread."""
        message = self._format.write(content if content is not None else Content(topic, syntax, payload))
        assert message is not None  # clients that declare queues have a format that can say everything
        return message

    def _ask(self) -> None:
        self._asked = True
        self._reading.ask(self._end, self._part_read)

    def _part_read(self, part: ReplayPart) -> None:
        self._asked = False
        if self._state is FillState.OVER:
            return
        first, self._first = self._first, False
        if part.error is not None:
            self.cancel()
            (self._begun if first else self._then)(part.error)
            return
        if first:
            self._begun(None)
        self._part = part
        self._messages.extend(part.messages)
        self._pour()

    @property
    def _has_room(self) -> bool:
        queue = self._inside.queue
        return not len(queue) or (len(queue) < self._ahead and 2 * queue.nbytes < queue.bytes_max)

    def _pour(self) -> None:
        """What was read goes into the queue, as far as there is room; at the end all of it, for what is held waits."""
        inside = self._inside
        while self._state is not FillState.OVER and (self._messages or not self._part.at_end):
            if self._state is FillState.READING and not self._has_room:
                inside.queue.wanting = (self._ahead + 1) // 2
                self._part = self._part._replace(at_end=False)  # there may be much more until then
                return
            if not self._messages:
                self._ask()
                return
            inside.fill(self._messages.popleft(), self._ledger.now)
        if self._state is FillState.READING:
            self._join()
        elif self._state is FillState.CLOSING:
            self.cancel()
            self._then(None)

    def _join(self) -> None:
        self._state = FillState.CLOSING
        self._inside.holding = True
        try:
            self._bind()
        except FanlightError as error:
            self.cancel()
            self._then(error)
            return
        self._asked = True
        self._source.report_end(self._end_known)

    def _end_known(self, offset: int) -> None:
        if self._state is FillState.CLOSING:
            self._end = offset
            self._ask()


class RetainedFilling:
    """Fills a queue with one filter from the retained messages. All of them must find room in it.

    then  called when they are in, or with the error that ended it
    """

    def __init__(
        self, queue: WorkQueue, retained: Retained, turns: Turns, ledger: Ledger, bind: Callable[[], None], then: Then
    ) -> None:
        ((self._filter, self._syntax),) = queue.filters
        self._condition = queue.condition
        self._inside, self._ledger, self._bind = queue.inside, ledger, bind
        self._retained, self._turns, self._then = retained, turns, then
        self._revision = retained.revision
        self._over = False
        self._messages = self._visible()

    def start(self) -> None:
        """Raises InvalidFilter."""
        self._inside.holding = True
        self._bind()
        self._turns.later(self._advance)

    def drained(self) -> None:
        """It does not wait for room."""

    def cancel(self) -> None:
        self._over = True

    # -- inside -----------------------------------------------------------------------------------------------------

    def _visible(self) -> Iterator[Message | None]:
        """Those that were there at the start and that the queue wants; None for each other id."""
        retained = self._retained
        for part in range(retained.parts):
            for id in retained.ids(self._filter, self._syntax, part):
                entry = retained.entry(id)
                yield entry.message if entry is not None and self._wants(entry) else None

    def _wants(self, entry: RetainedEntry) -> bool:
        if entry.revision > self._revision \
                or not shown_to(self._filter, self._syntax, entry.message, self._ledger.now):
            return False
        is_wanted = self._retained.wanted_by(self._condition)
        return is_wanted is None or is_wanted(entry.message)

    def _advance(self) -> None:
        queue = self._inside.queue
        for _ in range(SLICE):
            if self._over:
                return
            try:
                message = next(self._messages)
            except StopIteration:
                self._over = True
                self._then(None)
                return
            if message is not None:
                if len(queue) >= queue.messages_max or queue.nbytes + message.nbytes > queue.bytes_max:
                    self._over = True
                    self._then(too_small(queue.messages_max, queue.bytes_max, many=len(queue) >= queue.messages_max))
                    return
                self._inside.fill(message, self._ledger.now)
            if self._turns.over():
                break
        self._turns.later(self._advance)


def too_small(messages_max: int, bytes_max: int, *, many: bool) -> LimitExceeded:
    text = "the retained messages that the queue is to begin with do not fit into it"
    return LimitExceeded(text, "messages_max", messages_max) if many else LimitExceeded(text, "bytes_max", bytes_max)
