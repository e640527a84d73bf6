"""A format written in Python, for tests: lines of text, in which every option of a variant can be seen.

    PUB qos=1 retain=0 ids=[] id=\\0\\0 topic payload
"""

from collections.abc import Callable

from fanlight_broker.core.content import Content
from fanlight_broker.wire.message import NEVER, Format, Message, Variant


class LineFormat(Format):
    """`encoded` and `crossed` count its work."""

    encoded = crossed = 0

    def template(
        self, message: Message, variant: Variant, again: bool, now: float
    ) -> tuple[bytes, int, int, bytes] | None:
        self.encoded += 1
        if message.topic == b"unwritable":
            return None
        qos = min(message.qos, variant.qos)
        retain = variant.retain == 2 or (variant.retain == 1 and message.retain)
        head = b"PUB qos=%d retain=%d dup=%d ids=%s " % (qos, retain, again, variant.identifiers)
        if message.expires_at != NEVER and now:
            head += b"left=%d " % (message.expires_at - now)
        hole = len(head) + 3
        if qos:
            head += b"id=\0\0 "
        return head + message.topic + b" ", hole if qos else 0, 2 if qos else 0, message.payload

    def tag_frame(self, tag: int) -> bytes:
        return b"REL id=" + tag.to_bytes(2, "big")

    def read(self, message: Message) -> Content:
        self.crossed += 1
        return Content(message.topic, message.syntax, message.payload)

    def write(self, content: Content) -> Message | None:
        self.crossed += 1
        if content.topic == b"foreign":
            return None
        return Message(self, b"<" + content.topic + b">", content.syntax, content.payload)


def line(format: Format) -> Callable[..., Message]:
    """Makes messages of a format."""

    def make(topic: bytes, payload: bytes = b"", **options: float | bytes) -> Message:
        return Message(format, topic, 0, payload, **options)  # type: ignore[arg-type]

    return make
