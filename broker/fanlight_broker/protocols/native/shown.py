"""Messages as an operator sees them, in answers to QUEUE."""

from typing import Any

from fanlight_broker.core.content import Content
from fanlight_broker.protocols.native.codec import PACKER
from fanlight_broker.protocols.native.convert import headers_of, text_or_octets
from fanlight_broker.wire.message import Message


def shown_message(message: Message, size: int, room: int) -> dict[str, Any]:
    """What a message says, its payload cut to `size` bytes; without headers and reply if they take more than `room`."""
    payload = message.payload[:size]
    head = {"topic": text_or_octets(message.topic), "syntax": message.syntax, "payload": payload}
    content: Content | None = message.format.read(message)
    if content is not None:
        rest = {"headers": headers_of(content) or None, "reply": text_or_octets(content.reply or b"") or None}
        if len(PACKER.pack(rest)) <= room:
            return head | rest | {"cut": len(payload) < len(message.payload)}
    return head | {"headers": None, "reply": None, "cut": True}
