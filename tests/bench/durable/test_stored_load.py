"""The compiled load of durable messages, over socket pairs: windows, acknowledgements, checked deliveries."""

import socket
import struct
from collections.abc import Iterator

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.durable.couriers import AmqpCourier, Courier, JetStreamCourier, MqttCourier
from fanlight_bench.durable.stored_load import StoredLoad

PAYLOAD = 24
LONG = 30.0  # seconds that nothing here takes, unless it fails


@pytest.fixture
def pairs() -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    yield opened
    for one in opened:
        one.close()


def pair(pairs: list[socket.socket]) -> tuple[socket.socket, socket.socket]:
    """The load's end, and the broker's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(LONG)
    pairs += [ours, theirs]
    return ours, theirs


def made(courier: Courier, *, publishers: int = 1, consumers: list[int] | None = None, topics: int = 1,
         window: int = 1, behind: int = 0) -> StoredLoad:  # fmt: skip
    frame, topic_at = courier.publish("p", "kept", PAYLOAD)
    publishes = [(frame.octets, frame.payload_at, frame.number_at, topic_at)] * publishers
    return StoredLoad(
        courier.dialect, publishes, [] if consumers is None else consumers, payload_bytes=PAYLOAD, topics=topics,
        window=window, behind=behind,
    )  # fmt: skip


def payload(number: int, publisher: int = 0) -> bytes:
    return struct.pack("=QQI", number, 0, publisher) + bytes(97 + at % 26 for at in range(20, PAYLOAD))


def delivery(number: int, topic: int = 0, publisher: int = 0) -> bytes:
    return b"\x32\x27\x00\x0bkept/%06d\x00\x01" % topic + payload(number, publisher)


def published(courier: Courier, theirs: socket.socket, count: int) -> list[bytes]:
    """The whole publishes that the broker's end has got: of MQTT by their frames, of others by their size."""
    size = len(courier.publish("p", "kept", PAYLOAD)[0].octets)
    data = b""
    while len(data) < size * count:
        data += theirs.recv(size * count - len(data))
    return [data[at : at + size] for at in range(0, len(data), size)]


def puback(number: int) -> bytes:
    return b"\x40\x02" + struct.pack(">H", number)


def test_a_window_is_filled_and_no_more(pairs: list[socket.socket]) -> None:
    ours, theirs = pair(pairs)
    load = made(MqttCourier(), window=3)
    load.attach_publisher(0, ours.fileno())
    load.start()
    load.run(0.0)
    assert load.published == 3
    assert [frame[15:17] for frame in published(MqttCourier(), theirs, 3)] == [b"\0\1", b"\0\2", b"\0\3"]
    theirs.sendall(puback(2))
    load.run(LONG, 1)  # which is reached with the acknowledgement
    assert (load.acknowledged, load.published) == (1, 3)
    load.run(0.0)
    assert load.published == 4


def test_it_says_how_many_messages_a_topic_has(pairs: list[socket.socket]) -> None:
    load = made(MqttCourier(), publishers=2, topics=3, window=5)
    for number in range(2):
        load.attach_publisher(number, pair(pairs)[0].fileno())
    load.start()
    assert [load.published_to(topic) for topic in range(3)] == [0, 0, 0]
    load.run(0.0)
    assert [load.published_to(topic) for topic in range(3)] == [3, 4, 3], "of 0 1 2 0 1 and of 1 2 0 1 2"


def test_acknowledgements_out_of_order_are_each_booked_once(pairs: list[socket.socket]) -> None:
    ours, theirs = pair(pairs)
    load = made(MqttCourier(), window=3)
    load.attach_publisher(0, ours.fileno())
    load.start()
    theirs.sendall(puback(3) + puback(1) + puback(2) + puback(2) + puback(9) + puback(0))
    load.run(LONG, 3)
    assert load.acknowledged == 3
    assert load.wrong_acknowledgements == 3
    assert load.latency.total == 3


def test_a_confirm_of_amqp_may_be_for_all_up_to_it(pairs: list[socket.socket]) -> None:
    ours, theirs = pair(pairs)
    load = made(AmqpCourier("quorum"), window=4)
    load.attach_publisher(0, ours.fileno())
    load.start()

    def confirm(tag: int, *, multiple: bool) -> bytes:
        return b"\x01\x00\x01\x00\x00\x00\x0d\x00\x3c\x00\x50" + struct.pack(">QB", tag, multiple) + b"\xce"

    theirs.sendall(confirm(2, multiple=False) + confirm(3, multiple=True) + confirm(3, multiple=True))
    load.run(LONG, 3)
    assert (load.acknowledged, load.wrong_acknowledgements) == (3, 0)
    theirs.sendall(confirm(9, multiple=False))
    load.run(0.0)
    assert load.wrong_acknowledgements == 1


def test_a_publish_of_jetstream_is_numbered_by_the_subject_of_its_answer(pairs: list[socket.socket]) -> None:
    ours, theirs = pair(pairs)
    load = made(JetStreamCourier(), window=2)
    load.attach_publisher(0, ours.fileno())
    load.start()
    load.run(0.0)
    first, second = published(JetStreamCourier(), theirs, 2)
    assert b" _INBOX.p.0000000001 " in first
    assert b" _INBOX.p.0000000002 " in second
    said = b'{"stream":"kept","seq":1}'
    theirs.sendall(b"MSG _INBOX.p.0000000002 1 %d\r\n%s\r\n" % (len(said), said))
    load.run(LONG, 1)
    assert (load.acknowledged, load.wrong_acknowledgements) == (1, 0)


