from collections import OrderedDict
from collections.abc import Callable
from typing import Any, final

from fanlight_broker.core.content import Content
from fanlight_broker.wire.message import Format, Message

FORMAT: AmqpFormat

@final
class ChannelTags:
    last: int
    deliveries: OrderedDict[int, tuple[int, int]]
    automatic: dict[int, int]
    held: int
    most: int
    def __init__(self, settle: Callable[[], Any], shut: Callable[[], Any]) -> None: ...
    def assign(self, number: int, tag: int) -> int: ...
    def take_automatic(self) -> dict[int, int]: ...

class AmqpFormat(Format):
    def read(self, message: Message) -> Content | None: ...
    def write(self, content: Content) -> Message | None: ...

@final
class AmqpDeliveryFormat(AmqpFormat):
    writer: Callable[[Message], tuple[bytes, int, bytes]]
    automatic: bool
    counted: bool
    tag_at: int
    count_at: int
    before: bytes | None
    body_max: int
    def __init__(
        self, tags: ChannelTags, writer: Callable[[Message], tuple[Any, ...]], *, automatic: bool = False,
        counted: bool = False,
    ) -> None: ...
