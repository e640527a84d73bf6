"""The pager: reads messages that wait on the disk back into memory, for the queues that are short of them.

    Queue.pop --> StoredBacklog.fetch --> ask        many queues ask in one turn
                                           |  numbers of all of them, in the order of the log; one thread reads
    consumers <-- Queue.fetched <----- _arrived      and each message is made once, whoever wants it

    inspection <-- StoredBacklog.since -- ask_since     when did the oldest message come, if all are on the disk?

Nothing is read before it is synced. A message that cannot be read is reported with file and offset, counted and
dropped: it is never delivered with wrong bytes, and it does not stop those behind it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.subscriber import Session
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.message_reader import MessageReader
from fanlight_broker.storage.stored_backlog import StoredBacklog
from fanlight_broker.storage.stored_queue import StoredQueueJournal
from fanlight_broker.storage.wanted import Wanted
from fanlight_broker.wire.expiry import expire
from fanlight_broker.wire.hidden import hide
from fanlight_broker.wire.message import Format, Message, Variant, Variants
from fanlight_broker.wire.queue import Queue

log: Final = event_log.get("store")

QUEUE_BYTES: Final = 256 * 1024  # read for one queue at once, unless one message is larger; see StoredBacklog.want
INDEX_ADVICE: Final = "the file that it is of was read as a whole instead, and gets its index again"
READ_BYTES: Final = 32 << 20  # of one read, about: queues that ask for more wait for the next
TIMES_AT_ONCE: Final = 64  # of queues' first messages, that are read beside what consumers wait for
FEW_QUEUES: Final = 4  # that are read for at once: what they need next is read ahead, too
HEAD_MOST: Final = 512  # messages that are read at once for a consumer that has waited for them
HEAD_MOST_OF_FEW: Final = 2_048  # if few wait: a disk is quicker the more it is asked for at once

Read = list[tuple[int, str]]  # number of a message that is lost, and why
Run = Callable[[Callable[[], Read], Callable[[Read], None]], None]
Batch = dict[StoredBacklog, tuple[int, int]]  # from where to where its messages are, among those that are wanted
Times = dict[StoredBacklog, int]  # the number of the message whose time is asked for
Asked = tuple[Sequence[int], Callable[[Mapping[int, Message]], None]]  # numbers, and who gets their messages


class Reading:
    """Whose backlog it is, and how its messages are written."""

    __slots__ = ("journal", "queue", "session")

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
        self._asked_by_number: list[Asked] = []
        self._asked_since: dict[StoredBacklog, None] = {}
        self.synced_number = 0  # messages up to it can be read
        self._busy = False
        self._expected = False  # `work` is called soon

    def attach(
        self, queue: Queue, journal: StoredQueueJournal, session: Session | None = None, *, reads_expired: bool = False
    ) -> None:
        """Give a queue a backlog.

        session        whose it is; None: it is a group's, or a named queue
        reads_expired  what has expired is read and put into the queue, which drops it there
        """
        queue.backlog = backlog = StoredBacklog(journal, self)
        backlog.ttl, backlog.reads_expired = queue.ttl, reads_expired
        self._readings[backlog] = reading = Reading(queue, journal, session)
        hide(reading, backlog, journal, self._readings)  # until `detach` this table has them, and then no cycle

    def adjust(self, queue: Queue, journal: StoredQueueJournal, *, reads_expired: bool) -> None:
        """A named queue has another time to live, buries what has expired or not, and what it drops for room or not.

        One that buries what it drops gets no backlog, and loses its own if that is empty.
        """
        backlog = queue.backlog
        if backlog is None:
            if not queue.reads_dropped:
                self.attach(queue, journal, reads_expired=reads_expired)
        elif queue.reads_dropped and not backlog.length:
            self.detach(queue)
        elif isinstance(backlog, StoredBacklog):
            backlog.ttl, backlog.reads_expired = queue.ttl, reads_expired

    def detach(self, queue: Queue) -> None:
        """The queue has ended, or keeps all that it has in memory."""
        backlog = queue.backlog
        if isinstance(backlog, StoredBacklog):
            queue.backlog = None
            backlog.forget()
            self._readings.pop(backlog, None)
            self._asked.pop(backlog, None)
            self._asked_since.pop(backlog, None)

    def ask(self, backlog: StoredBacklog) -> None:
        """Read its first messages, as soon as the thread is free."""
        self._expect()
        self._asked[backlog] = None

    def ask_since(self, backlog: StoredBacklog) -> None:
        """Find out when its first message came."""
        self._expect()
        self._asked_since[backlog] = None

    def read(self, numbers: Sequence[int], then: Callable[[Mapping[int, Message]], None]) -> None:
        """Read messages that are in no queue. `then` gets those that can be read, later."""
        self._expect()
        self._asked_by_number.append((numbers, then))

    def _expect(self) -> None:
        if not self._expected and not self._busy:
            self._expected = True
            self._soon(self.work)

    def work(self) -> None:
        """Begin to read, if a queue has asked and nothing is being read."""
        self._expected = False
        if self._busy or not (self._asked or self._asked_by_number or self._asked_since):
            return
        wanted = Wanted()
        batch = self._take_asked(wanted)
        by_number = [each for each in self._asked_by_number if max(each[0], default=0) <= self.synced_number]
        self._asked_by_number = [each for each in self._asked_by_number if each not in by_number]
        for numbers, _ in by_number:
            wanted.extend(numbers)
        times, messages = self._take_times(), wanted.count
        wanted.extend(times.values())
        if wanted.count or by_number:
            self._busy = True
            self._run(
                partial(self._read, wanted, self._following(batch), self._ahead()),
                partial(self._arrived, wanted, batch, by_number, times, messages),
            )

    def _take_asked(self, wanted: Wanted) -> Batch:
        """Add the first messages of the queues that have asked."""
        batch: Batch = {}
        octets = 0
        for backlog in list(self._asked):
            begin = wanted.count
            count = backlog.want(wanted, QUEUE_BYTES, self.synced_number)
            if count:
                batch[backlog] = begin, begin + count
                octets += backlog.nbytes * count // backlog.length
                del self._asked[backlog]
            if octets >= READ_BYTES:
                break
        return batch

    def _following(self, batch: Batch) -> Wanted | None:
        """What the consumers of few queues need next: the disk begins to read it. Many queues keep it busy anyway."""
        if not 0 < len(batch) <= FEW_QUEUES:
            return None
        soon = Wanted()
        for backlog, (begin, end) in batch.items():
            backlog.want(soon, QUEUE_BYTES, self.synced_number, end - begin)
        return soon

    def _take_times(self) -> Times:
        """The first numbers of some of those whose time is asked for."""
        times: Times = {}
        for backlog in list(self._asked_since):
            if backlog.first <= self.synced_number:
                del self._asked_since[backlog]
                if backlog.first:
                    times[backlog] = backlog.first
            if len(times) == TIMES_AT_ONCE:
                break
        return times

    def _read(self, wanted: Wanted, soon: Wanted | None, ahead: float) -> Read:
        self._reader.messages(wanted, self._formats, ahead, soon)
        return self._reader.damage

    def _arrived(
        self, wanted: Wanted, batch: Batch, by_number: Sequence[Asked], times: Times, messages: int, damage: Read
    ) -> None:
        """messages: the first of those that are wanted are; of the others only the times are."""
        self._busy = False
        while self._log.index_faults:
            log.warning("store_index_damaged", what=self._log.index_faults.pop(), advice=INDEX_ADVICE)
        if damage:
            lost = set(wanted.first(messages))
            damage = [each for each in damage if each[0] in lost]  # what is not wanted yet is not lost before
        for number, why in damage:
            log.error("message_unreadable", number=number, reason=why, advice="it is lost; fanlightd check has more")
        self.unreadable += len(damage)
        now, ahead = self._now(), self._ahead()
        for backlog, number in times.items():
            came = wanted.came_at(number)
            backlog.came(number, came - ahead if came is not None else None)
        most = HEAD_MOST_OF_FEW if len(batch) <= FEW_QUEUES else HEAD_MOST
        for backlog, (begin, end) in batch.items():
            if (reading := self._readings.get(backlog)) is not None:
                variants = reading.variants(self._variants)
                backlog.hand_over(reading.queue, wanted, begin, end, variants, now, ahead, most)
        for backlog in batch:
            if (reading := self._readings.get(backlog)) is not None:
                if backlog.reads_expired:
                    expire(reading.queue, now)  # there may be more
                reading.feed(now)
        for asked, then in by_number:
            found = ((number, wanted.message(number)) for number in asked)
            then({number: message for number, message in found if message is not None})
        self.work()
