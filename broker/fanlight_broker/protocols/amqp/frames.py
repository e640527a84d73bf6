"""Frames (2.3.5): type, channel, size of the payload, payload, frame end.

    0      1         3             7                     7 + size
    | type | channel | size        | payload             | CE |

The lane finds the frames of a connection in compiled code; `FrameDecoder` does the same here, for clients of the
tests, and the tests compare the two.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from fanlight_broker.protocols.amqp.errors import frame_error

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"
HEAD: Final = struct.Struct(">BHI")
FRAME_END: Final = 0xCE
FRAME_END_OCTET: Final = bytes((FRAME_END,))
OVERHEAD: Final = HEAD.size + 1  # bytes of a frame beside its payload
FRAME_MIN_SIZE: Final = 4_096  # bytes that each peer must accept


class FrameType(IntEnum):
    METHOD = 1
    HEADER = 2
    BODY = 3
    HEARTBEAT = 8


KNOWN: Final = frozenset(FrameType)


class RawFrame(NamedTuple):
    type: FrameType
    channel: int
    payload: bytes


def encode_frame(type: int, channel: int, payload: bytes) -> bytes:
    return HEAD.pack(type, channel, len(payload)) + payload + FRAME_END_OCTET


HEARTBEAT: Final = encode_frame(FrameType.HEARTBEAT, 0, b"")


def check_heartbeat(channel: int, size: int) -> None:
    """A heartbeat is of channel 0 and empty (4.2.7). Raises AmqpError."""
    if size:
        raise frame_error(f"a heartbeat with {size} bytes of payload")
    if channel:
        raise frame_error(f"a heartbeat on channel {channel}")


class FrameDecoder:
    """Bytes in, frames out. frame_max: bytes of the largest frame, its overhead included."""

    def __init__(self, frame_max: int) -> None:
        self.frame_max = frame_max
        self._rest = bytearray()

    @property
    def waiting(self) -> int:
        """Bytes of an incomplete frame."""
        return len(self._rest)

    def feed(self, octets: bytes) -> Iterator[RawFrame]:
        """The frames that are complete now. Raises AmqpError 501; nothing can be read after that."""
        self._rest += octets
        while len(self._rest) >= HEAD.size:
            kind, channel, size = HEAD.unpack_from(self._rest)
            if kind not in KNOWN:
                raise frame_error(f"a frame of the unknown type {kind}")
            if size + OVERHEAD > self.frame_max:
                raise frame_error(f"a frame of {size + OVERHEAD} bytes; at most {self.frame_max}")
            if len(self._rest) < size + OVERHEAD:
                return
            end = self._rest[HEAD.size + size]
            if end != FRAME_END:
                raise frame_error(f"a frame that ends with {end}, not with {FRAME_END}")
            payload = bytes(self._rest[HEAD.size : HEAD.size + size])
            del self._rest[: size + OVERHEAD]
            yield RawFrame(FrameType(kind), channel, payload)
