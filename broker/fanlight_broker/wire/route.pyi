from collections.abc import Sequence
from typing import final

from fanlight_broker.wire.archive_tap import ArchiveTap
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.retained import RetainedEntry
from fanlight_broker.wire.screening import RouteScreens
from fanlight_broker.wire.target import Members, Target

@final
class QueuesBehind:
    queues: list[NamedQueue]
    valid: bool
    def __init__(self, queues: list[NamedQueue]) -> None: ...

@final
class Route:
    key: bytes
    targets: list[Target]
    groups: list[Members]
    nbytes: int
    is_text: bool
    hits: int
    tap: ArchiveTap | None
    retained: RetainedEntry | None
    screens: RouteScreens | None
    filtered: bool
    behind: QueuesBehind | None
    def __init__(
        self, key: bytes, targets: list[Target], groups: Sequence[Members], screens: RouteScreens | None = None
    ) -> None: ...
    def with_queues(self, queues: list[NamedQueue]) -> Route: ...
    @property
    def ruled(self) -> bool: ...
    def trace(self) -> None: ...
    def __len__(self) -> int: ...
    def is_refused(self, ledger: Ledger, message: Message) -> bool: ...
    def has_room(self, ledger: Ledger, publisher: Outbox | None, message: Message) -> bool: ...
    def stores(self, qos: int) -> bool: ...
    def blocker_of(self, publisher: Outbox | None) -> Outbox | None: ...
