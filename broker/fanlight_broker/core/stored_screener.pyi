from collections.abc import Callable
from typing import Protocol

from fanlight_broker.wire.message import Message
from matchcore.body_reader import BodyCounts
from matchcore.selector import Selector

__all__ = ["StoredScreener"]

class _Publisher(Protocol):
    @property
    def name(self) -> str | None: ...
    @property
    def user(self) -> str | None: ...

class StoredScreener:
    def __init__(
        self, selector: Selector, bodies: BodyCounts, body_formats: Callable[[bytes, int], int] | None = None
    ) -> None: ...
    def is_true_of(self, message: Message, publisher: _Publisher | None = None, time: float = ...) -> bool: ...
