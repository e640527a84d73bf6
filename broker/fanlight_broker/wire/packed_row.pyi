from typing import Any, Protocol, final, type_check_only

from fanlight_broker.wire.backlog import Backlog
from fanlight_broker.wire.ledger import Account, Ledger

@type_check_only
class Pages(Protocol):
    def write(self, octets: bytes, /) -> Any: ...
    def read(self, place: Any, size: int, /) -> bytes | None: ...
    def free(self, place: Any, /) -> None: ...
    def expect(self, place: Any, /) -> None: ...

@final
class Place: ...

@final
class PackedRow(Backlog):
    held: int
    pages: Pages | None
    paged: int
    def __init__(
        self, ledger: Ledger, account: Account | None = None, chunk_bytes: int = ..., pages: Pages | None = None,
        memory_most: int = ...,
    ) -> None: ...
