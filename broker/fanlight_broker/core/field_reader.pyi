from typing import Protocol

from fanlight_broker.wire.message import Message
from matchcore.body_reader import BodyCounts
from matchcore.fields import Attributes, Fields

__all__ = ["FieldReader"]

class _Publisher(Protocol):
    @property
    def name(self) -> str | None: ...
    @property
    def user(self) -> str | None: ...

class FieldReader:
    attributes: Attributes
    fields: Fields
    bodies: BodyCounts
    def __init__(self, attributes: Attributes, bodies: BodyCounts | None = None) -> None: ...
    def read_fields(
        self, message: Message, format: int = 0, publisher: _Publisher | None = None, time: float = 0.0
    ) -> Fields: ...
    def values(self) -> dict[int, object]: ...
