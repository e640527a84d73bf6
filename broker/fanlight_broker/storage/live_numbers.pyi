from typing import final

@final
class LiveNumbers:
    first: int
    end: int
    bits: bytearray
    def __init__(self, first: int, end: int) -> None: ...
