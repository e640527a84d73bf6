from matchcore.filters import FilterIndex

__all__ = ["least_id"]

_Named = tuple[bytes, tuple[tuple[int, tuple[bytes, ...]], ...]]

def least_id(
    index: FilterIndex, keys: tuple[bytes, ...], topic: bytes, syntax: str, named: tuple[_Named, ...] = ...
) -> int | None: ...