def test_packet_identifiers_begin_again(pairs: list[socket.socket]) -> None:
    ours, theirs = pair(pairs)
    load = made(MqttCourier(), window=1)
    load.attach_publisher(0, ours.fileno())
    load.start()
    for number in range(70_000):
        theirs.sendall(puback(number % 65_535 + 1))
        load.run(LONG, number + 1)
        theirs.recv(4096)
    assert (load.acknowledged, load.wrong_acknowledgements) == (70_000, 0)


def test_messages_go_round_the_topics_and_each_consumer_knows_its_own(pairs: list[socket.socket]) -> None:
    ours, theirs = pair(pairs)
    load = made(MqttCourier(), publishers=1, consumers=[0, 1, 2], topics=3, window=5)
    load.attach_publisher(0, ours.fileno())
    load.start()
    load.run(0.0)
    frames = published(MqttCourier(), theirs, 5)
    assert [frame[9:15] for frame in frames] == [b"000000", b"000001", b"000002", b"000000", b"000001"]
    load.detach()
    consumers = [pair(pairs) for _ in range(3)]
    for number, (own, _) in enumerate(consumers):
        load.attach_consumer(number, own.fileno())
    load.start()
    for number in range(5):
        consumers[number % 3][1].sendall(delivery(number, number % 3))
    load.drain(0.0, 5)
    assert (load.received, load.right, load.missing, load.repeated, load.misrouted) == (5, 5, 0, 0, 0)
    assert consumers[0][1].recv(100) == b"\x40\x02\x00\x01" * 2


@pytest.mark.parametrize(
    ("deliveries", "fault"),
    [
        ([0, 0], "repeated"),
        ([0, 2], "missing"),
        ([1, 0], "repeated"),
        ([7], "damaged"),  # it was never published
    ],
)
def test_a_delivery_that_is_wrong_is_named(pairs: list[socket.socket], deliveries: list[int], fault: str) -> None:
    load, theirs = _consuming(pairs, [0], 1)
    theirs.sendall(b"".join(delivery(number) for number in deliveries))
    load.drain(0.0, len(deliveries))
    assert getattr(load, fault) == 1
    assert load.received == len(deliveries)


def test_a_delivery_for_another_consumer_is_misrouted(pairs: list[socket.socket]) -> None:
    load, theirs = _consuming(pairs, [0, 1], 2)
    theirs.sendall(delivery(1, 1))
    load.drain(0.0, 1)
    assert (load.misrouted, load.right) == (1, 0)


def test_a_delivery_that_was_changed_is_damaged(pairs: list[socket.socket]) -> None:
    load, theirs = _consuming(pairs, [0], 1)
    theirs.sendall(delivery(0)[:-1] + b"!" + delivery(0)[:-2].replace(b"\x32\x27", b"\x32\x25"))
    load.drain(0.0, 2)
    assert (load.damaged, load.right) == (2, 0)


def test_what_came_with_the_handshake_is_read_at_the_start(pairs: list[socket.socket]) -> None:
    load, _ = _consuming(pairs, [0], 1, rest=delivery(0) + delivery(1) + delivery(2)[:10])
    assert load.right == 2


def test_publishing_waits_for_what_is_not_delivered(pairs: list[socket.socket]) -> None:
    ours, theirs = pair(pairs)
    own, consumer = pair(pairs)
    load = made(MqttCourier(), consumers=[0], window=10, behind=2)
    load.attach_publisher(0, ours.fileno())
    load.attach_consumer(0, own.fileno())
    load.start()
    load.run(0.0)
    assert load.published == 2
    consumer.sendall(delivery(0))
    theirs.sendall(puback(1) + puback(2))
    load.run(0.0)
    assert (load.published, load.acknowledged, load.right) == (2, 2, 1)
    load.run(0.0)
    assert load.published == 3


def test_a_connection_that_is_closed_or_refused_ends_the_run(pairs: list[socket.socket]) -> None:
    ours, theirs = pair(pairs)
    load = made(JetStreamCourier())
    load.attach_publisher(0, ours.fileno())
    load.start()
    theirs.sendall(b"-ERR 'no'\r\n")
    load.run(LONG)
    assert load.refused == 1
    assert load.broken()
    assert load.complaint() == b"-ERR 'no'\r\n"
    again, broker = pair(pairs)
    other = made(MqttCourier())
    other.attach_publisher(0, again.fileno())
    other.start()
    broker.close()
    other.run(LONG)
    assert other.closed == 1


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 21"):
        StoredLoad(MqttCourier().dialect, [], [], payload_bytes=20)
    with pytest.raises(ValueError, match="can number 65535"):
        made(MqttCourier(), window=65_536)
    with pytest.raises(ValueError, match="does not lie in the frame"):
        StoredLoad(MqttCourier().dialect, [(b"short", 2, 0, 0)], [])
    load = made(MqttCourier(), consumers=[0])
    with pytest.raises(ValueError, match="publisher 1 of 1"):
        load.attach_publisher(1, 0)
    with pytest.raises(ValueError, match="consumer 1 of 1"):
        load.attach_consumer(1, 0)


def _consuming(
    pairs: list[socket.socket], consumers: list[int], topics: int, rest: bytes = b""
) -> tuple[StoredLoad, socket.socket]:
    """A load that has published 4 messages, and whose first consumer has come back; and the broker's end of that."""
    ours, _ = pair(pairs)
    load = made(MqttCourier(), consumers=consumers, topics=topics, window=4)
    load.attach_publisher(0, ours.fileno())
    load.start()
    load.run(0.0)
    load.detach()
    own, theirs = pair(pairs)
    load.attach_consumer(0, own.fileno(), rest)
    load.start()
    return load, theirs
