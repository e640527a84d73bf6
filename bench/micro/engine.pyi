"""The loop in C; match.py asks it."""

from collections.abc import Sequence

from matchcore import FilterIndex

def match_ns(
    index: FilterIndex, topics: Sequence[str | bytes], *, syntax: str = "amqp", passes: int = 5, any: bool = False
) -> tuple[float, float]: ...
