from collections.abc import Callable
from typing import Any, Final, final

REVOKED: Final = 536870912
MAY_PUBLISH: Final = 0
MAY_RETAIN: Final = 1
MAY_REQUEST: Final = 2

@final
class Validity:
    over: bool

@final
class Badge:
    grant: Any
    validity: Validity
    number: int
    ask: Callable[[int, bytes, int], bool]
    holders: int
    @property
    def revoked(self) -> bool: ...
    def __init__(
        self, grant: Any, number: int, ask: Callable[[int, bytes, int], bool], validity: Validity
    ) -> None: ...
