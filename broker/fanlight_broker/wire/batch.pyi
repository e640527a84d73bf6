from typing import final

"""fanlight_broker.wire.batch, compiled. See batch.pyx."""

@final
class Batch:
    size: int
    messages: int
