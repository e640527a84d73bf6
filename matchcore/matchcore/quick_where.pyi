"""The texts that most selectors have, read in C."""

from matchcore.selector import Selector

__all__ = ["read_quickly"]

class Left(Exception): ...

def read_quickly(text: str | bytes) -> Selector | None: ...
