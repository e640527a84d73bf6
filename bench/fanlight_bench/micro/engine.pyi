"""The loops in C; match.py and research/matchers/fanlight_matchers ask them."""

from collections.abc import Sequence

import numpy
from numpy.typing import NDArray

from matchcore import FilterIndex

def match_ns(
    index: FilterIndex, topics: Sequence[str | bytes], *, syntax: str = "amqp", passes: int = 5, any: bool = False
) -> tuple[float, float]: ...
def spread_ns(
    index: FilterIndex, topics: Sequence[str | bytes], *, syntax: str = "amqp", passes: int = 9
) -> NDArray[numpy.int64]: ...
def held_ns(index: FilterIndex, *, passes: int = 5) -> float: ...
def mix(
    index: FilterIndex,
    topics: Sequence[str | bytes],
    filters: list[bytes],
    ids: Sequence[int],
    *,
    reads: int,
    operations: int,
    seed: int = 1,
    part: int = 0,
    parts: int = 1,
    syntax: str = "amqp",
) -> float: ...
def nothing(topic: str | bytes, *, syntax: str = "amqp") -> None: ...
