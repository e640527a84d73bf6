"""The packets of the corpus, whole, byte by byte, and with a tail, to values and back (chapters 2 and 3)."""

from collections.abc import Callable

import pytest

from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.fixed_header import PacketType
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import Packet
from fanlight_broker.protocols.mqtt.version import Version
from tests.broker.protocols.mqtt.corpus import CORPUS, PING, Entry

WAYS: dict[str, Callable[[bytes], list[bytes]]] = {
    "whole": lambda octets: [octets],
    "byte by byte": lambda octets: [octets[at : at + 1] for at in range(len(octets))],
    "cut in the middle": lambda octets: [octets[: len(octets) // 2], octets[len(octets) // 2 :]],
    "with a tail": lambda octets: [octets + PING + PING[:1]],
}

each = pytest.mark.parametrize("entry", CORPUS, ids=str)


@pytest.mark.parametrize("way", WAYS)
@each
def test_bytes_become_the_packet_they_mean(entry: Entry, way: str) -> None:
    decoder = PacketDecoder(1024)
    found: list[Packet] = []
    for piece in WAYS[way](entry.octets):
        decoder.feed(piece)
        while raw := decoder.next_packet():
            found.append(decode(*raw, entry.version))
    if way == "with a tail":
        assert found.pop() == decode(0xC0, b"", entry.version)
        assert len(decoder) == 1
    assert found == [entry.packet]


@each
def test_a_packet_becomes_its_bytes(entry: Entry) -> None:
    assert encode(entry.packet, entry.version) == entry.octets


def test_the_corpus_has_every_packet_of_each_version() -> None:
    for version in Version:
        there = {entry.packet.type for entry in CORPUS if entry.version is version}
        assert there == set(PacketType) - ({PacketType.AUTH} if version is Version.MQTT_3_1_1 else set())
