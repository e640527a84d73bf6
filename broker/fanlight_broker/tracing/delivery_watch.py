"""Ends the span of a delivery when its bytes are written to the subscriber's socket.

An outbox counts what was written and what is not yet, so a delivery is over when as much was written as both together
were at the fan-out. They are looked at at the end of the turn, in which most are over, and from then on now and then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import time_ns
from typing import Any, Final, Protocol

from opentelemetry.trace import Span

from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.target import Target

OPEN_MAX: Final = 1_000  # deliveries that are watched
LOOK_SECONDS: Final = 0.02
MOST_SECONDS: Final = 10.0  # that a delivery is watched
STATE: Final = "fanlight.delivery"  # the attribute that says how far it has come


class Loop(Protocol):
    """What is used of the event loop."""

    def call_soon(self, callback: Callable[[], Any], /) -> Any: ...

    def call_later(self, delay: float, callback: Callable[[], Any], /) -> Any: ...


@dataclass(slots=True, eq=False)
class WatchedDelivery:
    span: Span
    outbox: Outbox
    goal: int  # of `Outbox.bytes_out`
    over: int  # nanoseconds since 1970, when it is given up


class DeliveryWatch:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._open: list[WatchedDelivery] = []
        self._looking = False

    def __len__(self) -> int:
        return len(self._open)

    def add(self, span: Span, target: Target | None, fanned_out: int) -> None:
        """target: None for a queue. fanned_out: nanoseconds since 1970"""
        outbox = target.outbox if target is not None else None
        if outbox is None:
            self._end(span, "queued", fanned_out)  # a queue, or a session whose client is away
        elif len(self._open) >= OPEN_MAX:
            self._end(span, "not watched", fanned_out)
        else:
            over = fanned_out + int(MOST_SECONDS * 1e9)
            self._open.append(WatchedDelivery(span, outbox, outbox.bytes_out + outbox.size, over))
            if not self._looking:
                self._looking = True
                self._loop.call_soon(self._look)

    def close(self) -> None:
        """End all of them."""
        for each in self._open:
            self._end(each.span, "unsent")
        self._open = []

    def _look(self) -> None:
        now, left = time_ns(), []
        for each in self._open:
            if each.outbox.bytes_out >= each.goal or each.outbox.size == 0:
                self._end(each.span, "unsent" if each.outbox.closed else "sent", now)
            elif each.outbox.closed or now > each.over:
                self._end(each.span, "unsent", now)
            else:
                left.append(each)
        self._open = left
        self._looking = bool(left)
        if left:
            self._loop.call_later(LOOK_SECONDS, self._look)

    def _end(self, span: Span, state: str, when: int | None = None) -> None:
        span.set_attribute(STATE, state)
        span.end(when)
