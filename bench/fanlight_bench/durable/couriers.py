"""What is said to a broker once per connection, so that messages are kept: MQTT, AMQP 0-9-1 and NATS JetStream.

Bytes and judgements of answers, no sockets. A topic is a prefix and six digits, in each protocol's spelling; it is also
the name of the queue of AMQP and of the durable consumer of JetStream that its messages wait in.
"""

import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from fanlight_bench.load.amqp import AMQP
from fanlight_bench.load.mqtt import MQTT_3
from fanlight_bench.load.nats import JETSTREAM
from fanlight_bench.load.protocol import ACKNOWLEDGEMENT, GRANTED, REFUSAL, WELCOME, Dialect
from fanlight_bench.load.speak_mqtt import body, packet, string
from fanlight_bench.load.speaker import FrameTemplate, Refused

Pieces = Iterator[tuple[bytes, int]]  # bytes, and the answers that they get

DIGITS = "000000"
PREFETCH = 10_000  # deliveries that a consumer has not acknowledged: it acknowledges each at once


class Courier(ABC):
    """One protocol. The handshake of a connection is `hello`, then `publisher` or `consumer`."""

    dialect: Dialect

    @abstractmethod
    def hello(self, client: str, *, kept: bool) -> bytes:
        """What opens a connection, answered once. kept: of a consumer whose messages wait while it is away."""

    def prepare(self, prefix: str, consumers: Sequence[int]) -> list[Pieces]:
        """Once before all others, on a connection of its own: make what keeps messages. In steps: a step is answered
        before the next one is said."""
        return []

    def publisher(self, client: str) -> Pieces:
        yield from ()

    def consumer(self, number: int, prefix: str, topic: int, *, again: bool) -> Pieces:
        """Consume a topic. again: it did so before, and was away."""
        yield from ()

    @abstractmethod
    def publish(
        self, client: str, prefix: str, payload_bytes: int, *, retain: bool = False
    ) -> tuple[FrameTemplate, int]:
        """A message that is acknowledged when it is kept, and where the digits of its topic begin. retain: of MQTT."""

    @abstractmethod
    def is_answer(self, kind: int, frame: bytes) -> bool:
        """Whether this frame is an answer. Raises Refused when the broker says no."""

    def goodbye(self) -> bytes:
        return b""


class MqttCourier(Courier):
    """MQTT 3.1.1: QoS 1, sessions that outlive their connections (3.1.2.4)."""

    dialect = MQTT_3

    def hello(self, client: str, *, kept: bool) -> bytes:
        variable = string("MQTT") + bytes([4, 0 if kept else 2]) + struct.pack(">H", 0)
        return packet(0x10, variable + string(client))

    def consumer(self, number: int, prefix: str, topic: int, *, again: bool) -> Pieces:
        if not again:
            yield self.subscribe([f"{prefix}/{topic:06}"]), 1

    def subscribe(self, filters: Sequence[str]) -> bytes:
        """SUBSCRIBE with QoS 1."""
        return packet(0x82, b"\0\1" + b"".join(string(one) + b"\1" for one in filters))

    def publish(
        self, client: str, prefix: str, payload_bytes: int, *, retain: bool = False
    ) -> tuple[FrameTemplate, int]:
        variable = string(f"{prefix}/{DIGITS}") + b"\0\0"
        made = packet(0x33 if retain else 0x32, variable + bytes(payload_bytes))
        payload_at = len(made) - payload_bytes
        return FrameTemplate(made, payload_at, payload_at - 2), payload_at - 2 - len(DIGITS)

    def is_answer(self, kind: int, frame: bytes) -> bool:
        said = body(frame)
        if kind == WELCOME and said[1]:
            raise Refused(f"the broker answered CONNACK with {said[1]:#04x}")
        if kind == GRANTED and any(code != 1 for code in said[2:]):
            raise Refused(f"QoS 1 was asked for, and {list(said[2:])} granted")
        return kind in (WELCOME, GRANTED)

    def goodbye(self) -> bytes:
        return b"\xe0\0"


CHANNEL = 1
FRAME_BYTES_MAX = 131_072


