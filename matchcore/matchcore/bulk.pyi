from matchcore.filters import FilterIndex

__all__ = ["insert_many"]

def insert_many(index: FilterIndex, filters: list[bytes], ids: list[int], syntax: str) -> None: ...
