import re
from pathlib import Path

NAME: re.Pattern[str]

class LogError(Exception): ...
class DamagedHeader(LogError): ...

class Segment:
    path: Path
    generation: int
    capacity: int
    first: int
    last: int
    first_number: int
    end: int
    damaged: bool

class SegmentReader: ...
