from typing import Any, Protocol, final, type_check_only

from fanlight_broker.storage.number_list import NumberList
from fanlight_broker.storage.stored_queue import StoredQueueJournal
from fanlight_broker.storage.wanted import Wanted
from fanlight_broker.wire.backlog import Backlog
from fanlight_broker.wire.message import Variant
from fanlight_broker.wire.queue import Queue

@type_check_only
class Asked(Protocol):
    def ask(self, backlog: Any) -> Any: ...
    def ask_since(self, backlog: Any) -> Any: ...

@final
class StoredBacklog(Backlog):
    numbers: NumberList
    asked: bool
    ttl: float
    reads_expired: bool
    def __init__(self, journal: StoredQueueJournal, pager: Asked) -> None: ...
    def want(self, wanted: Wanted, octets: int, last: int, skip: int = 0) -> int: ...
    def hand_over(
        self, queue: Queue, wanted: Wanted, begin: int, end: int, variants: dict[int, Variant], now: float,
        ahead: float, most: int,
    ) -> None: ...
    @property
    def first(self) -> int: ...
    def came(self, number: int, since: float | None) -> None: ...
    def forget(self) -> None: ...
    def restore(self, numbers: NumberList) -> None: ...
