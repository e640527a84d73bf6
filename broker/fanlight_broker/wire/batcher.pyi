from typing import final

"""fanlight_broker.wire.batcher, compiled. The drawing is in batcher.pxd."""

@final
class Batcher:
    reference_bytes: int
    room_least: int
    off: bool
    batches: int
    joined: int
