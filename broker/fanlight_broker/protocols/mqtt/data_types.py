"""The data types of section 1.5: taken from a body one after the other, and written.

A `Reader` names in its errors which field was wrong and where. What it reads never reaches behind the end of its bytes.
"""

import struct
from typing import Final

from fanlight_broker.protocols.mqtt.errors import MalformedPacket, ProtocolError, Unencodable
from fanlight_broker.protocols.mqtt.fixed_header import VARIABLE_BYTE_INTEGER_MAX, encode_variable_byte_integer

TWO_BYTES_MAX: Final = 0xFFFF
FOUR_BYTES_MAX: Final = 0xFFFF_FFFF

_TWO: Final = struct.Struct(">H")
_FOUR: Final = struct.Struct(">I")


class Reader:
    """A body being read. All methods raise MalformedPacket; `what` is the field's name for its text."""

    __slots__ = ("_at", "_end", "_octets", "filter_suffix", "packet", "user_properties_max")

    def __init__(
        self, octets: bytes, packet: str, user_properties_max: int | None = None, *, filter_suffix: bool = False
    ) -> None:
        self.packet = packet  # its name, for errors
        self.user_properties_max = user_properties_max  # that it may have in one place; None: any number
        self.filter_suffix = filter_suffix  # does a Topic Filter end at a `?`?
        self._octets = octets
        self._at = 0
        self._end = len(octets)

    def __bool__(self) -> bool:
        """Is there more?"""
        return self._at < self._end

    def _advance(self, size: int, what: str) -> int:
        """Where a field of `size` bytes begins; the next begins behind it."""
        start = self._at
        if start + size > self._end:
            raise MalformedPacket(
                f"{self.packet}: {what} takes {size} bytes at {start}, and the packet's body has {self._end}"
            )
        self._at = start + size
        return start

    def byte(self, what: str) -> int:
        return self._octets[self._advance(1, what)]

    def flag(self, what: str) -> bool:
        """A byte that is 0 or 1. Raises ProtocolError for others: it can be parsed, and means nothing."""
        value = self.byte(what)
        if value > 1:
            raise ProtocolError(f"{self.packet}: {what} is {value}; it is 0 or 1")
        return value == 1

    def two_byte_integer(self, what: str) -> int:
        value: int = _TWO.unpack_from(self._octets, self._advance(2, what))[0]
        return value

    def four_byte_integer(self, what: str) -> int:
        value: int = _FOUR.unpack_from(self._octets, self._advance(4, what))[0]
        return value

    def variable_byte_integer(self, what: str) -> int:
        """As the Remaining Length: at most four bytes, and no more than needed [MQTT-1.5.5-1]."""
        value = 0
        for shift in (0, 7, 14, 21):
            octet = self.byte(what)
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                if not octet and shift:
                    raise MalformedPacket(f"{self.packet}: {what} is {value} in more bytes than it needs")
                return value
        raise MalformedPacket(f"{self.packet}: {what} does not end within 4 bytes")

    def binary_data(self, what: str) -> bytes:
        size = self.two_byte_integer(what)
        start = self._advance(size, what)
        return self._octets[start : start + size]

    def string(self, what: str) -> str:
        """A UTF-8 Encoded String (1.5.4; 3.1.1: 1.5.3): no surrogates, no U+0000; U+FEFF stays where it is."""
        octets = self.binary_data(what)
        try:
            text = octets.decode("utf-8")
        except UnicodeDecodeError as error:
            raise MalformedPacket(f"{self.packet}: {what} is not UTF-8 at its byte {error.start}") from error
        if "\0" in text:
            raise MalformedPacket(f"{self.packet}: {what} has a U+0000 at its character {text.index(chr(0))}")
        return text

    def string_pair(self, what: str) -> tuple[str, str]:
        return self.string(what), self.string(what)

    def rest(self) -> bytes:
        """All that is left: a PUBLISH's payload."""
        start, self._at = self._at, self._end
        return self._octets[start:]

    def part(self, size: int, what: str) -> "Reader":
        """The next `size` bytes, to be read on their own."""
        start = self._advance(size, what)
        return Reader(self._octets[start : start + size], self.packet)

    def finish(self) -> None:
        """Nothing may be left."""
        if self._at < self._end:
            raise MalformedPacket(f"{self.packet}: {self._end - self._at} bytes behind its last field")


def encode_byte(value: int) -> bytes:
    if not 0 <= value <= 0xFF:
        raise Unencodable(f"{value} does not fit into a byte")
    return bytes((value,))


def encode_two_byte_integer(value: int) -> bytes:
    if not 0 <= value <= TWO_BYTES_MAX:
        raise Unencodable(f"{value} does not fit into a Two Byte Integer")
    return _TWO.pack(value)


def encode_four_byte_integer(value: int) -> bytes:
    if not 0 <= value <= FOUR_BYTES_MAX:
        raise Unencodable(f"{value} does not fit into a Four Byte Integer")
    return _FOUR.pack(value)


def encode_variable(value: int) -> bytes:
    if not 0 <= value <= VARIABLE_BYTE_INTEGER_MAX:
        raise Unencodable(f"{value} does not fit into a Variable Byte Integer")
    return encode_variable_byte_integer(value)


def encode_binary_data(octets: bytes) -> bytes:
    if len(octets) > TWO_BYTES_MAX:
        raise Unencodable(f"a field of {len(octets)} bytes; Binary Data and strings have at most {TWO_BYTES_MAX}")
    return _TWO.pack(len(octets)) + octets


def encode_string(text: str) -> bytes:
    try:
        octets = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unencodable(f"a string with a surrogate at its character {error.start}") from error
    if b"\0" in octets:
        raise Unencodable(f"a string with a U+0000 at its byte {octets.index(0)}")
    return encode_binary_data(octets)


def encode_string_pair(pair: tuple[str, str]) -> bytes:
    return encode_string(pair[0]) + encode_string(pair[1])
