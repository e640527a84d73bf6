"""The load generator sees every fault that a broker can make. The broker here is the test."""

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import msgpack  # type: ignore[import-untyped, unused-ignore]
import pytest

from bench import frames

pytest.importorskip("bench.generator", reason="needs epoll")
from bench.generator import Generator
from bench.measure import FAULTS

TOPIC = "plant.line1.value"
SUBSCRIPTION = 77


@dataclass
class Bench:
    """A generator with one publisher and two subscribers, of whom the first gets the only stream."""

    generator: Generator
    publisher: socket.socket
    subscriber: socket.socket
    bystander: socket.socket

    def published(self) -> list[bytes]:
        """The bodies of the frames that the generator has sent so far."""
        data = bytearray()
        self.publisher.setblocking(False)
        try:
            while part := self.publisher.recv(1 << 20):
                data += part
        except BlockingIOError:
            pass
        return split(bytes(data))

    def faults(self) -> dict[str, int]:
        self.generator.drain(0.01)
        counters = self.generator.counters()
        return {name: counters[name] for name in FAULTS if counters[name]}


def split(data: bytes) -> list[bytes]:
    bodies = []
    while data:
        (size,) = struct.unpack_from(">I", data)
        bodies.append(data[4 : 4 + size])
        data = data[4 + size :]
    return bodies


