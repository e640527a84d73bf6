from matchcore.body_reader import BodyCounts
from matchcore.fields import Attributes, Fields

__all__ = ["MessageReader", "MessageRows"]

class MessageRows:
    count: int
    def __init__(self, batch: object, formats: bytes | None = None) -> None: ...
    def __len__(self) -> int: ...

class MessageReader:
    attributes: Attributes
    fields: Fields
    def __init__(self, attributes: Attributes, counts: BodyCounts) -> None: ...
    def read_row(self, rows: MessageRows, row: int) -> Fields: ...
