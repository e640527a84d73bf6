from collections.abc import Callable
from typing import Any

from fanlight_broker.core.topics import Canonical
from fanlight_broker.storage.facts import DeclarationFact, GroupFact, MarkFact, QueueFact
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.stored_state import StoredQueue, StoredSession, StoredSlot
from fanlight_broker.wire.due_table import DueTable

def type_name(type: int) -> str: ...

class Image:
    sessions: dict[int, StoredSession]
    groups: dict[int, GroupFact]
    named: dict[int, QueueFact]
    queues: dict[int, StoredQueue]
    slots: dict[int, StoredSlot]
    retained: dict[Canonical | tuple[str, Canonical], bytes]
    marks: dict[tuple[str, str], MarkFact]
    declarations: dict[tuple[str, bytes], DeclarationFact]
    delayed: DueTable
    delayed_publishers: dict[tuple[str, str, str, bool, str | None], int]
    last_number: int
    last_queue: int
    last_slot: int
    last_set: int
    applied: int
    share: float
    @property
    def messages(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def read(self, log: Log, after: int = 0, progress: Callable[[Image], Any] | None = None) -> None: ...
    def apply(self, type: int, body: bytes) -> None: ...
