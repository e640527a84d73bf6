from collections.abc import Iterator

class Filters:
    packet_id: int
    identifier: bytes
    def __iter__(self) -> Iterator[tuple[bytes, int]]: ...
    def __next__(self) -> tuple[bytes, int]: ...

def filters_of(
    body: bytes, *, subscribe: bool, has_properties: bool, filter_suffix: bool = False
) -> Filters | None: ...
