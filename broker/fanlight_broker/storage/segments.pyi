import re
from pathlib import Path

NAME: re.Pattern[str]

class LogError(Exception): ...
class DamagedHeader(LogError): ...

class Segment:
    path: Path
    generation: int
    floor: int
    capacity: int
    first: int
    last: int
    first_number: int
    end: int
    damaged: bool
    bodies: bool
    range_first: int
    range_end: int
    messages: int
    indexed: bool
    places: list[tuple[int, int, int]]
    index_bytes: int

class SegmentReader: ...
