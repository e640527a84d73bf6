from dataclasses import dataclass
from pathlib import Path

from fanlight_broker.storage.entry_reader import EntryCursor

@dataclass(frozen=True, slots=True)
class Damage:
    path: Path
    offset: int
    first: int = 0
    last: int = 0

class LogReader(EntryCursor):
    damage: list[Damage]
    @property
    def last(self) -> int: ...
