"""One end of a link: asyncio on one side, a ClientState on the other. Bytes in, events to the link, bytes out.

Events are handled for as long as a turn may take (core/turns.py); then nothing is read until others had theirs.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from fanlight_broker import event_log
from fanlight_broker.bridging.client_state import ClientState, Event, LinkState
from fanlight_broker.core.turns import Turns
from fanlight_broker.net.clock import monotonic
from fanlight_broker.protocols.mqtt.errors import PacketError

log: Final = event_log.get("bridges")

UNSENT_BYTES_MAX: Final = 1024 * 1024  # past it the other end is not read, and messages of QoS 0 are dropped


class LinkEnd(asyncio.Protocol):
    """
    handle  is called with each event
    behind  after each piece of work, to send what it has brought about
    lost    with the reason, once, if the connection ends otherwise than by `close`
    """

    def __init__(
        self, name: str, state: ClientState, turns: Turns, handle: Callable[["LinkEnd", Event], None],
        behind: Callable[[], None], lost: Callable[[str], None],
    ) -> None:
        self.name = name
        self.state = state
        self.other: LinkEnd | None = None  # which is not read while this one is not
        self.crowded = False
        self._turns = turns
        self._handle, self._behind, self._lost = handle, behind, lost
        self._transport: asyncio.Transport | None = None
        self._held = False  # the other end does not take what comes here
        self._full = False  # nor does what is in between
        self._turn_over = False
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX)
        self.pump()

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        self._turns.begin()
        self.state.feed(data, monotonic())
        self._work()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end(f"the {self.name} side closed the connection" + (f": {exc}" if exc else ""))

    def pause_writing(self) -> None:
        self.crowded = True
        if self.other is not None:
            self.other.hold(held=True)

    def resume_writing(self) -> None:
        self.crowded = False
        if self.other is not None:
            self.other.hold(held=False)

    def hold(self, *, held: bool) -> None:
        """Read nothing while the other end cannot pass it on."""
        self._held = held
        self._read_or_not()

    def fill(self, *, full: bool) -> None:
        """Read nothing while what has come fills the room between the ends."""
        if full is not self._full:
            self._full = full
            self._read_or_not()

    def _work(self) -> None:
        """Handle what has come, as much as the turn allows."""
        over, self._turn_over = self._turns.over, False
        try:
            while not self._ended and (event := self.state.next_event()) is not None:
                self._handle(self, event)
                if over():
                    self._turn_over = True
                    self._turns.later(self._work)
                    break
        except PacketError as error:
            self.pump()
            self._end(f"the {self.name} side sent what MQTT forbids: {error.text}")
        except Exception:  # a fault of the broker: it is logged once with its traceback, and ends this link only
            log.exception("internal_error", side=self.name)
            self._end("a fault of this broker")
        self._behind()
        self._read_or_not()

    def pump(self) -> None:
        """Send what there is."""
        if self._transport is not None and not self._transport.is_closing() and (octets := self.state.take()):
            self._transport.write(octets)

    def close(self, *, expiry: int | None = None) -> None:
        """Say goodbye and close."""
        self._ended = True
        self.state.disconnect(expiry=expiry)
        self.pump()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    def _end(self, reason: str) -> None:
        if not self._ended:
            self._ended = True
            self.state.state = LinkState.CLOSED
            self._lost(reason)

    def _read_or_not(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._held or self._full or self._turn_over:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
