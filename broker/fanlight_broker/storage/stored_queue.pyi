from collections.abc import Callable, Iterable
from typing import Any, final

from fanlight_broker.storage.log import Log
from fanlight_broker.wire.journal import JournalPosition, QueueJournal
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message

SOME_TIME_LEFT: int
AT_ONCE: int

class QueueRecords:
    log: Log
    position: JournalPosition
    wall: float
    last_number: int
    last_queue: int
    last_slot: int
    last_set: int
    error: BaseException | None
    haste: int
    messages: int
    def __init__(
        self, log: Log, position: JournalPosition, ledger: Ledger, begun: Callable[[int], Any]
    ) -> None: ...
    def append(self, type: int, body: bytes, message: Message | None = None) -> None: ...
    def finish(self) -> None: ...
    def take_in(self, message: Message, octets: int) -> None: ...
    def drop_copies(self, queue: int, numbers: Iterable[int]) -> None: ...

@final
class StoredQueueJournal(QueueJournal):
    id: int
    of_group: bool
    active: bool
    def __init__(self, records: QueueRecords, id: int = 0, *, of_group: bool = False) -> None: ...
    def slots_were(self, slots: Iterable[tuple[int, int, int, bytes]]) -> None: ...
    def options(self) -> list[tuple[int, tuple[int, int, bytes]]]: ...
    def lost(self, number: int) -> None: ...
