"""The pager: reads messages that wait on the disk back into memory, for the queues that are short of them.

    Queue.pop --> StoredBacklog.fetch --> ask        many queues ask in one turn
                                           |  numbers of all of them, in the order of the log; one thread reads
    consumers <-- Queue.fetched <----- _arrived      and each message is made once, whoever wants it

Nothing is read before it is synced. A message that cannot be read is reported with file and offset, counted and
dropped: it is never delivered with wrong bytes, and it does not stop those behind it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import structlog

from fanlight_broker.core.subscriber import Session
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.message_reader import MessageReader
from fanlight_broker.storage.records import BadRecord, read_message
from fanlight_broker.storage.stored_backlog import StoredBacklog
from fanlight_broker.storage.stored_queue import StoredQueueJournal
from fanlight_broker.wire.message import Format, Message, Variant, Variants
from fanlight_broker.wire.queue import Queue

log: Final = structlog.stdlib.get_logger("store")

QUEUE_BYTES: Final = 256 * 1024  # read for one queue at once, unless one message is larger
QUEUES: Final = 64  # served by one read; the others wait for the next

Read = tuple[dict[int, bytes], list[tuple[int, str]]]  # bodies by number, and (number, why) of those without
Run = Callable[[Callable[[], Read], Callable[[Read], None]], None]
Wanted = list[tuple[int, int]]  # (number, slot)


class Reading:
    """Whose backlog it is, and how its messages are written."""

    def __init__(self, queue: Queue, journal: StoredQueueJournal, session: Session | None) -> None:
        self.queue, self.journal, self.session = queue, journal, session

    def variants(self, known: Variants) -> dict[int, Variant]:
        """By slot. Empty for a group: the member that takes a message has one."""
        if self.session is None:
            return {}
        format = self.session.subscriber.format
        return {slot: known.of(format, *options) for slot, options in self.journal.options()}

    def feed(self, now: float) -> None:
        """Let the consumers take what has come."""
        if self.session is not None:
            self.session.window.advance(now)
        elif self.queue.group is not None:
            self.queue.group.feed(now)


class Pager:
    """
    now, ahead  the clock of every `now`, and by how much wall-clock time is ahead of it, in seconds
    run         called with what reads, which may be run in a thread, and with what takes its result in the loop
    soon        called with what is to be called in another turn
    """

    def __init__(
        self, opened: Log, formats: Mapping[str, Format], variants: Variants, *, now: Callable[[], float],
        ahead: Callable[[], float], run: Run, soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self.unreadable = 0  # messages that were dropped because the disk no longer has them
        self._log, self._formats, self._variants = opened, formats, variants
        self._now, self._ahead, self._run, self._soon = now, ahead, run, soon
        self._reader = MessageReader(opened)
        self._readings: dict[StoredBacklog, Reading] = {}
        self._asked: dict[StoredBacklog, None] = {}
        self.synced_number = 0  # messages up to it can be read
        self._busy = False

    def attach(self, queue: Queue, journal: StoredQueueJournal, session: Session | None = None) -> None:
        """Give a queue a backlog. session: whose it is; None: it is a group's."""
        queue.backlog = backlog = StoredBacklog(journal, self)
        self._readings[backlog] = Reading(queue, journal, session)

    def detach(self, queue: Queue) -> None:
        """The queue has ended."""
        backlog = queue.backlog
        if isinstance(backlog, StoredBacklog):
            queue.backlog = None
            self._readings.pop(backlog, None)
            self._asked.pop(backlog, None)

    def ask(self, backlog: StoredBacklog) -> None:
        """Read its first messages, as soon as the thread is free."""
        if not self._asked and not self._busy:
            self._soon(self.work)
        self._asked[backlog] = None

    def work(self) -> None:
        """Begin to read, if a queue has asked and nothing is being read."""
        if self._busy or not self._asked:
            return
        batch: dict[StoredBacklog, Wanted] = {}
        for backlog in list(self._asked):
            wanted = [each for each in backlog.wanted(QUEUE_BYTES) if each[0] <= self.synced_number]
            if wanted:
                batch[backlog] = wanted
                del self._asked[backlog]
            if len(batch) == QUEUES:
                break
        if batch:
            self._busy = True
            numbers = {number for wanted in batch.values() for number, _ in wanted}
            self._run(partial(self._read, numbers), partial(self._arrived, batch))

    def _read(self, numbers: set[int]) -> Read:
        return self._reader.read(numbers), self._reader.damage

    def _arrived(self, batch: dict[StoredBacklog, Wanted], read: Read) -> None:
        self._busy = False
        bodies, damage = read
        for number, why in damage:
            log.error("message_unreadable", number=number, reason=why, advice="it is lost; fanlightd check has more")
        self.unreadable += len(damage)
        messages: dict[int, Message] = {}
        now = self._now()
        for backlog, wanted in batch.items():
            reading = self._readings.get(backlog)
            if reading is not None:
                self._hand_over(reading, backlog, wanted, bodies, messages, now)
        for backlog in batch:
            if (reading := self._readings.get(backlog)) is not None:
                reading.feed(now)
        self.work()

    def _hand_over(
        self, reading: Reading, backlog: StoredBacklog, wanted: Wanted, bodies: Mapping[int, bytes],
        messages: dict[int, Message], now: float,
    ) -> None:
        variants = reading.variants(self._variants)
        last, count = wanted[-1][0], 0
        taken: list[tuple[Message, Variant | None, int]] = []
        for number, slot in backlog.numbers.first(len(wanted)):  # the first of them may have been dropped meanwhile
            if number > last:
                break
            count += 1
            message = messages.get(number) or self._made(number, bodies, messages)
            if message is not None:
                taken.append((message, variants.get(slot), number))
            else:
                reading.journal.lost(number)
        reading.queue.fetched(taken, count, backlog.remove(count), now)

    def _made(self, number: int, bodies: Mapping[int, bytes], messages: dict[int, Message]) -> Message | None:
        body = bodies.get(number)
        if body is None:
            return None
        try:
            messages[number] = read_message(body, self._formats, self._ahead())
        except BadRecord as error:
            self.unreadable += 1
            log.error("message_unreadable", number=number, reason=str(error), advice="it is lost")
            return None
        return messages[number]
