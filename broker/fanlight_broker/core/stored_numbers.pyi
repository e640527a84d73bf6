from collections.abc import Callable, Sequence
from typing import Protocol

from fanlight_broker.wire.message import Message
from matchcore.selector import Attribute

__all__ = ["StoredNumbers"]

class _Publisher(Protocol):
    @property
    def name(self) -> str | None: ...
    @property
    def user(self) -> str | None: ...

class StoredNumbers:
    def __init__(
        self, fields: Sequence[Attribute], body_formats: Callable[[bytes, int], int] | None = None
    ) -> None: ...
    def read(
        self, message: Message, publisher: _Publisher | None = None, time: float = ...
    ) -> list[int | float | None]: ...
