"""Every prefix of the corpus's packets, and every octet of them changed, whole and byte by byte.

Whatever comes of it: packets, or one of the four errors, at the same place whichever way it arrived, and never more
held than the maximum.
"""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocols.mqtt.codec import decode, encode
from broker.protocols.mqtt.errors import (
    MalformedPacket,
    PacketError,
    PacketTooLarge,
    ProtocolError,
    UnsupportedProtocol,
)
from broker.protocols.mqtt.framing import PacketDecoder
from broker.protocols.mqtt.packets import Connect, Packet
from broker.protocols.mqtt.version import Version
from tests.broker.protocols.mqtt.corpus import CORPUS, PING, Entry

MAXIMUM = 512
FOUR = {MalformedPacket, ProtocolError, UnsupportedProtocol, PacketTooLarge}

each = pytest.mark.parametrize("entry", CORPUS, ids=str)

Outcome = tuple[list[Packet], PacketError | None]


def outcome(octets: bytes, version: Version | None, piece: int) -> Outcome:
    """The packets that came out, and the error that ended it; a CONNECT tells the version where none is known."""
    decoder = PacketDecoder(MAXIMUM)
    found: list[Packet] = []
    try:
        for at in range(0, len(octets), piece):
            decoder.feed(octets[at : at + piece])
            while raw := decoder.take():
                assert len(raw.body) < MAXIMUM
                packet = decode(*raw, version)
                if isinstance(packet, Connect):
                    version = packet.protocol_version
                found.append(packet)
            assert len(decoder) < MAXIMUM
    except PacketError as error:
        return found, error
    return found, None


def ends_well(octets: bytes, version: Version | None) -> Outcome:
    found, error = outcome(octets, version, len(octets) or 1)
    if error is not None:
        assert type(error) in FOUR
        assert error.reason_code >= 0x80
        assert len(error.text) < 400
    again, same = outcome(octets, version, 1)
    assert (again, type(same), str(same)) == (found, type(error), str(error))
    return found, error


@each
def test_every_prefix_of_a_packet_waits_for_the_rest(entry: Entry) -> None:
    for end in range(len(entry.octets)):
        assert ends_well(entry.octets[:end], entry.version) == ([], None)


@each
def test_every_octet_of_a_packet_may_be_any_other(entry: Entry) -> None:
    """What it becomes is either refused, or a packet with bytes of its own."""
    for at in range(len(entry.octets)):
        for octet in range(256):
            octets = entry.octets[:at] + bytes((octet,)) + entry.octets[at + 1 :]
            found, _ = outcome(octets + PING + PING, entry.version, len(octets) + 4)
            for packet in found[:1]:
                version = packet.protocol_version if isinstance(packet, Connect) else entry.version
                assert decode_again(packet, version) == packet


def decode_again(packet: Packet, version: Version) -> Packet:
    decoder = PacketDecoder(MAXIMUM)
    decoder.feed(encode(packet, version))
    raw = decoder.take()
    assert raw is not None
    return decode(*raw, version)


@each
def test_byte_by_byte_a_changed_packet_ends_as_it_does_whole(entry: Entry) -> None:
    for at in range(len(entry.octets)):
        old = entry.octets[at]
        for octet in {old ^ 1, old ^ 0x80, (old + 1) & 255, (old - 1) & 255, 0, 0x7F, 0x80, 255} - {old}:
            octets = entry.octets[:at] + bytes((octet,)) + entry.octets[at + 1 :]
            ends_well(octets + PING, entry.version)
            ends_well(octets + PING, None)


@each
def test_an_octet_more_or_less_is_no_trouble(entry: Entry) -> None:
    for at in range(len(entry.octets)):
        ends_well(entry.octets[:at] + entry.octets[at + 1 :] + PING, entry.version)
        ends_well(entry.octets[: at + 1] + entry.octets[at:] + PING, entry.version)


@given(octets=st.binary(max_size=64), version=st.sampled_from([None, *Version]))
def test_any_bytes_end_well(octets: bytes, version: Version | None) -> None:
    ends_well(octets, version)


def test_a_stranger_that_announces_much_and_sends_on_takes_no_memory() -> None:
    """A length just below the maximum, its body byte by byte, and nothing at the end of it."""
    maximum = 64 * 1024
    decoder = PacketDecoder(maximum)
    tracemalloc.start()
    try:
        decoder.feed(b"\x10\xf0\xff\x03")
        for _ in range(maximum - 64):
            decoder.feed(b"\xff")
            assert decoder.take() is None
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(decoder) < maximum
    assert most < 3 * maximum
