from typing import Any

from matchcore.body_reader import BodyCounts
from matchcore.message_rows import MessageRows
from matchcore.selector import Selector

__all__ = ["RowScreener"]

class RowScreener:
    def __init__(self, selector: Selector, counts: BodyCounts | None = None) -> None: ...
    @property
    def asks_bodies(self) -> bool: ...
    def true_of(self, rows: MessageRows) -> Any: ...
