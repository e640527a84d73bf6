"""Every prefix of the corpus's packets, and every octet of them changed, whole and byte by byte.

Whatever comes of it: packets, or one of the four errors, at the same place whichever way it arrived, and never more
held than the maximum (tests/fuzz/mqtt_packets.py).
"""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.codec import decode
from fanlight_broker.protocols.mqtt.fixed_header import encode_variable_byte_integer
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import Connect
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.corpus import CORPUS, PING, Entry
from tests.broker.protocols.mqtt.packets import unhurried
from tests.fuzz.mqtt_packets import comes_back, ends_well, outcome, try_octets

each = pytest.mark.parametrize("entry", CORPUS, ids=str)


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
                comes_back(packet, version)


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


@unhurried
@given(octets=st.binary(max_size=64), version=st.sampled_from([None, *Version]), piece=st.integers(1, 9))
def test_any_bytes_end_well(octets: bytes, version: Version | None, piece: int) -> None:
    try_octets(octets, version=version, piece=piece)


@st.composite
def damaged(draw: st.DrawFn, version: Version) -> bytes:
    """Real packets, one behind the other, with some octets changed, left out or put in."""
    real = [entry.octets for entry in CORPUS if entry.version is version]
    octets = bytearray(b"".join(draw(st.lists(st.sampled_from(real), min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(octets)))
        removed = draw(st.integers(0, 3))
        octets[at : at + removed] = draw(st.binary(max_size=3))
    return bytes(octets)


@pytest.mark.parametrize("version", Version)
@unhurried
@given(data=st.data(), piece=st.integers(1, 40))
def test_damaged_packets_end_well(version: Version, data: st.DataObject, piece: int) -> None:
    try_octets(data.draw(damaged(version)), version=version, piece=piece)


def test_a_stranger_that_announces_much_and_sends_on_takes_no_memory() -> None:
    """A length just below the maximum, its body byte by byte, and nothing at the end of it."""
    maximum = 64 * 1024
    decoder = PacketDecoder(maximum)
    tracemalloc.start()
    try:
        decoder.feed(b"\x10\xf0\xff\x03")
        for _ in range(maximum - 64):
            decoder.feed(b"\xff")
            assert decoder.next_packet() is None
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(decoder) < maximum
    assert most < 3 * maximum


N = 5000
# Packets that say much in few bytes: the shortest filters, pairs and identifiers that do not share their objects.
DENSE = {
    "filters": (0x82, V3, b"\0\1" + "\0\3\u0800\0".encode() * N),
    "user properties": (
        0x30, V5, b"\0\1a" + encode_variable_byte_integer(11 * N) + "\x26\0\3\u0800\0\3\u0800".encode() * N
    ),
    "empty user properties": (0x30, V5, b"\0\1a" + encode_variable_byte_integer(5 * N) + b"\x26\0\0\0\0" * N),
    "subscription identifiers": (
        0x30, V5, b"\0\1a" + encode_variable_byte_integer(5 * N) + b"\x0b\xff\xff\xff\x7f" * N
    ),
    "reason codes": (0x90, V5, b"\0\1\0" + b"\1" * N),
}  # fmt: skip


@pytest.mark.parametrize("what", DENSE)
def test_a_packet_takes_no_more_than_32_times_its_bytes(what: str) -> None:
    """So its maximum size bounds the memory, too: 26 times for a filter of three bytes, which is the worst."""
    first, version, body = DENSE[what]
    tracemalloc.start()
    try:
        decode(first, body, version)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 32 * len(body)