def delivery(publish: bytes, subscription: int = SUBSCRIPTION) -> bytes:
    """The MESSAGE of a PUBLISH body: what a broker sends to a subscriber."""
    _, _, *rest = msgpack.unpackb(publish)
    body = bytes([0x90 | (2 + len(rest)), frames.MESSAGE, 0xCE]) + struct.pack(">I", subscription)
    return framed(body + b"".join(msgpack.packb(field) for field in rest))


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def make(*, receipts: bool = False, latency: bool = False) -> tuple[Bench, list[socket.socket]]:
    pairs = [socket.socketpair() for _ in range(3)]
    for ours, _ in pairs:
        ours.setblocking(False)
    generator = Generator(payload_bytes=64, window=4, batch=4, receipts=receipts, latency=latency)
    generator.add_subscriber(pairs[0][0].fileno(), SUBSCRIPTION)
    generator.add_subscriber(pairs[1][0].fileno(), SUBSCRIPTION + 1)
    generator.add_publisher(pairs[2][0].fileno())
    frame, topic, payload_at = frames.publish(TOPIC, 64, "amqp", receipt=receipts)
    generator.add_stream(0, topic, frame, payload_at, [0])
    generator.start()
    bench = Bench(generator, publisher=pairs[2][1], subscriber=pairs[0][1], bystander=pairs[1][1])
    return bench, [end for pair in pairs for end in pair]


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Four messages have been published, and none delivered: the window is full."""
    made, sockets = make()
    made.generator.run(0.02)
    yield made
    for end in sockets:
        end.close()


def test_the_window_holds_publishing_back_until_deliveries_come(bench: Bench) -> None:
    first = bench.published()
    assert len(first) == 4
    bench.generator.run(0.02)
    assert bench.published() == []
    bench.subscriber.sendall(b"".join(delivery(body) for body in first))
    bench.generator.run(0.02)
    assert len(bench.published()) == 4


def test_what_is_published_is_the_message_that_was_asked_for(bench: Bench) -> None:
    for number, body in enumerate(bench.published()):
        kind, request, topic, payload = msgpack.unpackb(body)
        assert (kind, request, topic) == (frames.PUBLISH, None, TOPIC)
        sequence, _, stream = struct.unpack_from("=QQI", payload)
        assert (sequence, stream, len(payload)) == (number, 0, 64)


def test_a_faultless_broker_has_no_faults(bench: Bench) -> None:
    bench.subscriber.sendall(b"".join(delivery(body) for body in bench.published()))
    assert bench.faults() == {}
    assert bench.generator.deliveries.received == 4


def test_deliveries_are_understood_byte_by_byte(bench: Bench) -> None:
    for octet in b"".join(delivery(body) for body in bench.published()):
        bench.subscriber.sendall(bytes([octet]))
        bench.generator.run(0.001)
        if bench.generator.deliveries.received == 1:
            break
    assert bench.generator.counters()["damaged"] == 0
    assert bench.generator.deliveries.received == 1


def test_a_missing_delivery_is_lost(bench: Bench) -> None:
    first, _, third, fourth = bench.published()
    bench.subscriber.sendall(delivery(first) + delivery(third) + delivery(fourth))
    assert bench.faults() == {"lost": 1}


def test_a_delivery_that_comes_twice_is_repeated(bench: Bench) -> None:
    bodies = bench.published()
    bench.subscriber.sendall(b"".join(delivery(body) for body in [*bodies, bodies[1]]))
    assert bench.faults() == {"repeated": 1}


def test_a_delivery_that_is_overtaken_is_reordered_and_not_lost(bench: Bench) -> None:
    first, second, third, fourth = bench.published()
    bench.subscriber.sendall(b"".join(delivery(body) for body in [first, third, second, fourth]))
    assert bench.faults() == {"reordered": 1}


def test_a_delivery_to_the_wrong_connection_is_misrouted(bench: Bench) -> None:
    first, *rest = bench.published()
    bench.bystander.sendall(delivery(first, SUBSCRIPTION + 1))
    bench.subscriber.sendall(b"".join(delivery(body) for body in rest))
    assert bench.faults() == {"misrouted": 1, "lost": 1}


def test_a_delivery_under_the_wrong_subscription_is_misrouted(bench: Bench) -> None:
    first, *rest = bench.published()
    bench.subscriber.sendall(delivery(first, SUBSCRIPTION + 1) + b"".join(delivery(body) for body in rest))
    assert bench.faults() == {"misrouted": 1, "lost": 1}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TOPIC.encode(), TOPIC.replace("1", "2").encode()),  # another topic
        (b"xyzab", b"xyzAb"),                                # a changed payload
    ],
)  # fmt: skip
def test_a_changed_delivery_is_damaged(bench: Bench, old: bytes, new: bytes) -> None:
    first, *rest = (delivery(body) for body in bench.published())
    assert old in first
    bench.subscriber.sendall(first.replace(old, new) + b"".join(rest))
    assert bench.faults() == {"damaged": 1, "lost": 1}


def test_a_delivery_of_what_was_never_published_is_damaged(bench: Bench) -> None:
    bodies = bench.published()
    forged = bodies[0].replace(struct.pack("=Q", 0), struct.pack("=Q", 1_000), 1)
    bench.subscriber.sendall(b"".join(delivery(body) for body in [*bodies, forged]))
    assert bench.faults() == {"damaged": 1}


def test_what_is_no_frame_ends_the_connection_and_is_damaged(bench: Bench) -> None:
    bench.subscriber.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert bench.faults() == {"damaged": 1, "closed_by_broker": 1, "lost": 4}


def test_a_closed_connection_is_a_fault(bench: Bench) -> None:
    bench.subscriber.sendall(b"".join(delivery(body) for body in bench.published()))
    bench.bystander.close()
    assert bench.faults() == {"closed_by_broker": 1}


def test_an_error_from_the_broker_is_a_fault_and_is_kept(bench: Bench) -> None:
    bench.subscriber.sendall(b"".join(delivery(body) for body in bench.published()))
    bench.publisher.sendall(frames.encode(frames.ERROR, None, "not_permitted", "no"))
    assert bench.faults() == {"refused": 1}
    assert msgpack.unpackb(bench.generator.complaint()) == [frames.ERROR, None, "not_permitted", "no"]


def test_a_ping_is_answered(bench: Bench) -> None:
    bench.subscriber.sendall(frames.encode(11, 4_000_000_000))
    bench.generator.drain(0.01)
    assert [msgpack.unpackb(body) for body in split(bench.subscriber.recv(100))] == [[12, 4_000_000_000]]


def test_frames_of_unknown_types_are_skipped(bench: Bench) -> None:
    deliveries = b"".join(delivery(body) for body in bench.published())
    bench.subscriber.sendall(frames.encode(99, "later") + deliveries)
    assert bench.faults() == {}


@pytest.mark.parametrize(
    ("answers", "faults"),
    [
        ([(1, 1), (2, 1), (3, 1), (4, 1)], {}),
        ([(1, 1), (3, 1), (2, 1), (4, 1)], {"wrong_receipts": 3}),  # out of order
        ([(1, 1), (2, 2), (3, 1), (4, 1)], {"wrong_receipts": 1}),  # routed to one too many
    ],
)
def test_receipts_are_checked(answers: list[tuple[int, int]], faults: dict[str, int]) -> None:
    bench, sockets = make(receipts=True)
    bench.generator.run(0.02)
    bodies = bench.published()
    assert [msgpack.unpackb(body)[1] for body in bodies] == [1, 2, 3, 4]
    bench.subscriber.sendall(b"".join(delivery(body) for body in bodies))
    bench.publisher.sendall(b"".join(frames.encode(frames.RECEIPT, *answer) for answer in answers))
    assert bench.faults() == faults
    for end in sockets:
        end.close()


def test_latency_is_the_time_from_sending_to_receiving() -> None:
    bench, sockets = make(latency=True)
    bench.generator.run(0.02)  # the messages go out at its beginning: they are 20 ms old at its end
    bench.subscriber.sendall(b"".join(delivery(body) for body in bench.published()))
    assert bench.faults() == {}
    assert bench.generator.quantile(0.5) > 0.015
    for end in sockets:
        end.close()


def test_a_paced_load_keeps_its_rate_without_deliveries() -> None:
    bench, sockets = make()
    bench.generator.run(0.1, rate=1_000.0)
    # More than the window would let it, and never ahead of its schedule, however slow the machine.
    assert 4 < bench.generator.deliveries.published <= 101
    for end in sockets:
        end.close()


def test_a_payload_too_small_for_its_header_is_refused() -> None:
    with pytest.raises(ValueError, match="19 bytes"):
        Generator(payload_bytes=19)


def test_a_generator_without_streams_says_so() -> None:
    with pytest.raises(ValueError, match="no stream"):
        Generator().run(0.01)
