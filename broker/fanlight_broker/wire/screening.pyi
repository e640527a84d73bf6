from typing import Any, final

@final
class FilterScreen:
    filter: bytes
    syntax_number: int
    screen: Any
    ids: set[int]
    id: int
    def __init__(self, filter: bytes, syntax: int, screen: object) -> None: ...
    def add(self, id: int) -> None: ...
    def remove(self, id: int) -> None: ...

@final
class RouteScreens:
    screens: list[FilterScreen]
    plain: bytes
    format: int
    def __init__(self, screens: list[FilterScreen], plain: bytes) -> None: ...

class Screener: ...
