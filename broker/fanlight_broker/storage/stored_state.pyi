from typing import final

from fanlight_broker.storage.facts import SessionFact, SubscriptionFact
from fanlight_broker.storage.waiting_numbers import WaitingNumbers

@final
class StoredFlight:
    slot: int
    tag: int
    tag_only: bool

@final
class StoredQueue:
    id: int
    waiting: WaitingNumbers
    def __init__(self, id: int) -> None: ...
    @property
    def empty(self) -> bool: ...
    @property
    def flights(self) -> dict[tuple[int, int], StoredFlight]: ...
    @property
    def tried(self) -> dict[int, tuple[int, int]]: ...

@final
class StoredSession:
    queue: StoredQueue
    @property
    def fact(self) -> SessionFact: ...
    @property
    def subscriptions(self) -> dict[int, SubscriptionFact]: ...
    def filters_in_order(
        self
    ) -> list[tuple[int, int, bytes, int, str | None, int, bool, int, bytes, str | None]]: ...
    @property
    def subscription_count(self) -> int: ...
    @property
    def unreleased(self) -> set[int]: ...
    @property
    def nbytes(self) -> int: ...

@final
class StoredSlot:
    number: int
    queue: int
    quality: int
    retain: int
    identifiers: bytes | None
    @property
    def variant(self) -> tuple[int, int, bytes] | None: ...
