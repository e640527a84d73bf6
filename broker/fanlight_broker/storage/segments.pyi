import re
from pathlib import Path

NAME: re.Pattern[str]

class LogError(Exception): ...

class Segment:
    path: Path
    generation: int
    capacity: int
    first: int
    last: int
    end: int
    live: int
    damaged: bool

class SegmentReader: ...
