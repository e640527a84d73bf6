"""A publish read and its route looked up, with nobody on the route: ns a publish.

    native, 3.1.1, 5.0  the compiled lane, from the receive buffer
    msgpack             the library over the same native frames: the length, then the array
    struct              3.1.1 as one would write it at first: fixed header, topic and payload, by struct and slices
    ... packets         the broker's plain decoders of MQTT: stream to packets to values

Beside the lanes: msgpack or struct, and the plain decoders.
"""

import struct
from collections.abc import Callable, Iterator

import msgpack  # type: ignore[import-untyped]

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import GIB, MicroClient, key, native, packet
from fanlight_broker.protocols.mqtt import codec
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache

MESSAGES = 500
REPEATS = 8

# What each frame is, and the octets that come.
FRAMES: dict[str, tuple[Version | None, bytes]] = {
    "native": (None, native()), "3.1.1": (V3, packet(V3)), "5.0": (V5, packet(V5)),
}  # fmt: skip


class Lane:
    """A publisher whose topic has a route that leads nowhere."""

    def __init__(self, publish: bytes, version: Version | None) -> None:
        routes = RouteCache(10)
        self.ledger = Ledger(GIB, lambda: None)
        self.peer = MicroClient(self.ledger, routes, version)
        self.batch = publish * MESSAGES
        routes.add(Route(key(version), [], []))

    def turn(self) -> int:
        spent = 0
        for _ in range(REPEATS):
            self.peer.inbox.feed(self.batch)
            spent += timed(self.peer.run)
        return spent


def by_msgpack(octets: bytes) -> int:
    """How many messages were read."""
    at = read = 0
    end = len(octets)
    length, unpack = struct.Struct(">I"), msgpack.unpackb
    while at < end:
        (size,) = length.unpack_from(octets, at)
        unpack(octets[at + 4 : at + 4 + size])
        at += 4 + size
        read += 1
    return read


def by_struct(octets: bytes) -> int:
    at = read = 0
    end = len(octets)
    length = struct.Struct(">H")
    while at < end:
        size = shift = 0
        while True:
            at += 1
            size |= (octets[at] & 0x7F) << shift
            if octets[at] < 0x80:
                break
            shift += 7
        at += 1
        (topic,) = length.unpack_from(octets, at)
        octets[at + 2 : at + 2 + topic].decode()
        octets[at + 2 + topic : at + size]
        at += size
        read += 1
    return read


def by_packets(version: Version) -> Callable[[bytes], int]:
    def read(octets: bytes) -> int:
        stream = PacketDecoder(GIB)
        stream.feed(octets)
        packets = 0
        while (raw := stream.next_packet()) is not None:
            codec.decode(raw.first_byte, raw.body, version)
            packets += 1
        return packets

    return read


def plain(read: Callable[[bytes], int], octets: bytes) -> Callable[[], int]:
    """A turn of a decoder in Python. RuntimeError: it did not find what is there."""

    def turn() -> int:
        return timed(check)

    def check() -> None:
        if (found := read(octets)) != MESSAGES:
            raise RuntimeError(f"{found} messages found of {MESSAGES}")

    return turn


def groups(effort: Effort) -> Iterator[Group]:
    beside = {"native": ("msgpack",), "3.1.1": ("struct", "3.1.1 packets"), "5.0": ("3.1.1", "5.0 packets")}
    lanes = [
        Case(name, MESSAGES * REPEATS, Lane(publish, version).turn, beside[name])
        for name, (version, publish) in FRAMES.items()
    ]
    decoders = {
        "msgpack": plain(by_msgpack, native() * MESSAGES),
        "struct": plain(by_struct, packet(V3) * MESSAGES),
        "3.1.1 packets": plain(by_packets(V3), packet(V3) * MESSAGES),
        "5.0 packets": plain(by_packets(V5), packet(V5) * MESSAGES),
    }
    yield Group("one topic, 64 bytes", [*lanes, *(Case(name, MESSAGES, turn) for name, turn in decoders.items())])
