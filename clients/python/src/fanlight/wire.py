"""One TCP connection: bytes between a socket and the codec. It knows frames, and nothing of what they mean.

A BufferedProtocol and not streams: the transport receives into the decoder's own buffer, and thousands of
small frames come out of one call.
"""

import asyncio
import logging
from typing import Protocol, cast

from .codec import Decoder
from .errors import ProtocolError
from .frames import Frame

log = logging.getLogger("fanlight")

# Handed to the transport ahead of the socket, in bytes: enough to keep it busy for a turn of the loop, little
# enough that what is not confirmed when a connection breaks stays small.
WRITE_HIGH_WATER = 256 * 1024


class WireOwner(Protocol):
    """Who reads what comes."""

    def frame_received(self, frame: Frame, size: int) -> None:
        """May raise ProtocolError, which ends the connection."""

    def wire_writable(self) -> None: ...

    def wire_lost(self, wire: "Wire", error: Exception | None) -> None:
        """Called once. `error` None: the peer, or this side, closed in good order."""


class Wire(asyncio.BufferedProtocol):
    def __init__(self, owner: WireOwner, decoder: Decoder) -> None:
        self.writable = True
        self.received = 0  # bytes in all; a heartbeat looks whether it moves
        self._owner = owner
        self._decoder = decoder
        self.reading = True
        self._pumping = False
        self._failure: Exception | None = None
        self._transport: asyncio.Transport | None = None

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.received += nbytes
        self._decoder.advance(nbytes)
        self._pump()

    def eof_received(self) -> bool:
        return False  # close our half as well

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._owner.wire_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        # What was received and held back for a full subscription is all that will come: it is handed out now.
        self._pump(to_the_end=True)
        self._owner.wire_lost(self, self._failure or exc)

    # Called by the owner.

    def peek(self, size: int) -> bytes:
        """The first bytes that were received and are not decoded, at most `size` of them."""
        return self._decoder.peek(size)

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def set_reading(self, reading: bool) -> None:
        """Stop or go on handing out frames, and receiving; within one received buffer, too."""
        if reading == self.reading:
            return
        self.reading = reading
        if self._transport is None or self._transport.is_closing():
            return
        if reading:
            self._transport.resume_reading()
            # Not at once: the caller is inside a subscription's queue.
            asyncio.get_running_loop().call_soon(self._pump)
        else:
            self._transport.pause_reading()

    def close(self) -> None:
        """Close when what was written is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: Exception) -> None:
        """Close now; `reason` is passed to wire_lost."""
        self._failure = self._failure or reason
        if self._transport is not None:
            self._transport.abort()

    def _pump(self, *, to_the_end: bool = False) -> None:
        if self._pumping or self._failure is not None:
            return
        self._pumping = True
        try:
            decoder, received = self._decoder, self._owner.frame_received
            while self.reading or to_the_end:
                frame = decoder.next_frame()
                if frame is None:
                    break
                received(frame, decoder.frame_size)
        except ProtocolError as error:
            self.abort(error)
        except Exception as error:  # a defect of ours: the connection cannot go on, and the client must
            log.exception("a frame could not be handled")
            self.abort(error)
        finally:
            self._pumping = False
