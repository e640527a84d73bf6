"""The options of a PUBLISH (section 3.3): when it is to be delivered."""

from math import inf
from typing import Any

from fanlight_broker.core.delayed import Delayed
from fanlight_broker.core.errors import ProtocolViolation
from fanlight_broker.protocols.native.codec import decode_value
from fanlight_broker.protocols.native.fields import shown


def due_of(options: bytes, delayed: Delayed, now: float) -> float | None:
    """The time of `now` at which a message with these options is due; None: at once. Raises ProtocolViolation."""
    values: dict[str, Any] = decode_value(options)
    delay, at = _seconds(values, "delay"), _seconds(values, "deliver_at")
    if delay is not None and at is not None:
        raise ProtocolViolation("PUBLISH options delay and deliver_at: give one of them, or neither")
    if delay is None and at is None:
        return None
    due = now + delay if delay is not None else delayed.due_at(at or 0.0, now)
    return due if due > now else None


def _seconds(values: dict[str, Any], key: str) -> float | None:
    value = values.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise ProtocolViolation(f"PUBLISH option {key} must be seconds, 0 or more; got {shown(value)}")
    return float(value)
