from pathlib import Path

from fanlight_broker.storage.compaction import Compaction
from fanlight_broker.storage.entry_reader import EntryReader
from fanlight_broker.storage.log_writer import LogWriter
from fanlight_broker.storage.segments import Segment

def place_of(segment: Segment) -> tuple[int, int]: ...

class Lot:
    first: int
    first_number: int
    nbytes: int
    messages: int
    live: int
    bodies: Segment | None

class LogLots(LogWriter):
    folder: Path
    synced: int
    lots: list[Lot]
    compactions: int
    compactions_given_up: int
    compacted_bytes: int
    uncompacted: Exception | None
    compaction: Compaction | None
    index_bytes_max: int
    indexes_read: int
    indexes_walked: int
    indexes_written: int
    unindexed: OSError | None
    index_faults: list[str]
    @property
    def index_bytes(self) -> int: ...
    @property
    def floor(self) -> int: ...
    @property
    def body_segments(self) -> int: ...
    def body_bytes(self) -> tuple[int, int]: ...
    def live(self, number: int, change: int) -> int: ...
    def raise_floor(self, sequence: int) -> None: ...
    def reclaim(self) -> int: ...
    def sparse(self) -> tuple[int, int] | None: ...
    def compact(self, first: int, end: int, live: bytes | bytearray | memoryview) -> bool: ...
    def locate(self, number: int) -> int: ...
    def locate_entry(self, sequence: int) -> int: ...
    def reader(self, read_bytes: int = 16384) -> EntryReader: ...
