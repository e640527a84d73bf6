from collections.abc import Mapping
from typing import Protocol, final

from fanlight_broker.wire.message import Message
from matchcore.fields import Attributes, Fields

__all__ = ["BODY_FORMATS", "BodyCounts", "FieldReader", "body_format"]

BODY_FORMATS: Mapping[str, int]

class _Publisher(Protocol):
    @property
    def name(self) -> str | None: ...
    @property
    def user(self) -> str | None: ...

def body_format(content_type: str) -> int: ...

@final
class BodyCounts:
    decoded: int
    malformed: int
    too_large: int

class FieldReader:
    attributes: Attributes
    fields: Fields
    bodies: BodyCounts
    def __init__(self, attributes: Attributes, bodies: BodyCounts | None = None) -> None: ...
    def read_fields(
        self, message: Message, format: int = 0, publisher: _Publisher | None = None, time: float = 0.0
    ) -> Fields: ...
    def values(self) -> dict[int, object]: ...
