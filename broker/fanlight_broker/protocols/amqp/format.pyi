from collections.abc import Callable
from typing import Any, final

from fanlight_broker.core.content import Content
from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.wire.message import Format, Message

FORMAT: AmqpFormat

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
