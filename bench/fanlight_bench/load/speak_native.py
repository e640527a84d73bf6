"""The native protocol, said: docs/native-protocol.md, sections 3.1 to 3.5."""

from collections.abc import Iterable, Iterator

from fanlight_bench import frames
from fanlight_bench.load.native import NATIVE
from fanlight_bench.load.protocol import GRANTED, REFUSAL, WELCOME
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import FrameTemplate, Publish, Refused, Speaker
from fanlight_bench.load.spelling import ZEROS, spelled
from fanlight_bench.load.target import Target

PIECE_SUBSCRIPTIONS = 500  # of one write; only the last asks for an answer, errors come unasked


class NativeSpeaker(Speaker):
    names_subscriptions = True
    qos_max = 1  # a receipt

    def __init__(self, target: Target, scenario: Scenario) -> None:
        super().__init__(NATIVE, target, scenario)
        self._null = False

    def hello(self, client: str) -> bytes:
        user, password = self.target.user_of(client), self.target.password
        options = {"client": client, "agent": "bench", "user": user, "password": password}
        return frames.encode(frames.HELLO, frames.VERSION, {key: said for key, said in options.items() if said})

    def subscribe(self, filters: Iterable[tuple[int, str]]) -> Iterator[tuple[bytes, int]]:
        options = {"syntax": frames.SYNTAXES[self.target.syntax]}
        piece = list[tuple[int, str]]()

        def encoded() -> bytes:
            requests = [None] * (len(piece) - 1) + [1]
            return b"".join(
                frames.encode(frames.SUBSCRIBE, request, self.subscription(number), pattern, options)
                for request, (number, pattern) in zip(requests, piece, strict=True)
            )

        for entry in filters:
            piece.append(entry)
            if len(piece) == PIECE_SUBSCRIPTIONS:
                yield encoded(), 1
                piece.clear()
        if piece:
            yield encoded(), 1

    def subscribe_where(self, filters: Iterable[tuple[int, str, str]]) -> Iterator[tuple[bytes, int]]:
        syntax = frames.SYNTAXES[self.target.syntax]
        for number, pattern, where in filters:
            options = {"syntax": syntax, "where": where}
            yield frames.encode(frames.SUBSCRIBE, 1, self.subscription(number), pattern, options), 1

    def is_answer(self, kind: int, frame: bytes) -> bool:
        if kind == REFUSAL:
            raise Refused(f"the broker answered {self.explain(frame)}")
        if kind == WELCOME:
            self._null = frames.unpack(frame[4:])[2].get("server") == frames.NULL_SERVER
        return kind in (WELCOME, GRANTED)

    def publish(self, topic: str, alias: int, index: int = 0) -> Publish:
        wire = spelled(topic, "fanlight", self.target.syntax)
        receipt = self.scenario.qos > 0
        frame, octets, payload_at = frames.publish(
            wire, self.scenario.payload_bytes, self.target.syntax, receipt=receipt, headers=self.headers(index)
        )
        digits = octets.find(ZEROS.encode()) if "{n}" in self.scenario.topic else -1
        in_frame = frame.find(octets) + digits if digits >= 0 else 0
        return Publish(octets, FrameTemplate(frame, payload_at, 7 if receipt else 0, in_frame), digits_at=digits)

    def explain(self, frame: bytes) -> str:
        try:
            return frames.explain(frames.unpack(frame[4:]))
        except frames.Refused:  # cut off, or damaged
            return repr(frame)

    def goodbye(self) -> bytes:
        return frames.encode(frames.GOODBYE, "done", None)

    def subscription(self, number: int) -> int:
        return frames.NULL_SUBSCRIPTION if self._null else number
