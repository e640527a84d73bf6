from typing import Any

from broker.wire.message import Format, Message

class MessageFormat(Format):
    def read(self, message: Message) -> Any: ...
    def write(self, content: Any) -> Message | None: ...

FORMAT: MessageFormat
