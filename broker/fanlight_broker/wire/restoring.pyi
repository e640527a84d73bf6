from fanlight_broker.wire.message import Message, Variant
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.window import Window

def restore_to_window(
    window: Window, message: Message, variant: Variant, tag: int = 0, tag_only: bool = False, number: int = 0,
    origin: Queue | None = None,
) -> None: ...
def restore_to_queue(
    named: NamedQueue, message: Message, number: int, since: float, attempt: int, due: float, now: float
) -> None: ...
