from typing import final

from fanlight_broker.wire.message import Message, Variant

STATES: tuple[str, ...]

class Source: ...

@final
class Flight:
    message: Message | None
    variant: Variant
    tag: int
    number: int
    attempt: int
    priority: int
    state: int
