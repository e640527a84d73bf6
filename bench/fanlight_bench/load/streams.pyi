from fanlight_bench.load.shared_counters import SharedCounters
from fanlight_bench.load.histogram import Histogram

HEADER_BYTES: int
DIGITS_COUNT: int

class Streams:
    shared: SharedCounters
    latency: Histogram
    payload_bytes: int
    def __init__(self, shared: SharedCounters, worker: int, payload_bytes: int) -> None: ...
    def add_subscriber(self, *, slow: bool = False, aliases: int = 0) -> int: ...
    def add_stream(
        self,
        topic: bytes,
        fan_out: int,
        *,
        reach: int | None = None,
        digits_at: int = -1,
        properties: bytes = b"",
        frame: tuple[bytes, int, int, int] | None = None,
        later: tuple[bytes, int, int, int] | None = None,
        last: int | None = None,
    ) -> int: ...
    def expect(self, subscriber: int, stream: int, subscription: int) -> None: ...
