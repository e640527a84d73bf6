"""Integers and strings as they stand in methods, tables and properties (4.2.5): reading with its bounds, and writing.

What is malformed raises AmqpError 501, as RabbitMQ answers it: cut short, a length beyond the end, no UTF-8.
"""

import struct
from typing import Final

from fanlight_broker.protocols.amqp.errors import frame_error

SHORT_STRING_MAX: Final = 255  # bytes
UINT16: Final = struct.Struct(">H")
UINT32: Final = struct.Struct(">I")
UINT64: Final = struct.Struct(">Q")


class OctetReader:
    """Reads one value after the other out of a piece of bytes. what: its name in errors."""

    def __init__(self, octets: bytes, what: str, at: int = 0, end: int | None = None) -> None:
        self.octets = octets
        self.what = what
        self.at = at
        self.end = len(octets) if end is None else end

    @property
    def left(self) -> int:
        return self.end - self.at

    def take(self, size: int) -> bytes:
        if size > self.end - self.at:
            raise frame_error(f"{self.what} needs {size} bytes more and has {self.left}")
        self.at += size
        return self.octets[self.at - size : self.at]

    def number(self, layout: struct.Struct) -> int | float:
        if layout.size > self.end - self.at:
            raise frame_error(f"{self.what} needs {layout.size} bytes more and has {self.left}")
        found: int | float = layout.unpack_from(self.octets, self.at)[0]
        self.at += layout.size
        return found

    def octet(self) -> int:
        if self.at >= self.end:
            self.take(1)
        self.at += 1
        return self.octets[self.at - 1]

    def short(self) -> int:
        return int(self.number(UINT16))

    def long(self) -> int:
        return int(self.number(UINT32))

    def longlong(self) -> int:
        return int(self.number(UINT64))

    def short_string(self) -> str:
        at, octets = self.at, self.octets
        if at < self.end and (stop := at + 1 + octets[at]) <= self.end:  # mostly, and quickly
            self.at = stop
            octets = octets[at + 1 : stop]
        else:
            octets = self.take(self.octet())
        try:
            return octets.decode()
        except UnicodeDecodeError as error:
            raise frame_error(f"{self.what} has a short string that is no UTF-8 at byte {error.start}") from error

    def long_string(self) -> bytes:
        return self.take(self.long())

    def check_end(self) -> None:
        if self.left:
            raise frame_error(f"{self.what} has {self.left} bytes too many")


def short_string(text: str) -> bytes:
    """Raises ValueError for a text that is too long."""
    octets = text.encode()
    if len(octets) > SHORT_STRING_MAX:
        raise ValueError(f"a short string of {len(octets)} bytes; at most {SHORT_STRING_MAX}")
    return bytes((len(octets),)) + octets


def long_string(octets: bytes) -> bytes:
    return UINT32.pack(len(octets)) + octets
