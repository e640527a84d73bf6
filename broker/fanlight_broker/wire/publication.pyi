from fanlight_broker.wire.message import Message, Variant

def frame_of(
    variant: Variant, message: Message, *, number: int = 0, again: bool = False, now: float = 0.0
) -> bytes | None: ...
