from collections.abc import Callable, Sequence
from typing import Any, final

from fanlight_broker.wire.ledger import Account, Ledger
from fanlight_broker.wire.message import Message, Variant
from fanlight_broker.wire.target import Target

TOPICS_IN_PART: int

def place_bytes(message: Message) -> int: ...
def sums_of(found: list[tuple[Message, Any, str | None]]) -> dict[Any, tuple[int, int, int]]: ...
@final
class RetainedEntry:
    message: Message
    key: bytes | tuple[int, bytes]
    id: int
    revision: int
    own: bool
    origin: str | None
    share: Any
    account: Account | None
    deadline: float
    def end(self) -> None: ...
    def __init__(
        self, message: Message, key: bytes | tuple[int, bytes], id: int, own: bool, origin: str | None, share: Any
    ) -> None: ...

class RetainedTable:
    ledger: Ledger
    entries: list[RetainedEntry | None]
    by_key: dict[bytes | tuple[int, bytes], int]
    free: list[int]
    indexes: list[Any]
    own: int
    journal: Any
    revision: int
    retains: bool
    def __init__(self, ledger: Ledger, *arguments: Any) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def spell_with(
        self, syntaxes: tuple[str, ...], canonical: int, spell: Callable[[bytes, int], bytes | tuple[int, bytes]]
    ) -> None: ...
    def bound(
        self, retains: bool, most: int, bytes_max: int, bytes_percent: float, stored_percent: float, counted: int
    ) -> None: ...
    def put(
        self, message: Message, now: float, *, own: bool = False, share: Any = None, origin: str | None = None
    ) -> bool: ...
    def set(self, message: Message, now: float, share: Any, origin: str | None) -> RetainedEntry | None: ...
    def first_match(self, filter: bytes, syntax: int) -> tuple[int, Sequence[int]] | None: ...
    def extend(
        self, found: list[tuple[Message, Any, str | None]], keys: list[bytes | tuple[int, bytes]],
        ids: dict[bytes | tuple[int, bytes], int],
    ) -> list[RetainedEntry]: ...
    def has_room(self, target: Target) -> bool: ...
    def send(
        self, ids: Sequence[int], at: int, end: int, target: Target, variant: Variant, now: float, since: int,
        origin: str | None, shown: Callable[[Message], bool], always: bool = ...,
    ) -> tuple[int, int]: ...
    def schedule(self, entry: RetainedEntry) -> None: ...
