"""Delayed messages: publish now, deliver later (docs/delayed.md)."""

from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any

from .errors import Unsupported

if TYPE_CHECKING:
    from .frames import Welcome

FEATURE = "delay"


def options_of(delay: float | None, deliver_at: datetime | float | None) -> dict[str, Any] | None:
    """The options of a PUBLISH; None: it is delivered at once. Raises TypeError and ValueError."""
    if deliver_at is None:
        return None if delay is None else {"delay": _seconds("delay", delay)}
    if delay is not None:
        raise ValueError("delay and deliver_at: give one of them, or neither")
    if isinstance(deliver_at, datetime):
        if deliver_at.tzinfo is None:
            raise ValueError("deliver_at is a datetime without a time zone; give it one, such as tzinfo=UTC")
        deliver_at = deliver_at.timestamp()
    return {"deliver_at": _seconds("deliver_at", deliver_at)}


def _seconds(name: str, value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds; got {value!r}")
    if not 0 <= value < inf:
        raise ValueError(f"{name} must be 0 or more seconds; got {value!r}")
    return value


def check_support(welcome: "Welcome | None") -> None:
    """Raise Unsupported for a broker that would deliver at once. None: it has not been spoken to yet."""
    if welcome is not None and FEATURE not in (welcome.info.get("features") or ()):
        raise Unsupported("this broker delays no messages: it would deliver at once", code="unsupported")
