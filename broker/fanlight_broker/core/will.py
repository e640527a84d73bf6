"""A will: the message that a client wants published when its connection ends without a goodbye (MQTT 5, 3.1.2.5).

    connection ends --> at once, if there is no delay or the session ends with it
                    --> when the delay is over, or when the session ends, whichever is first
                    --> never, if the client is back before that

`Sessions` keeps the wills that wait for their delay.
"""


from typing import NamedTuple

from fanlight_broker.wire.message import Message


class Will(NamedTuple):
    message: Message
    lifetime: float | None = None  # seconds until the message expires, from its publication; None: it never does
    delay: float = 0.0  # seconds
    requests: bool = False  # it names a topic for the reply

    def published(self, now: float) -> Message:
        """The message, its lifetime counted from now."""
        if self.lifetime is None:
            return self.message
        will = self.message
        return Message(
            will.format, will.topic, will.syntax, will.payload, fields=will.fields, qos=will.qos, retain=will.retain,
            expires_at=now + self.lifetime, expiry_hole=will.expiry_hole, format_data=will.format_data,
        )
