"""Wills: what a client wants to be published when its connection ends without a goodbye (MQTT 5, 3.1.2.5).

    connection ends --> at once, if there is no delay or the session ends with it
                    --> when the delay is over, or the session ends, whichever is first      due(now)
                    --> never, if the client is back before that                             cancel()

Each session has one will at most, so one entry here at most.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fanlight_broker.core.deadlines import Deadlines
from fanlight_broker.wire.message import Message

if TYPE_CHECKING:
    from fanlight_broker.core.session import Session


@dataclass(frozen=True, slots=True)
class Will:
    message: Message
    lifetime: float | None = None  # seconds the message is good for, from its publication; None: for ever
    delay: float = 0.0  # seconds

    def published(self, now: float) -> Message:
        """The message, its time running from now on."""
        if self.lifetime is None:
            return self.message
        will = self.message
        return Message(
            will.format, will.topic, will.syntax, will.payload, fields=will.fields, qos=will.qos, retain=will.retain,
            expires_at=now + self.lifetime, expiry_hole=will.expiry_hole, format_data=will.format_data,
        )


class Wills:
    """The wills that wait for their delay."""

    def __init__(self) -> None:
        self._deadlines: Deadlines[Session] = Deadlines()

    def __len__(self) -> int:
        return len(self._deadlines)

    def schedule(self, session: "Session", at: float) -> None:
        self._deadlines.set(session, at)

    def cancel(self, session: "Session") -> None:
        self._deadlines.discard(session)

    def due(self, now: float, most: int) -> "Iterator[Session]":
        """The sessions whose will's time has come, `most` of them, each once, earliest first."""
        return self._deadlines.due(now, most)
