"""Packets found in a stream: the fixed header, its limits, and what is held meanwhile (5.0: 2.1; 3.1.1: 2.2)."""

import pytest

from fanlight_broker.protocols.mqtt.errors import MalformedPacket, PacketTooLarge, ProtocolError
from fanlight_broker.protocols.mqtt.fixed_header import (
    VARIABLE_BYTE_INTEGER_MAX,
    PacketType,
    encode_variable_byte_integer,
)
from fanlight_broker.protocols.mqtt.framing import PacketDecoder, RawPacket
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode

KIB = 1024


def fed(*pieces: bytes, maximum: int = KIB) -> PacketDecoder:
    decoder = PacketDecoder(maximum)
    for piece in pieces:
        decoder.feed(piece)
    return decoder


def test_nothing_is_taken_from_nothing() -> None:
    assert PacketDecoder(KIB).next_packet() is None


def test_several_packets_in_one_read_are_taken_one_by_one() -> None:
    decoder = fed(bytes.fromhex("c000 4002 0001 e000"))
    assert [decoder.next_packet() for _ in range(4)] == [
        RawPacket(0xC0, b""), RawPacket(0x40, b"\0\1"), RawPacket(0xE0, b""), None
    ]  # fmt: skip
    assert len(decoder) == 0


# The lower and upper end of each size, as tables 2.4 (3.1.1) and 1-1 (5.0) have them.
LENGTHS = {
    0: "00", 127: "7f", 128: "8001", 16_383: "ff7f", 16_384: "808001", 2_097_151: "ffff7f", 2_097_152: "80808001",
    268_435_455: "ffffff7f", 321: "c102",
}  # fmt: skip


@pytest.mark.parametrize(("value", "written"), LENGTHS.items())
def test_the_remaining_length_is_written_in_as_few_bytes_as_possible(value: int, written: str) -> None:
    assert encode_variable_byte_integer(value) == bytes.fromhex(written)


@pytest.mark.parametrize("value", [-1, VARIABLE_BYTE_INTEGER_MAX + 1])
def test_what_four_bytes_do_not_hold_is_no_variable_byte_integer(value: int) -> None:
    with pytest.raises(ValueError, match=str(value)):
        encode_variable_byte_integer(value)


@pytest.mark.parametrize("length", [0, 127, 128, 16_383, 16_384])
def test_a_body_of_any_length_is_taken_whole(length: int) -> None:
    body = b"x" * length
    octets = b"\x30" + encode_variable_byte_integer(length) + body
    decoder = fed(octets, maximum=len(octets))
    assert decoder.next_packet() == RawPacket(0x30, body)
    decoder = PacketDecoder(len(octets))
    for at in range(len(octets) - 1):
        decoder.feed(octets[at : at + 1])
        assert decoder.next_packet() is None
    decoder.feed(octets[-1:])
    assert decoder.next_packet() == RawPacket(0x30, body)


@pytest.mark.mqtt("MQTT-1.5.5-1", version=5)
@pytest.mark.parametrize("written", ["8000", "ff00", "808000", "80808000", "81808000"])
def test_a_remaining_length_in_more_bytes_than_it_needs_is_malformed(written: str) -> None:
    with pytest.raises(MalformedPacket, match="shortest form"):
        fed(b"\x30" + bytes.fromhex(written)).next_packet()


@pytest.mark.parametrize("written", ["80808080", "ffffffff", "8080808001"])
def test_a_remaining_length_that_goes_on_behind_four_bytes_is_malformed(written: str) -> None:
    with pytest.raises(MalformedPacket, match="more than 4 bytes"):
        fed(b"\x30" + bytes.fromhex(written)).next_packet()


def test_three_bytes_of_a_remaining_length_wait_for_the_fourth() -> None:
    decoder = fed(bytes.fromhex("30 808080"), maximum=VARIABLE_BYTE_INTEGER_MAX)
    assert decoder.next_packet() is None


def legal_first_bytes() -> set[int]:
    """By table 2.2, and the rules of 3.3.1 for PUBLISH: spelled out, not computed as the code does."""
    fixed = {0x10, 0x20, 0x40, 0x50, 0x62, 0x70, 0x82, 0x90, 0xA2, 0xB0, 0xC0, 0xD0, 0xE0, 0xF0}
    return fixed | {0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x3A, 0x3B, 0x3C, 0x3D}


@pytest.mark.mqtt("MQTT-2.1.3-1", version=5)
@pytest.mark.mqtt("MQTT-2.2.2-1", version=3)
@pytest.mark.mqtt("MQTT-2.2.2-2", version=3)
@pytest.mark.mqtt("MQTT-3.3.1-2")
@pytest.mark.mqtt("MQTT-3.3.1-4")
@pytest.mark.mqtt("MQTT-3.6.1-1")
@pytest.mark.mqtt("MQTT-3.8.1-1")
@pytest.mark.mqtt("MQTT-3.10.1-1")
@pytest.mark.mqtt("MQTT-3.14.1-1")
@pytest.mark.mqtt("MQTT-3.15.1-1", version=5)
@pytest.mark.parametrize("first", range(256))
def test_only_the_first_bytes_of_table_2_2_begin_a_packet(first: int) -> None:
    decoder = fed(bytes((first,)))
    if first in legal_first_bytes():
        assert decoder.next_packet() is None
        return
    with pytest.raises(MalformedPacket) as refused:  # at once: its length has not come
        decoder.next_packet()
    assert refused.value.reason_code == ReasonCode.MALFORMED_PACKET
    assert f"{first:#04x}" in refused.value.text
    if 0 < first >> 4 != PacketType.PUBLISH:
        assert PacketType(first >> 4).name in refused.value.text


def test_a_packet_of_the_maximum_is_taken_and_one_byte_more_is_refused_before_its_body() -> None:
    body = b"x" * (KIB - 3)
    assert fed(b"\x30\xfd\x07" + body).next_packet() == RawPacket(0x30, body)
    with pytest.raises(PacketTooLarge) as refused:
        fed(b"\x30\xfe\x07").next_packet()
    assert refused.value.reason_code == ReasonCode.PACKET_TOO_LARGE
    assert refused.value.details == {"size": KIB + 1, "maximum": KIB}


def test_packets_before_a_malformed_one_are_still_taken() -> None:
    decoder = fed(b"\xc0\0\xc1\0")
    assert decoder.next_packet() == RawPacket(0xC0, b"")
    with pytest.raises(MalformedPacket):
        decoder.next_packet()


def test_between_reads_no_more_is_held_than_one_packet() -> None:
    octets = (b"\x30\xfd\x07" + b"x" * (KIB - 3)) * 8
    decoder = PacketDecoder(KIB)
    taken = 0
    for at in range(0, len(octets), 700):
        decoder.feed(octets[at : at + 700])
        while decoder.next_packet():
            taken += 1
        assert len(decoder) < KIB
    assert taken == 8


def test_the_errors_are_of_one_tree() -> None:
    """So that a connection closes for each of them in one place."""
    assert PacketTooLarge.__mro__[1] is MalformedPacket.__mro__[1] is ProtocolError.__mro__[1]
