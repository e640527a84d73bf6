from dataclasses import dataclass
from pathlib import Path

@dataclass(frozen=True, slots=True)
class Damage:
    path: Path
    offset: int
    first: int
    last: int

class LogReader:
    damage: list[Damage]
    sequence: int
    number: int
    time: int
    position: int
    type: int
    size: int
    @property
    def last(self) -> int: ...
