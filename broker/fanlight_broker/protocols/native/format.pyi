from collections.abc import Mapping
from typing import Any

from fanlight_broker.wire.message import Format, Message

class MessageFormat(Format):
    def read(self, message: Message) -> Any: ...
    def rewritten(self, message: Message, topic: bytes, headers: Mapping[str, Any]) -> Message | None: ...
    def write(self, content: Any) -> Message | None: ...

class DeliveryFormat(MessageFormat): ...

FORMAT: MessageFormat
DELIVERY_FORMAT: DeliveryFormat
