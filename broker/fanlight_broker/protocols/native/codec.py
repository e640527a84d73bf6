"""Frames to bytes and back: a length, and a msgpack array whose first element is the type (section 2).

Decoding is handed only what the compiled lane has found sound: one array, complete, in valid UTF-8, not too deep.
"""

import struct
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.core.errors import ProtocolViolation

LENGTH: Final = struct.Struct(">I")
PACKER: Final = msgpack.Packer(use_bin_type=True)  # kept: to make one takes longer than a frame does


def encode(*fields: Any) -> bytes:
    """One frame: type and fields."""
    body: bytes = PACKER.pack(fields)
    return LENGTH.pack(len(body)) + body


def decode(body: bytes) -> list[Any]:
    """Type and fields of a frame's body. Raises ProtocolViolation.

    The one thing that the lane lets pass and this does not: map keys that are no text. They are refused wherever they
    stand, in fields to be ignored too: integers could be chosen so that they collide, and arrays cannot be keys at all.
    """
    fields: list[Any] = decode_value(body)
    return fields


def decode_value(octets: bytes) -> Any:
    """One value. Raises ProtocolViolation as `decode` does."""
    try:
        return msgpack.unpackb(octets, raw=False, use_list=True, strict_map_key=True)
    except ValueError as error:
        raise ProtocolViolation(f"a frame that cannot be decoded: {error}; the keys of maps must be str") from error
