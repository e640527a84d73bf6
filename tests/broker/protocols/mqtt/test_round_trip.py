"""Any packet of either version comes back from its bytes as it was, however these arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.codec import decode, encode, encode_within
from fanlight_broker.protocols.mqtt.fixed_header import PacketType
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import Packet
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.packets import packets, unhurried

KINDS = [(kind, version) for version in Version for kind in PacketType if (kind, version) != (PacketType.AUTH, V3)]

each_kind = pytest.mark.parametrize(("kind", "version"), KINDS, ids=lambda value: value.name)


@each_kind
@unhurried
@given(data=st.data())
def test_a_packet_comes_back_as_it_was(kind: PacketType, version: Version, data: st.DataObject) -> None:
    packet = data.draw(packets(kind, version))
    octets = encode(packet, version)
    decoder = PacketDecoder(len(octets))
    decoder.feed(octets)
    raw = decoder.next_packet()
    assert raw is not None
    assert decode(*raw, version) == packet
    assert len(decoder) == 0
    assert encode_within(packet, version, len(octets)) == octets


@pytest.mark.parametrize("version", Version)
@unhurried
@given(data=st.data())
def test_a_stream_in_any_pieces_is_the_packets_that_were_written(version: Version, data: st.DataObject) -> None:
    kinds = [kind for kind, other in KINDS if other is version]
    sent = data.draw(st.lists(st.sampled_from(kinds).flatmap(lambda kind: packets(kind, version)), max_size=4))
    octets = b"".join(encode(packet, version) for packet in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(octets)), max_size=6)))
    decoder = PacketDecoder(len(octets) or 1)
    found: list[Packet] = []
    for start, end in zip([0, *cuts], [*cuts, len(octets)], strict=True):
        decoder.feed(octets[start:end])
        while raw := decoder.next_packet():
            found.append(decode(*raw, version))
    assert found == sent


@each_kind
@unhurried
@given(data=st.data(), maximum=st.integers(0, 80))
def test_what_is_sent_within_a_maximum_says_the_same(
    kind: PacketType, version: Version, data: st.DataObject, maximum: int
) -> None:
    packet = data.draw(packets(kind, version))
    octets = encode_within(packet, version, maximum)
    if octets is None:
        return
    assert len(octets) <= maximum
    decoder = PacketDecoder(maximum)
    decoder.feed(octets)
    raw = decoder.next_packet()
    assert raw is not None
    read = decode(*raw, version)
    assert type(read) is type(packet)
    if version is V5 and hasattr(packet, "reason_code"):
        assert read.reason_code == packet.reason_code  # type: ignore[union-attr]
