"""What a message says, in no protocol's encoding: what two formats of different families have in common.

    native PUBLISH --Format.read--> Content --Format.write--> PUBLISH of another protocol

Made only when a message crosses from one family to another; within a family its encoded fields go through unchanged.
How each protocol maps its fields is a table in docs/decisions/0008-mqtt.md. QoS, retain flag and deadline are not here:
they stay with the message. What its publisher said of the deadline is.
"""

from dataclasses import dataclass
from typing import Final

from fanlight_broker.core.topics import SYNTAXES

HEADERS_MAX: Final = 1_000  # of a message that goes to another protocol: some µs each, in one piece

Header = tuple[str, str | bytes | int | float | bool | None]


@dataclass(frozen=True, slots=True)
class Content:
    topic: bytes
    syntax: int  # of topic and reply, by its number on the wire
    payload: bytes
    headers: tuple[Header, ...] = ()  # in order; a name may come several times
    content_type: str | None = None
    correlation: bytes | None = None
    reply: bytes | None = None
    is_text: bool | None = None  # the payload is UTF-8; None: unknown
    lifetime: int | None = None  # ms from its publication on, as its publisher has said; None: nothing

    @property
    def syntax_name(self) -> str:
        return SYNTAXES[self.syntax]
