from typing import Any

import numpy
import numpy.typing

__all__ = ["encode_rows", "encode_slices"]

def encode_rows(ids: numpy.typing.NDArray[numpy.uint32], bounds: numpy.typing.NDArray[numpy.int64]) -> bytes: ...
def encode_slices(known: numpy.typing.NDArray[numpy.uint8], digits: list[Any], basis: list[int]) -> bytes: ...
