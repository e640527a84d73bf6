from typing import final

from fanlight_broker.wire.backlog import Backlog
from fanlight_broker.wire.consumers import Consumers
from fanlight_broker.wire.flight import Source
from fanlight_broker.wire.journal import QueueJournal
from fanlight_broker.wire.ledger import Account, Ledger
from fanlight_broker.wire.message import Message, Variant

@final
class Queue:
    messages_max: int
    bytes_max: int
    drop_oldest: bool
    buries_newest: bool
    in_order: bool
    by_bodies: bool
    reads_dropped: int
    ttl: float
    apart: int
    nbytes: int
    group: Consumers | None
    mortal: int
    sifted: int
    dropped: int
    expired: int
    account: Account | None
    journal: QueueJournal | None
    backlog: Backlog | None
    idle: bool
    priorities: int
    wanting: int
    def __init__(
        self, ledger: Ledger, messages_max: int, bytes_max: int, drop_oldest: bool = False,
        account: Account | None = None,
    ) -> None: ...
    def prioritize(self, priorities: int) -> None: ...
    def charge_to(self, account: Account | None) -> None: ...
    def __len__(self) -> int: ...
    def filled(self, quarters: int) -> bool: ...
    def waiting(self) -> list[Message]: ...
    def fetched(
        self, messages: list[tuple[Message, Variant | None, int, int, float]], removed: int, octets: int, now: float
    ) -> None: ...
    def trim(self, most: int = ...) -> bool: ...
    def drop(self, most: int) -> bool: ...
    def report(self) -> None: ...
    def backlog_restored(self) -> None: ...
    def restore(
        self, message: Message, variant: Variant | None, number: int, since: float = 0.0, attempt: int = 0
    ) -> None: ...

@final
class Consumer(Source):
    queue: Queue
    variant: Variant
    taken: int
    def __init__(self, queue: Queue, variant: Variant) -> None: ...
