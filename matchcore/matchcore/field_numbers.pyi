from collections.abc import Sequence

from matchcore.message_rows import MessageRows
from matchcore.record_columns import NumberColumn
from matchcore.selector import Attribute

__all__ = ["FieldNumbers"]

class FieldNumbers:
    fields: tuple[Attribute, ...]
    def __init__(self, fields: Sequence[Attribute]) -> None: ...
    @property
    def asks_bodies(self) -> bool: ...
    def add(self, rows: MessageRows, first: int) -> None: ...
    def columns(self, records: int) -> list[NumberColumn | None]: ...
