from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["KEYS_MOST", "KINDS", "PRESENT", "JsonColumns"]

KEYS_MOST: Final[int]
KINDS: Final[tuple[str, ...]]
PRESENT: Final[tuple[str | None, ...]]

class JsonColumns:
    def __init__(self, keys: Sequence[bytes], kinds: bytes) -> None: ...
    def read(
        self, ends: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]
    ) -> tuple[list[tuple[npt.NDArray[Any], ...]], npt.NDArray[np.bool_]]: ...
