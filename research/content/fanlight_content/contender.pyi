from collections.abc import Sequence

from fanlight_content.selections import Asked, Selections

class Contender:
    """A way to find the selectors that are true of a message. See contender.pxd."""

    def __init__(self, selections: Selections, over_all: bool = False) -> None: ...
    @property
    def over_all(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...

class Contest:
    """The selectors of a workload, in contenders of one kind."""

    def __init__(
        self,
        selections: Selections,
        kind: type[Contender],
        over_all: bool = False,
        few: type[Contender] | None = None,
    ) -> None: ...
    def match(self, asked: Asked) -> tuple[int, ...]: ...
    def ask(self, asked: Sequence[Asked], times: int = 1) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def selections(self) -> Selections: ...
    @property
    def over_all(self) -> bool: ...
