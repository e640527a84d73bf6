from collections.abc import Iterable

from bench.deliveries import Deliveries

class Generator:
    deliveries: Deliveries
    window: int
    batch: int
    receipts: bool
    latency: bool
    requested: int
    answered: int
    wrong_receipts: int
    closed_by_broker: int
    refused: int
    schedule_lag_ns: int
    def __init__(
        self,
        *,
        payload_bytes: int = 64,
        window: int = 20_000,
        batch: int = 32,
        receipts: bool = False,
        latency: bool = False,
    ) -> None: ...
    def add_subscriber(self, fd: int, subscription: int) -> int: ...
    def add_publisher(self, fd: int) -> int: ...
    def add_stream(
        self, publisher: int, topic: bytes, frame: bytes, payload_at: int, subscribers: Iterable[int]
    ) -> int: ...
    def start(self) -> None: ...
    def run(self, seconds: float, rate: float = 0.0) -> None: ...
    def drain(self, seconds: float) -> bool: ...
    def counters(self) -> dict[str, int]: ...
    def complaint(self) -> bytes: ...
    def quantile(self, share: float) -> float: ...
    def forget_latency(self) -> None: ...
