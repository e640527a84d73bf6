"""fanlight_broker.wire.collector, compiled. The drawing is in collector.pxd."""

class Collector:
    reference_bytes: int
    room_least: int
    off: bool
    runs: int
    joined: int
