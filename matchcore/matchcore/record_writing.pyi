from typing import Any

import numpy
import numpy.typing

__all__ = ["encode_bits", "encode_rows", "encode_slices"]

def encode_bits(
    known: numpy.typing.NDArray[numpy.uint8], codes: numpy.typing.NDArray[numpy.uint64], bits: int
) -> bytes: ...
def encode_rows(ids: numpy.typing.NDArray[numpy.uint32], bounds: numpy.typing.NDArray[numpy.int64]) -> bytes: ...
def encode_slices(known: numpy.typing.NDArray[numpy.uint8], digits: list[Any], basis: list[int]) -> bytes: ...
