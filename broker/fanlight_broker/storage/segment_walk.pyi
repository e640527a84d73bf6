from pathlib import Path
from typing import NamedTuple

class Gap(NamedTuple):
    offset: int
    end: int
    sequence: int
    number: int

class Walk(NamedTuple):
    entries: int
    end: int
    gaps: list[Gap]

def walk(path: Path) -> Walk | None: ...
