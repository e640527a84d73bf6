from matchcore.filters import FilterIndex

__all__ = ["least_id"]

def least_id(index: FilterIndex, keys: tuple[bytes, ...], topic: bytes, syntax: str) -> int | None: ...
