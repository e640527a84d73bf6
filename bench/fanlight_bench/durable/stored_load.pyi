from fanlight_bench.load.histogram import Histogram
from fanlight_bench.load.protocol import Dialect

class StoredLoad:
    latency: Histogram
    published: int
    acknowledged: int
    received: int
    right: int
    missing: int
    repeated: int
    misrouted: int
    damaged: int
    wrong_acknowledgements: int
    refused: int
    closed: int
    def __init__(
        self,
        dialect: Dialect,
        publishes: list[tuple[bytes, int, int, int]],  # a frame; where payload, number and topic's digits begin
        consumers: list[int],
        *,
        payload_bytes: int = 256,
        topics: int = 1,
        window: int = 1,
        behind: int = 0,
    ) -> None: ...
    def attach_publisher(self, number: int, fd: int, rest: bytes = b"") -> None: ...
    def attach_consumer(self, number: int, fd: int, rest: bytes = b"") -> None: ...
    def start(self) -> None: ...
    def detach(self) -> None: ...
    def begin(self) -> None: ...
    def run(self, seconds: float, messages: int = 0) -> None: ...
    def drain(self, seconds: float, deliveries: int) -> bool: ...
    def published_to(self, topic: int) -> int: ...
    def broken(self) -> bool: ...
    def complaint(self) -> bytes: ...
