from typing import final

@final
class RouteChanges:
    generation: int
    def __init__(self, separators: bytes, ones: bytes, hides: tuple[bool, bool]) -> None: ...

@final
class RouteChange: ...
