"""Further requests of the other kinds of scenario: unsubscribe, ping, store a message. See speaker.py.

Plain Python, for what is done some ten thousand times a second at most.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from fanlight_bench import frames
from fanlight_bench.load.protocol import GRANTED, OTHER, REFUSAL
from fanlight_bench.load.speak_mqtt import packet, string
from fanlight_bench.load.speaker import Refused, Speaker
from fanlight_bench.load.spelling import spelled

UNSUBSCRIBE, PING, PONG = 8, 11, 12  # of the native protocol
UNSUBACK, PINGRESP = 11, 13          # of MQTT

Entry = tuple[int, str]  # a subscription: its number and its filter, as the protocol spells it


class ClientRequests(ABC):
    """The requests that one connection can make. Bytes come with the number of answers that they get."""

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker
        self.target = speaker.target
        self.dialect = speaker.dialect

    def hello(self, client: str) -> bytes:
        """As the speaker says it."""
        return self.speaker.hello(client)

    @abstractmethod
    def subscribe(self, entries: Sequence[Entry]) -> tuple[bytes, int]:
        """Begin these subscriptions, each by a command of its own."""

    @abstractmethod
    def unsubscribe(self, entries: Sequence[Entry]) -> tuple[bytes, int]:
        """End them, likewise."""

    @abstractmethod
    def ping(self) -> tuple[bytes, int]:
        """Ask whether somebody is there: answered behind all that was said before."""

    def store(self, topic: str, payload: bytes) -> bytes:
        """Publish a retained message. Raises Refused if the protocol has none."""
        raise Refused(f"{self.target.protocol} has no retained messages")

    def is_answer(self, kind: int, frame: bytes) -> bool:
        """Whether this frame answers one of the above. Raises Refused when the broker says no."""
        if kind == REFUSAL:
            raise Refused(f"the broker answered {self.speaker.explain(frame)}")
        return self._answers(kind, frame)

    @abstractmethod
    def _answers(self, kind: int, frame: bytes) -> bool: ...

    def spelled(self, text: str) -> str:
        """A topic or filter, as the protocol writes it."""
        return spelled(text, self.target.protocol, self.target.syntax)


class NativeRequests(ClientRequests):
    def subscribe(self, entries: Sequence[Entry]) -> tuple[bytes, int]:
        options = {"syntax": frames.SYNTAXES[self.target.syntax]}
        return b"".join(
            frames.encode(frames.SUBSCRIBE, 1, number, pattern, options) for number, pattern in entries
        ), len(entries)

    def unsubscribe(self, entries: Sequence[Entry]) -> tuple[bytes, int]:
        return b"".join(frames.encode(UNSUBSCRIBE, 1, number, None) for number, _ in entries), len(entries)

    def ping(self) -> tuple[bytes, int]:
        return frames.encode(PING, 1), 1

    def _answers(self, kind: int, frame: bytes) -> bool:
        return kind == GRANTED or (kind == OTHER and frame[5] == PONG)


class MqttRequests(ClientRequests):
    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker)
        self._five = self.target.protocol == "mqtt5"
        self._identifiers = itertools.cycle(range(1, 65_536))

    def subscribe(self, entries: Sequence[Entry]) -> tuple[bytes, int]:
        return b"".join(self._packet(0x82, pattern, b"\0") for _, pattern in entries), len(entries)

    def unsubscribe(self, entries: Sequence[Entry]) -> tuple[bytes, int]:
        return b"".join(self._packet(0xA2, pattern, b"") for _, pattern in entries), len(entries)

    def _packet(self, first: int, pattern: str, behind: bytes) -> bytes:
        identifier = next(self._identifiers).to_bytes(2)
        return packet(first, identifier + (b"\0" if self._five else b"") + string(pattern) + behind)

    def ping(self) -> tuple[bytes, int]:
        return b"\xc0\0", 1

    def store(self, topic: str, payload: bytes) -> bytes:
        return packet(0x31, string(topic) + (b"\0" if self._five else b"") + payload)

    def _answers(self, kind: int, frame: bytes) -> bool:
        if kind == GRANTED:
            return self.speaker.is_answer(kind, frame)
        return kind == OTHER and frame[0] >> 4 in (UNSUBACK, PINGRESP)


class NatsRequests(ClientRequests):
    def subscribe(self, entries: Sequence[Entry]) -> tuple[bytes, int]:
        return "".join([f"SUB {p} {n}\r\n" for n, p in entries] + ["PING\r\n"]).encode(), 1

    def unsubscribe(self, entries: Sequence[Entry]) -> tuple[bytes, int]:
        return "".join([f"UNSUB {number}\r\n" for number, _ in entries] + ["PING\r\n"]).encode(), 1

    def ping(self) -> tuple[bytes, int]:
        return b"PING\r\n", 1

    def _answers(self, kind: int, frame: bytes) -> bool:
        return kind == GRANTED


def requests(speaker: Speaker) -> ClientRequests:
    """The requests that the target of this speaker understands."""
    kinds: dict[str, Callable[[Speaker], ClientRequests]] = {
        "fanlight": NativeRequests, "mqtt": MqttRequests, "mqtt5": MqttRequests, "nats": NatsRequests,
    }  # fmt: skip
    return kinds[speaker.target.protocol](speaker)
