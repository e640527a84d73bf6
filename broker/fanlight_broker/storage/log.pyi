from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fanlight_broker.storage.disk import Disk
from fanlight_broker.storage.log_reader import Damage

def milliseconds() -> int: ...

class Log:
    appended: int
    written: int
    synced: int
    number: int
    buffered: int
    buffer_bytes_max: int
    trouble: str | None
    folder: Path
    groups: int
    bytes_written: int
    threaded: bool
    def __init__(
        self,
        folder: Path | str,
        progressed: Callable[[], Any],
        *,
        segment_bytes: int = ...,
        group_bytes_max: int = ...,
        buffer_bytes_max: int = ...,
        clock: Callable[[], int] | None = None,
        salt: int | None = None,
        disk: Disk | None = None,
        threaded: bool = True,
    ) -> None: ...
    @property
    def damage(self) -> list[Damage]: ...
    @property
    def full(self) -> bool: ...
    def replay(self, after: int = 0) -> Iterator[tuple[int, int, int, bytes]]: ...
    def append(self, type: int, body: bytes | bytearray | memoryview) -> int: ...
    def seal(self) -> int: ...
    def fileno(self) -> int: ...
    def collect(self) -> None: ...
    def retry(self) -> None: ...
    def work(self) -> bool: ...
    def close(self) -> None: ...
