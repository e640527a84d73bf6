import re
from pathlib import Path

from fanlight_broker.storage.segments import LogError

INDEX_NAME: re.Pattern[str]

class DamagedIndex(LogError):
    path: Path
    offset: int
    what: str

def index_path(path: Path) -> Path: ...
def index_fault(path: Path) -> DamagedIndex | None: ...
def make_index(path: Path) -> None: ...
