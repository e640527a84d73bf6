from typing import Any, final

from fanlight_broker.wire.ledger import Ledger, Meter
from fanlight_broker.wire.token_bucket import BucketChain

POLICIES: tuple[str, ...]
BURST: int
PAUSES: int

class Sink:
    def flush_now(self) -> None: ...

class Owner: ...

@final
class Outbox:
    meter: Meter
    pace: BucketChain | None
    delivery: BucketChain | None
    sits_out: bool
    limit: int
    frame_max: int
    size: int
    awaiting_credit: int
    control_size: int
    messages: int
    dead: int
    passed_bytes: int
    capacity: int
    frames_capacity: int
    dirty: bool
    closed: bool
    patient: bool
    exempt: int
    pausing: bool
    choked: bool
    stuck: bool
    crowded: bool
    refill: bool
    noticed: bool
    sent: int
    dropped: int
    overflows: int
    lost: int
    published: int
    published_bytes: int
    bytes_out: int
    doomed: bool
    evicted: dict[int, int]
    sink: Sink | None
    fault: Exception | None
    owner: Any
    def __init__(self, ledger: Ledger, limit: int, policy: str, owner: Any = None) -> None: ...
    @property
    def policy(self) -> str: ...
    @policy.setter
    def policy(self, policy: str) -> None: ...
    @property
    def half_full(self) -> bool: ...
    def write(self, frame: bytes) -> None: ...
    def clean(self) -> None: ...
    def rest(self) -> None: ...
    def read(self, at_most: int = ...) -> bytes: ...
    def hold_back(self, publisher: Outbox | None = None) -> bool: ...
    def hold_publishers(self) -> None: ...
    def drained(self) -> bool: ...
    def sit_no_more(self) -> None: ...
    def lose_patience(self) -> None: ...
    @property
    def losable(self) -> int: ...
    def pin(self) -> None: ...
    def ask_for_more(self) -> None: ...
    def close(self) -> None: ...
    def discard(self, last: bytes | None = None) -> int: ...
