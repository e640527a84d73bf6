from collections.abc import Callable
from typing import Any

from fanlight_broker.storage.log import Log
from fanlight_broker.storage.stored_queue import QueueRecords
from fanlight_broker.wire.journal import JournalPosition

class SealedTurns:
    syncing: bool
    low: str | None
    pager: Any
    def __init__(
        self, log: Log, records: QueueRecords, position: JournalPosition, durability: str, *,
        changed: Callable[[], Any], failed: Callable[[], Any],
    ) -> None: ...
    def seal(self) -> int: ...
    def progress(self) -> int: ...
