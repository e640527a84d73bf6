"""Delayed messages: the User Property `fanlight-delay`, seconds as a decimal number (MQTT 5 only).

It stays with the message, for a server sends all User Properties unaltered [MQTT-3.3.2-17]. Any other value gets
Implementation specific error: the PUBLISH is valid, and this server does not accept it (table 3-4). Payload format
invalid would be wrong, as that is of the payload.
"""

import re
from typing import Final

from fanlight_broker.protocols.mqtt.errors import ProtocolError
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.wire.message import Message

DELAY: Final = "fanlight-delay"
DELAYED_ID: Final = "fanlight-delayed-id"  # of PUBACK and PUBREC: what cancels the message
SECONDS: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?", re.ASCII)


def due_of(message: Message, now: float) -> float | None:
    """The time of `now` at which a message that has the property is due; None: at once. Raises ProtocolError."""
    values = [value for name, value in message.format.read(message).headers if name == DELAY]
    if len(values) != 1 or not SECONDS.fullmatch(values[0]):
        shown = ", ".join(repr(value[:40]) for value in values[:3])
        raise ProtocolError(
            f"PUBLISH: the User Property {DELAY} must be there once, with seconds such as 90 or 0.5; got {shown}",
            ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
        )
    due = now + float(values[0])
    return due if due > now else None
