from typing import final

"""fanlight_broker.wire.batch, compiled. What it does is told in batch.pyx."""

@final
class Batch:
    size: int
    messages: int
