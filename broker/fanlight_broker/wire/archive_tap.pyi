from collections.abc import Callable, Sequence
from typing import Any, final

from fanlight_broker.wire.message import Message

@final
class Columns:
    rows: int
    rows_max: int
    octets: int
    first: int
    owners: list[Any]
    extras: dict[int, Message]
    @property
    def end(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def buffers(self) -> dict[str, tuple[int, int]]: ...

@final
class ArchiveTap:
    batch: Columns | None
    rows_max: int
    batch_bytes_max: int
    bytes_max: int
    bytes: int
    taken: int
    dropped: int
    unspellable: int
    utc: float
    begun: Callable[[], Any]
    full: Callable[[Columns], Any]
    def __init__(
        self,
        *,
        rows_max: int,
        bytes_max: int,
        batch_bytes_max: int,
        begun: Callable[[], Any],
        full: Callable[[Columns], Any],
    ) -> None: ...
    def within(self, before: Sequence[Any]) -> ArchiveTap: ...  # octets; `bytes` is an attribute here
    @property
    def crowded(self) -> bool: ...
    def flush(self) -> None: ...
    def free_bytes(self, octets: int) -> None: ...
