"""MQTT's packet layer fed with any bytes at all, and what must hold whatever they are.

Packets, or one of four errors, at the same place whichever way the bytes arrived; no more held than the maximum; and a
packet that came out can be written and is the same when it is read again. Used by test_mutations.py beside the codec's
tests, every octet in turn and by hypothesis, and by atheris for as long as one likes (`make fuzz`).
"""

from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.errors import (
    MalformedPacket,
    PacketError,
    PacketTooLarge,
    ProtocolError,
    UnsupportedProtocol,
)
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import Connect, Packet
from fanlight_broker.protocols.mqtt.version import V5, Version

MAXIMUM = 512
FOUR = {MalformedPacket, ProtocolError, UnsupportedProtocol, PacketTooLarge}

Outcome = tuple[list[Packet], PacketError | None]


def outcome(octets: bytes, version: Version | None, piece: int) -> Outcome:
    """The packets that came out, and the error that ended it; a CONNECT tells the version where none is known."""
    decoder = PacketDecoder(MAXIMUM)
    found: list[Packet] = []
    try:
        for at in range(0, len(octets), piece):
            decoder.feed(octets[at : at + piece])
            while raw := decoder.next_packet():
                assert len(raw.body) < MAXIMUM
                packet = decode(*raw, version)
                if isinstance(packet, Connect):
                    version = packet.protocol_version
                found.append(packet)
            assert len(decoder) < MAXIMUM
    except PacketError as error:
        return found, error
    return found, None


def ends_well(octets: bytes, version: Version | None, piece: int = 1) -> Outcome:
    """What comes of bytes that arrive whole, and in pieces. Raises AssertionError if these differ."""
    found, error = outcome(octets, version, len(octets) or 1)
    if error is not None:
        assert type(error) in FOUR
        assert error.reason_code >= 0x80
        assert len(error.text) < 400
    again, same = outcome(octets, version, piece)
    assert (again, type(same), str(same)) == (found, type(error), str(error))
    return found, error


def comes_back(packet: Packet, version: Version) -> None:
    """Raises AssertionError if a packet that was read is another when it has been written and read again."""
    octets = encode(packet, version)
    decoder = PacketDecoder(len(octets))
    decoder.feed(octets)
    raw = decoder.next_packet()
    assert raw is not None
    assert decode(*raw, version) == packet


def try_octets(octets: bytes, *, version: Version | None, piece: int) -> None:
    """Raises AssertionError if anything that must hold does not."""
    for packet in ends_well(octets, version, piece)[0]:
        if isinstance(packet, Connect):
            version = packet.protocol_version
        comes_back(packet, version or V5)
