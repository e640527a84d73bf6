"""Streams: named queues whose messages go to the archive, where each consumer reads them at a position of its own.

    publish --> wire.NamedQueue --> StreamRecorder --> the archive, topic $stream.<name>.<generation>.<its topic>
                 '-- StreamReading, one a consumer: a part at a time, then what is written

Nothing waits in the queue itself. A queue that is declared anew after it has ended has another generation, and none of
the messages from before. docs/decisions/0026-amqp-streams.md has the reasons.

Not here: how a message is written to a consumer, and how many it may have; that is the protocol's.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.pools import Replaying
from fanlight_broker.core.queue_bounds import put_in_force
from fanlight_broker.core.replay import Encode, ReplayPart, ReplayRequest, ReplaySource
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.recording import record
from fanlight_permissions.topics import SEPARATORS, STREAM_ROOT

GENERATION_BYTES: Final = 4
ESCAPED: Final = re.compile(rb"[^A-Za-z0-9_-]")  # the rest is the same word in all syntaxes


def new_generation() -> str:
    """For `QueueOptions.stream` of a queue that is declared."""
    return secrets.token_hex(GENERATION_BYTES)


def prefix_of(name: str, generation: str, syntax: str) -> bytes:
    """What stands before the topics of a stream in the archive, in a syntax."""
    separator = SEPARATORS[syntax]
    word = ESCAPED.sub(lambda found: b"=%02X" % found[0][0], name.encode())
    return separator.join((STREAM_ROOT, word, generation.encode(), b""))


def prefixes_of(queue: WorkQueue) -> tuple[bytes, ...]:
    """Of a stream, by the numbers of syntaxes."""
    assert queue.options.stream is not None
    return tuple(prefix_of(queue.name, queue.options.stream, syntax) for syntax in SYNTAXES)


def check_replayer(enforcement: Enforcement, subscriber: Subscriber, queue: WorkQueue) -> None:
    """Raises NotPermitted if a queue is a stream, and a subscriber may not replay it."""
    if queue.options.stream is not None:
        for text, syntax in queue.subjects:
            enforcement.check_filter(subscriber, Action.REPLAY, text, syntax, whole=True)


class RecordingFormat(Protocol):
    """What a protocol has whose clients declare streams."""

    def recorded(self, message: Message) -> Message:
        """What is archived of a message of any family, on the same topic."""
        ...


class StreamRecorder:
    """Records what comes to one stream, as the format of those who declare such keeps it: `NamedQueue.recorder`."""

    def __init__(
        self, queue: WorkQueue, selection: ArchiveSelection, ledger: Ledger, recorded: Mapping[str, RecordingFormat]
    ) -> None:
        self.recorded = 0  # messages that the archive had taken when the last one came
        self._tap = selection.below(prefixes_of(queue))
        self._whole, self._ledger, self._formats = selection.whole, ledger, recorded
        self._family = queue.subscriber.format.family

    @property
    def crowded(self) -> bool:
        """Is a message to be refused, rather than lost?"""
        return self._whole.crowded

    def __call__(self, publisher: Outbox | None, message: Message) -> None:
        """In the middle of a fan-out. message: has octets of its own."""
        record(self._tap, self._ledger, publisher, self._formats[self._family].recorded(message))
        self.recorded = self._whole.taken


class StreamRecording:
    """Where the streams of a namespace record their messages. Without an archive they take none.

    formats  by the family of the formats of those who declare streams
    """

    def __init__(self, ledger: Ledger) -> None:
        self.formats: dict[str, RecordingFormat] = {}
        self._ledger = ledger
        self._selection: ArchiveSelection | None = None

    def archive_with(self, selection: ArchiveSelection, queues: Iterable[WorkQueue], limits: Limits) -> None:
        """There is an archive. queues: those from before a restart"""
        self._selection = selection
        for queue in queues:
            if queue.options.stream is not None:
                self.begin(queue)
                put_in_force(queue, limits)

    def begin(self, queue: WorkQueue) -> None:
        """Of a new queue: if it is a stream, what comes goes to the archive."""
        if queue.options.stream is not None and self._selection is not None:
            queue.inside.recorder = StreamRecorder(queue, self._selection, self._ledger, self.formats)


class StreamStart:
    """Where a consumer begins: the first message, the last, the next, an offset, or a time (microseconds UTC)."""

    __slots__ = ("last", "next", "offset", "since")

    def __init__(
        self, *, offset: int | None = None, since: int | None = None, last: bool = False, next: bool = False
    ) -> None:
        self.offset, self.since, self.last, self.next = offset, since, last, next


class StreamReading:
    """Reads a stream for one consumer, and follows what is written to it. Raises LimitExceeded.

    place   of the reading among the replays; it is given back at the end
    taken   called with messages, each as `encode` has made it, after `ask`
    failed  called if nothing more can be read; it has ended then
    by      the consumer
    """

    def __init__(
        self, queue: WorkQueue, source: ReplaySource, start: StreamStart, place: Replaying, encode: Encode,
        size: Callable[[Any], int], taken: Callable[[Sequence[Any]], None], failed: Callable[[FanlightError], None],
        by: Subscriber | None = None,
    ) -> None:
        before = prefixes_of(queue)
        wanted = ReplayRequest(
            before[0] + b"#", SYNTAXES[0], offset=start.offset, since=start.since, below=before, patient=True,
            last=start.last, by=by, queue=queue.name,
        )
        self._inside, self._source, self._place = queue.inside, source, place
        self._taken, self._failed = taken, failed
        self._over = self._asked = self._waits = False
        self._begun = not start.next
        self._written = 0  # by the archive, when it was asked last
        try:
            self._reading = source.read(wanted, encode, size)
        except FanlightError:
            place.end()
            raise
        if start.next:
            source.report_end(self._end_known)

    def ask(self) -> None:
        """The consumer has room: what is read next is for it, when there is anything."""
        if self._asked or self._waits or self._over:
            return
        self._asked = True
        if self._begun:
            self._read()

    def close(self) -> None:
        if not self._over:
            self._over = True
            self._reading.close()
            self._place.end()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _end_known(self, offset: int) -> None:
        if self._over:
            return
        self._begun = True
        self._reading.begin_at(offset)
        if self._asked:
            self._read()

    def _read(self) -> None:
        self._written = self._source.written
        self._reading.ask(None, self._part_read)

    def _part_read(self, part: ReplayPart) -> None:
        if self._over:
            return
        if part.error is not None:
            self.close()
            self._failed(part.error)
        elif part.messages:
            self._asked = False
            self._taken(part.messages)
        elif part.at_end:
            self._waits = True
            self._look()
        else:
            self._read()

    def _look(self) -> None:
        """All is read that was written then: wait until there is more of this stream."""
        if self._over:
            return
        recorder: StreamRecorder = self._inside.recorder
        if self._source.written > self._written and recorder.recorded > self._written:
            self._waits = False
            self._read()
        else:
            self._source.wait(self._look)
