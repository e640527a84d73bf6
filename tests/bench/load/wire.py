"""Each protocol as the test's broker writes it, by other means than the generator's own."""

import struct
from abc import ABC, abstractmethod

import msgpack  # type: ignore[import-untyped, unused-ignore]

from fanlight_bench import frames


class Wire(ABC):
    """What a broker makes of the generator's bytes. numbered: deliveries name their subscription."""

    name: str
    url: str
    numbered = False
    nonsense = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    error = b""
    error_words = ""
    ping = b""
    pong = b""

    @abstractmethod
    def split(self, data: bytes) -> list[bytes]:
        """The frames in data, which are whole."""

    @abstractmethod
    def delivery(self, publish: bytes, subscription: int, *, number: int = 1) -> bytes:
        """What a subscriber is sent for a publish; number: its packet identifier."""

    def number(self, publish: bytes) -> int:
        """The packet identifier or request of a publish that has one."""
        raise NotImplementedError(f"{self.name} has none")

    @abstractmethod
    def acknowledgement(self, publish: bytes, *, routed: int = 1) -> bytes:
        """What the publisher is sent for it."""


class Native(Wire):
    name = "native"
    url = "fanlight://broker"
    numbered = True
    error = frames.encode(frames.ERROR, None, "not_permitted", "no")
    error_words = "not_permitted"
    ping = frames.encode(11, 4_000_000_000)
    pong = frames.encode(12, 4_000_000_000)

    def split(self, data: bytes) -> list[bytes]:
        found = []
        while data:
            (size,) = struct.unpack_from(">I", data)
            found.append(data[: 4 + size])
            data = data[4 + size :]
        return found

    def delivery(self, publish: bytes, subscription: int, *, number: int = 1) -> bytes:
        _, _, *rest = msgpack.unpackb(publish[4:])
        body = bytes([0x90 | (2 + len(rest)), frames.MESSAGE, 0xCE]) + struct.pack(">I", subscription)
        body += b"".join(msgpack.packb(field) for field in rest)
        return struct.pack(">I", len(body)) + body

    def number(self, publish: bytes) -> int:
        return int(msgpack.unpackb(publish[4:])[1])

    def acknowledgement(self, publish: bytes, *, routed: int = 1) -> bytes:
        return frames.encode(frames.RECEIPT, self.number(publish), routed)


class Mqtt(Wire):
    nonsense = b"\x30\xff\xff\xff\xff\x7f"  # a remaining length of five octets

    def __init__(self, name: str) -> None:
        self.name = name
        self.url = f"{name}://broker"
        if name == "mqtt5":
            self.error, self.error_words = b"\xe0\x01\x8e", "DISCONNECT with 0x8e"

    def split(self, data: bytes) -> list[bytes]:
        found = []
        while data:
            size, at = self.length(data)
            found.append(data[: at + size])
            data = data[at + size :]
        return found

    def delivery(self, publish: bytes, subscription: int, *, number: int = 1) -> bytes:
        if not publish[0] & 6:
            return publish
        _, at = self.length(publish)
        at += 2 + int.from_bytes(publish[at : at + 2])
        return publish[:at] + struct.pack(">H", number) + publish[at + 2 :]

    def acknowledgement(self, publish: bytes, *, routed: int = 1) -> bytes:
        return b"\x40\x02" + struct.pack(">H", self.number(publish))

    def number(self, publish: bytes) -> int:
        _, at = self.length(publish)
        at += 2 + int.from_bytes(publish[at : at + 2])
        return int.from_bytes(publish[at : at + 2])

    @staticmethod
    def length(packet: bytes) -> tuple[int, int]:
        size = shift = 0
        for at, octet in enumerate(packet[1:5], 2):
            size |= (octet & 127) << shift
            shift += 7
            if octet < 128:
                return size, at
        raise ValueError(packet)


class Nats(Wire):
    name = "nats"
    url = "nats://broker"
    numbered = True
    error, error_words = b"-ERR 'Maximum Payload Violation'\r\n", "Maximum Payload"
    ping, pong = b"PING\r\n", b"PONG\r\n"

    def split(self, data: bytes) -> list[bytes]:
        found = []
        while data:
            line, _, rest = data.partition(b"\r\n")
            size = int(line.split()[-1])
            found.append(line + b"\r\n" + rest[: size + 2])
            data = rest[size + 2 :]
        return found

    def delivery(self, publish: bytes, subscription: int, *, number: int = 1) -> bytes:
        line, _, payload = publish.partition(b"\r\n")
        _, subject, size = line.split()
        return b"MSG %s %d %s\r\n%s" % (subject, subscription, size, payload)

    def acknowledgement(self, publish: bytes, *, routed: int = 1) -> bytes:
        raise NotImplementedError("NATS has none")


WIRES: list[Wire] = [Native(), Mqtt("mqtt"), Mqtt("mqtt5"), Nats()]
