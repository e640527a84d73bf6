from collections.abc import Callable
from typing import Any

from fanlight_broker.wire.journal import JournalPosition

DURABILITIES: dict[str | None, int]

class Receiver:
    pending_acks: int

class Receipts:
    count: int
    most: int
    closed: bool
    recording: bool
    journaling: bool
    position: JournalPosition
    durability: int
    recorded: int
    begun: Callable[[], Any] | None
    def __init__(
        self, most: int, begun: Callable[[], Any] | None = None, position: JournalPosition | None = None,
        durability: str | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def full(self) -> bool: ...
    def call(
        self, then: Callable[[], Any], recorded: int, receiver: Receiver | None = None, synced: int = 0
    ) -> None: ...
    def reaches(self, position: int) -> bool: ...
    def release(self, recorded: int = 0) -> None: ...
    def forget(self, receiver: Receiver) -> None: ...