class AmqpCourier(Courier):
    """AMQP 0-9-1 with RabbitMQ's publisher confirms: durable queues, persistent messages. type: classic or quorum."""

    dialect = AMQP

    def __init__(self, queue_type: str, user: str = "guest", password: str = "guest") -> None:
        self.queue_type = queue_type
        self._login = f"\0{user}\0{password}".encode()

    def hello(self, client: str, *, kept: bool) -> bytes:
        """All of the handshake at once (2.2.4): the broker reads a step when it has answered the one before."""
        capabilities = _table({"publisher_confirms": True, "basic.nack": True})
        start = _table({"product": client}, {"capabilities": capabilities})
        start += _short("PLAIN") + struct.pack(">I", len(self._login)) + self._login + _short("en_US")
        tune = struct.pack(">HIH", CHANNEL, FRAME_BYTES_MAX, 0)
        return (
            b"AMQP\0\0\x09\x01" + method(0, 10, 11, start) + method(0, 10, 31, tune)
            + method(0, 10, 40, _short("/") + b"\0\0")
        )  # fmt: skip

    def prepare(self, prefix: str, consumers: Sequence[int]) -> list[Pieces]:
        """A queue of each topic."""
        return [self._queues(prefix, consumers)]

    def _queues(self, prefix: str, topics: Sequence[int]) -> Pieces:
        yield self._channel()
        for topic in topics:
            name = _short(f"{prefix}.{topic:06}")
            yield method(CHANNEL, 50, 10, b"\0\0" + name + b"\2" + _table({"x-queue-type": self.queue_type})), 1

    def publisher(self, client: str) -> Pieces:
        yield self._channel()
        yield method(CHANNEL, 85, 10, b"\0"), 1

    def consumer(self, number: int, prefix: str, topic: int, *, again: bool) -> Pieces:
        yield self._channel()
        yield method(CHANNEL, 60, 10, struct.pack(">IHB", 0, PREFETCH, 0)), 1
        queue = _short(f"{prefix}.{topic:06}")
        yield method(CHANNEL, 60, 20, b"\0\0" + queue + _short("c") + b"\0" + _table({})), 1

    def publish(
        self, client: str, prefix: str, payload_bytes: int, *, retain: bool = False
    ) -> tuple[FrameTemplate, int]:
        first = method(CHANNEL, 60, 40, b"\0\0" + _short("") + _short(f"{prefix}.{DIGITS}") + b"\0")
        header = struct.pack(">HHQHB", 60, 0, payload_bytes, 0x1000, 2)  # delivery-mode 2: persistent (1.8.1)
        made = first + _frame(2, CHANNEL, header)
        payload_at = len(made) + 7
        topic_at = len(first) - 2 - len(DIGITS)
        return FrameTemplate(made + _frame(3, CHANNEL, bytes(payload_bytes)), payload_at), topic_at

    def is_answer(self, kind: int, frame: bytes) -> bool:
        if kind == REFUSAL:
            raise Refused(f"the broker answered {frame[11:-1]!r}")
        return kind in (WELCOME, GRANTED)

    def _channel(self) -> tuple[bytes, int]:
        return method(CHANNEL, 20, 10, b"\0"), 1


class JetStreamCourier(Courier):
    """NATS JetStream: a stream in files, durable push consumers with explicit acknowledgements."""

    dialect = JETSTREAM

    def hello(self, client: str, *, kept: bool) -> bytes:
        options = {"verbose": False, "pedantic": False, "name": client, "lang": "bench", "version": "1", "protocol": 1}
        return b"CONNECT " + json.dumps({**options, "headers": False}).encode() + b"\r\nPING\r\n"

    def prepare(self, prefix: str, consumers: Sequence[int]) -> list[Pieces]:
        """A stream that deletes what is acknowledged, and a durable consumer of each topic."""
        subjects = [f"{prefix}.*"]
        stream = {"name": prefix, "subjects": subjects, "storage": "file", "retention": "workqueue"}
        first = [(self._inbox("prepare"), 1), (self._request("prepare", f"STREAM.CREATE.{prefix}", stream), 1)]
        return [iter(first), self._consumers(prefix, consumers)]

    def _consumers(self, prefix: str, consumers: Sequence[int]) -> Pieces:
        for number, topic in enumerate(consumers):
            config = {
                "durable_name": f"{number:06}", "deliver_subject": f"to.{prefix}.{number:06}", "ack_policy": "explicit",
                "filter_subject": f"{prefix}.{topic:06}", "max_ack_pending": PREFETCH,
            }  # fmt: skip
            request = {"stream_name": prefix, "config": config}
            yield self._request("prepare", f"CONSUMER.DURABLE.CREATE.{prefix}.{number:06}", request), 1

    def publisher(self, client: str) -> Pieces:
        yield self._inbox(client), 1

    def consumer(self, number: int, prefix: str, topic: int, *, again: bool) -> Pieces:
        yield f"SUB to.{prefix}.{number:06} 2\r\nPING\r\n".encode(), 1

    def publish(
        self, client: str, prefix: str, payload_bytes: int, *, retain: bool = False
    ) -> tuple[FrameTemplate, int]:
        head = f"PUB {prefix}.{DIGITS} _INBOX.{client}.0000000000 {payload_bytes}\r\n".encode()
        number_at = head.rindex(b" ") - 10
        return FrameTemplate(head + bytes(payload_bytes) + b"\r\n", len(head), number_at), 4 + len(prefix) + 1

    def is_answer(self, kind: int, frame: bytes) -> bool:
        if kind == REFUSAL:
            raise Refused(f"the broker answered {frame.decode(errors='replace').strip()}")
        return kind in (GRANTED, ACKNOWLEDGEMENT)

    def _inbox(self, client: str) -> bytes:
        return f"SUB _INBOX.{client}.* 1\r\nPING\r\n".encode()

    def _request(self, client: str, what: str, said: Mapping[str, object]) -> bytes:
        payload = json.dumps(said).encode()
        return f"PUB $JS.API.{what} _INBOX.{client}.0000000000 {len(payload)}\r\n".encode() + payload + b"\r\n"


def method(channel: int, of_class: int, number: int, arguments: bytes) -> bytes:
    """A method frame of AMQP (2.3.5.1)."""
    return _frame(1, channel, struct.pack(">HH", of_class, number) + arguments)


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def _short(text: str) -> bytes:
    octets = text.encode()
    return bytes([len(octets)]) + octets


def _table(values: dict[str, str | bool], tables: dict[str, bytes] | None = None) -> bytes:
    """A field table (4.2.5.5) of long strings, truth values and tables."""
    made = b""
    for name, value in values.items():
        octets = str(value).encode()
        made += _short(name) + (
            bytes([ord("t"), value]) if isinstance(value, bool) else b"S" + struct.pack(">I", len(octets)) + octets
        )
    for name, table in (tables or {}).items():
        made += _short(name) + b"F" + table
    return struct.pack(">I", len(made)) + made
