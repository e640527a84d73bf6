from typing import Any, Protocol, final, type_check_only

from fanlight_broker.storage.number_list import NumberList
from fanlight_broker.storage.stored_queue import StoredQueueJournal
from fanlight_broker.wire.backlog import Backlog

@type_check_only
class Asked(Protocol):
    def ask(self, backlog: Any) -> Any: ...

@final
class StoredBacklog(Backlog):
    numbers: NumberList
    asked: bool
    def __init__(self, journal: StoredQueueJournal, pager: Asked) -> None: ...
    def wanted(self, octets: int) -> list[tuple[int, int]]: ...
    def remove(self, count: int) -> int: ...
