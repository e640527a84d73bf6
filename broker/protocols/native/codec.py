"""Frames to bytes and back: a length, and a msgpack array whose first element is the type (section 2).

Decoding is handed only what the compiled lane has found sound: one array, complete, in valid UTF-8, not too deep.
"""

import struct
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]

LENGTH: Final = struct.Struct(">I")


def encode(*fields: Any) -> bytes:
    """One frame: type and fields."""
    body: bytes = msgpack.packb(fields, use_bin_type=True)
    return LENGTH.pack(len(body)) + body


def decode(body: bytes) -> list[Any]:
    """Type and fields of a frame's body."""
    fields: list[Any] = msgpack.unpackb(body, raw=False, use_list=True, strict_map_key=False)
    return fields
