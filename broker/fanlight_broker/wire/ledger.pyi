from collections.abc import Callable
from typing import Any, final

from fanlight_broker.wire.target import Target
from fanlight_broker.wire.outbox import Outbox

NO_QUOTA: int

class Pot:
    name: str
    used: int
    limit: int
    refused: int
    share: float
    refused_shares: int
    def __init__(self, name: str, limit: int = ...) -> None: ...
    def reserve(self, octets: int) -> bool: ...
    def add(self, octets: int) -> None: ...
    def refund(self, octets: int) -> None: ...
    @property
    def full(self) -> bool: ...
class Meter:
    messages_in: int
    messages_out: int
    bytes_in: int
    bytes_out: int

@final
class PotShare(Pot):
    whole: Pot
    most: int
    def __init__(self, whole: Pot, root: PotShare | None = None) -> None: ...
    def adopt(self, octets: int) -> None: ...
    def join(self, wider: tuple[PotShare, ...]) -> None: ...

@final
class Account:
    stored: int
    retained: int
    most: int
    retained_most: int
    refused: int
    def __init__(self, root: Account | None = None, by_quota: bool = False) -> None: ...
    def keep(self, octets: int) -> None: ...
    def retain(self, octets: int) -> None: ...
    def join(self, wider: tuple[Account, ...]) -> None: ...

class JournalHead: ...

class Ledger:
    meter: Meter
    journal: JournalHead | None
    recipients: int
    retained: int
    now: float
    standstill: float
    turn_ends: float
    turn_cpu_max: float
    restricted: bool
    clock: Callable[[], float] | None
    used: int
    limit: int
    inboxes: Pot
    secured: Pot
    handshakes: Pot
    sessions: Pot
    subscriptions: Pot
    @property
    def pots(self) -> tuple[Pot, ...]: ...
    stored: int
    stored_messages: int
    stored_limit: int
    stored_share: float
    turned_away: int
    unkept: bool
    pausing: int
    messages_in: int
    messages_out: int
    bytes_in: int
    bytes_out: int
    receipts: int
    unroutable: int
    filtered: int
    dropped_newest: int
    dropped_oldest: int
    dropped_credit: int
    dropped_disconnect: int
    dropped_unspellable: int
    dropped_too_large: int
    dropped_fault: int
    dropped_queue: int
    dropped_share: int
    dropped_absent: int
    dropped_session: int
    expired: int
    acknowledged: int
    refused: int
    redelivered: int
    payload_in: int
    payload_out: int
    dirty: list[Outbox]
    attention: list[Outbox]
    ended: list[Target]
    graves: list[Any]
    faults: list[Outbox]
    def __init__(self, limit: int, schedule: Callable[[], Any], stored_limit: int = ...) -> None: ...
    def turn_over(self) -> bool: ...
    def awake(self, now: float) -> float: ...
    def pop_dirty(self) -> list[Outbox]: ...
    def pop_attention(self) -> list[Outbox]: ...
    def pop_short(self) -> list[Account]: ...
    def pop_ended(self) -> list[Target]: ...
    def pop_graves(self) -> list[Any]: ...
    def pop_faults(self) -> list[Outbox]: ...
    def keep(self, octets: int) -> None: ...
    def count_in(self, octets: int) -> None: ...
    def count_out(self, octets: int) -> None: ...
    def count_receipt(self) -> None: ...
    def messages_by_recipients(self) -> list[tuple[float, int]]: ...
