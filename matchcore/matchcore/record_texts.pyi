from typing import Any, final

import numpy
import numpy.typing
from typing_extensions import Buffer

__all__ = ["TextCodes", "group_by_code"]

@final
class TextCodes:
    """Collects a column. `rows`: how many texts came; `len` of it: how many distinct ones; `nbytes`."""

    def __init__(self, seed: int = 0) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __len__(self) -> int: ...
    def add(self, ends: Buffer, data: Buffer, first: int = 0, count: int = -1) -> None: ...
    def finish(self) -> tuple[numpy.typing.NDArray[numpy.uint32], list[bytes]]: ...

def group_by_code(
    codes: numpy.typing.NDArray[numpy.int32], place: numpy.typing.NDArray[numpy.int32]
) -> tuple[numpy.typing.NDArray[numpy.uint32], Any]: ...
