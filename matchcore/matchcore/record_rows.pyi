from collections.abc import Sequence
from typing import Any, final

import numpy
import numpy.typing
from typing_extensions import Buffer

__all__ = ["RowSection", "answer"]

ZERO: int
ONES: int
AND: int
OR: int
COPY: int
OR_ROW: int
AND_ROW: int
SKIP_IF_EMPTY: int
AND_NOT: int

_Steps = Sequence[tuple[int, int, int]] | numpy.typing.NDArray[numpy.int32]

@final
class RowSection:
    """Rows in bytes that are lent: their owner must not change them. ValueError: the bytes are no section."""

    def __init__(self, data: Buffer) -> None: ...
    @property
    def count(self) -> int: ...
    def __len__(self) -> int: ...

def answer(
    records: int, program: _Steps, rows: list[tuple[RowSection, int]], each: list[tuple[RowSection, int]] | None = None,
    want_ids: bool = False,
) -> Any: ...
