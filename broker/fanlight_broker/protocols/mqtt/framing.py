"""Packets found in a stream of bytes: feed what arrived, take whole packets, each as its first byte and its body.

Refused as early as it is known: a first byte that no packet has before its length has come, and a length above the
maximum before its body is waited for. So between two feeds nothing is held but the beginning of one packet, which is
never longer than the maximum.

A Remaining Length in more bytes than it needs is refused in both versions: 5.0 forbids it [MQTT-1.5.5-1], in 3.1.1
"a single byte for values up to 127" (2.2.3) says the same, and which of them is spoken is not known before CONNECT.
"""

from typing import NamedTuple

from fanlight_broker.protocols.mqtt.errors import MalformedPacket, PacketTooLarge
from fanlight_broker.protocols.mqtt.fixed_header import FIXED_HEADER_BYTES_MAX, VALID_FIRST_BYTES, first_byte_error


class RawPacket(NamedTuple):
    """A packet that has not been looked into."""

    first_byte: int
    body: bytes  # all behind the Remaining Length


class PacketDecoder:
    """The packets of one connection's incoming bytes. Behind an error it must not be used again."""

    def __init__(self, maximum_packet_size: int) -> None:
        self.maximum_packet_size = maximum_packet_size  # bytes with the fixed header, as in 3.1.2.11.4
        self._buffer = bytearray()

    def __len__(self) -> int:
        """The bytes that are held."""
        return len(self._buffer)

    def feed(self, octets: bytes | bytearray | memoryview) -> None:
        """Bytes as they arrived, in any pieces. Take all packets before more is fed: that keeps the buffer small."""
        self._buffer += octets

    def next_packet(self) -> RawPacket | None:
        """The next packet; None if the rest of it has not arrived. Raises MalformedPacket, PacketTooLarge."""
        buffer = self._buffer
        if not buffer:
            return None
        first = buffer[0]
        if first not in VALID_FIRST_BYTES:
            raise MalformedPacket(first_byte_error(first))
        start = remaining = shift = 0
        for at in range(1, min(len(buffer), FIXED_HEADER_BYTES_MAX)):
            octet = buffer[at]
            remaining |= (octet & 0x7F) << shift
            if octet < 0x80:
                if not octet and shift:
                    raise MalformedPacket(
                        f"Remaining Length {remaining} is encoded in {at} bytes; the shortest form is required"
                    )
                start = at + 1
                break
            shift += 7
        else:
            if len(buffer) >= FIXED_HEADER_BYTES_MAX:
                raise MalformedPacket("a Remaining Length of more than 4 bytes")
            return None
        end = start + remaining
        if end > self.maximum_packet_size:
            raise PacketTooLarge(end, self.maximum_packet_size)
        if len(buffer) < end:
            return None
        with memoryview(buffer) as view:
            body = bytes(view[start:end])
        del buffer[:end]
        return RawPacket(first, body)
