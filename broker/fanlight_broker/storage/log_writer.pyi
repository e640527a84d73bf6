from fanlight_broker.storage.tally import Tally

SYNC_SECONDS: tuple[float, ...]
GROUP_ENTRIES: tuple[float, ...]
GROUP_BYTES: tuple[float, ...]

SPIN_SECONDS: float

def processors() -> int: ...

class LogWriter:
    syncing: bool
    wakes_early: bool
    groups: int
    bytes_written: int
    unsure: int
    spins: int
    spins_in_vain: int
    spin_seconds: float
    sync_seconds: Tally
    group_entries: Tally
    group_bytes: Tally
    def write_until_stopped(self) -> None: ...
    def retry(self) -> None: ...
    def sync(self) -> None: ...
