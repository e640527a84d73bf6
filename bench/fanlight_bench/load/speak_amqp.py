"""AMQP 0-9-1, said: topics are keys of `amq.topic`, and a subscriber has a queue of its own for all of its filters.

Deliveries are acknowledged one by one; there are no confirms, so QoS 0 alone.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from fanlight_bench.durable.couriers import AmqpCourier, method
from fanlight_bench.load.amqp import AMQP
from fanlight_bench.load.protocol import REFUSAL
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import FrameTemplate, Publish, Refused, Speaker
from fanlight_bench.load.spelling import ZEROS, spelled
from fanlight_bench.load.target import Target

CHANNEL: Final = 1
EXCHANGE: Final = b"\x09amq.topic"
STREAM: Final = "stream"
PREFETCH: Final = 10_000
CHANNEL_OPEN_OK, BIND_OK, CONSUME_OK = b"\0\x14\0\x0b", b"\0\x32\0\x15", b"\0\x3c\0\x15"
PIECE_BINDINGS: Final = 500


def short(octets: bytes) -> bytes:
    return bytes([len(octets)]) + octets


class AmqpSpeaker(Speaker):
    qos_max = 0

    def __init__(self, target: Target, scenario: Scenario) -> None:
        super().__init__(AMQP, target, scenario)
        if scenario.kind != STREAM:
            raise Refused(f"{scenario.name} is of the kind {scenario.kind}; by amqp:// there are streams alone")

    def hello(self, client: str) -> bytes:
        user = self.target.user_of(client) or "guest"
        courier = AmqpCourier("classic", user, self.target.password or "guest")
        return courier.hello(client, kept=False) + method(CHANNEL, 20, 10, b"\0")

    def subscribe(self, filters: Iterable[tuple[int, str]]) -> Iterator[tuple[bytes, int]]:
        # Exclusive, and named by the broker: an empty name means the queue that was declared last.
        piece = [method(CHANNEL, 50, 10, b"\0\0" + short(b"") + b"\x04" + bytes(4))]
        waiting = 0
        for _, pattern in filters:
            key = short(spelled(pattern, "fanlight", "amqp").encode())
            piece.append(method(CHANNEL, 50, 20, b"\0\0" + short(b"") + EXCHANGE + key + b"\0" + bytes(4)))
            waiting += 1
            if waiting == PIECE_BINDINGS:
                yield b"".join(piece), waiting
                piece, waiting = [], 0
        piece.append(method(CHANNEL, 60, 10, struct.pack(">IHB", 0, PREFETCH, 0)))
        piece.append(method(CHANNEL, 60, 20, b"\0\0" + short(b"") + short(b"c") + b"\0" + bytes(4)))
        yield b"".join(piece), waiting + 1

    def is_answer(self, kind: int, frame: bytes) -> bool:
        if kind == REFUSAL:
            raise Refused(f"the broker answered {self.explain(frame)}")
        return frame[7:11] in (CHANNEL_OPEN_OK, BIND_OK, CONSUME_OK)

    def publish(self, topic: str, alias: int, index: int = 0) -> Publish:
        key = spelled(topic, "fanlight", "amqp").encode()
        first = method(CHANNEL, 60, 40, b"\0\0" + EXCHANGE + short(key) + b"\0")
        size = self.scenario.payload_bytes
        header = struct.pack(">HHQHB", 60, 0, size, 0x1000, 1)
        made = first + struct.pack(">BHI", 2, CHANNEL, len(header)) + header + b"\xce"
        made += struct.pack(">BHI", 3, CHANNEL, size)
        digits = key.find(ZEROS.encode()) if "{n}" in self.scenario.topic else -1
        frame = FrameTemplate(
            made + bytes(size) + b"\xce", len(made), digits_at=len(first) - 2 - len(key) + digits if digits >= 0 else 0
        )
        return Publish(key, frame, digits_at=digits)

    def explain(self, frame: bytes) -> str:
        return frame[11:-1].decode(errors="replace")
