"""fanlight_broker.wire.batch, compiled. What it does is told in batch.pyx."""

class Batch:
    size: int
    messages: int
