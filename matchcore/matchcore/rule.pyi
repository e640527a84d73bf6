from typing import Any, final

from matchcore.selector import Selector

__all__ = ["Rule"]

@final
class Rule:
    """A selector with a salience and a result. Two are equal if they are the same rule of one index."""

    @property
    def result(self) -> Any: ...
    @property
    def name(self) -> str | None: ...
    @property
    def number(self) -> int: ...
    @property
    def salience(self) -> int | float: ...
    @property
    def selector(self) -> Selector: ...
    @property
    def topic(self) -> str | bytes: ...
    @property
    def syntax(self) -> str: ...
