from collections.abc import Callable, Iterable
from typing import Any, final

from fanlight_broker.storage.live_numbers import LiveNumbers
from fanlight_broker.storage.log import Log
from fanlight_broker.wire.journal import JournalPosition, QueueJournal
from fanlight_broker.wire.ledger import JournalHead, Ledger
from fanlight_broker.wire.message import Message

SOME_TIME_LEFT: int
AT_ONCE: int

class QueueRecords(JournalHead):
    log: Log
    position: JournalPosition
    wall: float
    last_number: int
    last_queue: int
    last_slot: int
    last_set: int
    error: BaseException | None
    closed: bool
    haste: int
    seal_now: Callable[[], Any] | None
    messages: int
    backlog: int
    backlog_bytes: int
    marking: LiveNumbers | None
    restated: int
    def __init__(
        self, log: Log, position: JournalPosition, ledger: Ledger, begun: Callable[[int], Any]
    ) -> None: ...
    def expect(self) -> None: ...
    def append(self, type: int, body: bytes) -> None: ...
    def restate(self, type: int, body: bytes) -> None: ...
    def flush(self) -> int: ...
    def forget_sets(self) -> None: ...
    def finish(self) -> int: ...
    def close(self) -> None: ...
    def settle(self) -> None: ...
    def keep(self, message: Message) -> int: ...
    def give_up(self, number: int) -> None: ...
    def between_frames(self) -> int: ...
    def drop_copies(self, queue: int, numbers: Iterable[int]) -> None: ...

@final
class StoredQueueJournal(QueueJournal):
    id: int
    of_group: bool
    named: bool
    tried: dict[int, int] | None
    active: bool
    left: float
    def __init__(
        self, records: QueueRecords, id: int = 0, *, of_group: bool = False, named: bool = False
    ) -> None: ...
    def slots_were(self, slots: Iterable[tuple[int, int, int, bytes]]) -> None: ...
    def options(self) -> list[tuple[int, tuple[int, int, bytes]]]: ...
    def restate_slots(self) -> None: ...
    def tried_before(self, number: int, deliveries: int) -> None: ...
