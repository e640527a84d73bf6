"""The text protocol of NATS, said: CONNECT, SUB and PUB. A PING behind them is answered when they are done."""

import json
from collections.abc import Iterable, Iterator

from fanlight_bench.load.nats import NATS
from fanlight_bench.load.protocol import GRANTED, REFUSAL
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import FrameTemplate, Publish, Refused, Speaker
from fanlight_bench.load.spelling import ZEROS, spelled
from fanlight_bench.load.target import Target

PIECE_SUBSCRIPTIONS = 500  # of one write


class NatsSpeaker(Speaker):
    names_subscriptions = True
    parent = False
    qos_max = 0

    def __init__(self, target: Target, scenario: Scenario) -> None:
        super().__init__(NATS, target, scenario)

    def hello(self, client: str) -> bytes:
        options = {
            "verbose": False, "pedantic": False, "name": client, "lang": "bench", "version": "1", "protocol": 1,
            "headers": False, "user": self.target.user, "pass": self.target.password,
        }  # fmt: skip
        said = {key: value for key, value in options.items() if value is not None}
        return b"CONNECT " + json.dumps(said).encode() + b"\r\nPING\r\n"

    def subscribe(self, filters: Iterable[tuple[int, str]]) -> Iterator[tuple[bytes, int]]:
        piece: list[str] = []
        for number, pattern in filters:
            piece.append(f"SUB {pattern} {number}\r\n")
            if len(piece) == PIECE_SUBSCRIPTIONS:
                yield "".join([*piece, "PING\r\n"]).encode(), 1
                piece.clear()
        if piece:
            yield "".join([*piece, "PING\r\n"]).encode(), 1

    def is_answer(self, kind: int, frame: bytes) -> bool:
        if kind == REFUSAL:
            raise Refused(f"the broker answered {self.explain(frame)}")
        return kind == GRANTED

    def publish(self, topic: str, alias: int, index: int = 0) -> Publish:
        subject = spelled(topic, "nats", "mqtt").encode()
        head = b"PUB " + subject + f" {self.scenario.payload_bytes}\r\n".encode()
        digits = subject.find(ZEROS.encode()) if "{n}" in self.scenario.topic else -1
        frame = FrameTemplate(
            head + bytes(self.scenario.payload_bytes) + b"\r\n", len(head), digits_at=4 + digits if digits >= 0 else 0
        )
        return Publish(subject, frame, digits_at=digits)

    def explain(self, frame: bytes) -> str:
        return frame.decode(errors="replace").strip()
