"""The load generator sees every fault that a broker can make, in each protocol. The broker here is the test."""

import itertools
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.load import shared_counters
from fanlight_bench.load.streams import Streams
from tests.bench.load.between import SUBSCRIPTION, TOPIC, Bench, Pairs, fill, make
from tests.bench.load.wire import WIRES, Wire

# MQTT 3.1.1 has no errors but a close; in MQTT only clients ping, and a delivery does not say which filter it is for.
NUMBERED = [wire for wire in WIRES if wire.numbered]
ERRING = [wire for wire in WIRES if wire.error]
PINGING = [wire for wire in WIRES if wire.ping]


def wire_name(wire: Wire) -> str:
    return wire.name


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    """Connected sockets, the generator's end first: of the two subscribers and the publisher."""
    made = [socket.socketpair() for _ in range(3)]
    for ours, _ in made:
        ours.setblocking(False)
    yield made
    for pair in made:
        for end in pair:
            end.close()


@pytest.fixture(params=WIRES, ids=wire_name)
def wire(request: pytest.FixtureRequest) -> Wire:
    chosen: Wire = request.param
    return chosen


@pytest.fixture
def bench(wire: Wire, pairs: Pairs) -> Bench:
    """Four messages have been published, and none delivered: the window is full."""
    made = make(wire, pairs)
    fill(made)
    return made


def test_the_window_holds_publishing_back_until_deliveries_come(bench: Bench) -> None:
    first = bench.deliveries()
    assert len(first) == 4
    bench.generator.run(0.02)
    assert bench.published() == []
    bench.subscriber.sendall(b"".join(first))
    bench.generator.run(0.02)
    assert len(bench.published()) == 4


def test_what_is_published_is_the_message_that_was_asked_for(bench: Bench) -> None:
    for number, frame in enumerate(bench.deliveries()):
        delivery = bench.speaker.dialect.delivery(frame)
        assert delivery["topic"] == bench.speaker.publish(TOPIC, 1).topic
        payload = delivery["payload"]
        assert isinstance(payload, bytes)
        sequence, _, stream = struct.unpack_from("=QQI", payload)
        assert (sequence, stream, len(payload), payload[-1]) == (number, 0, 64, number)


def test_a_faultless_broker_has_no_faults(bench: Bench) -> None:
    bench.subscriber.sendall(b"".join(bench.deliveries()))
    assert bench.faults() == {}
    assert bench.counters()["unique"] == 4


def test_deliveries_are_understood_byte_by_byte(bench: Bench) -> None:
    first, *rest = bench.deliveries()
    for octet in first:
        bench.subscriber.sendall(bytes([octet]))
        bench.generator.run(0.0002)
    assert bench.counters()["received"] == 1
    bench.subscriber.sendall(b"".join(rest))
    bench.generator.run(0.02)
    assert bench.counters()["received"] == 4
    assert bench.counters()["unique"] == 4


def test_a_missing_delivery_is_lost(bench: Bench) -> None:
    first, _, third, fourth = bench.deliveries()
    bench.subscriber.sendall(first + third + fourth)
    assert bench.faults() == {"lost": 1}


def test_a_delivery_that_comes_twice_is_repeated(bench: Bench) -> None:
    deliveries = bench.deliveries()
    bench.subscriber.sendall(b"".join([*deliveries, deliveries[1]]))
    assert bench.faults() == {"repeated": 1}


def test_a_delivery_that_is_overtaken_is_reordered_and_not_lost(bench: Bench) -> None:
    first, second, third, fourth = bench.deliveries()
    bench.subscriber.sendall(first + third + second + fourth)
    assert bench.faults() == {"reordered": 1}


def test_a_delivery_to_the_wrong_connection_is_misrouted(bench: Bench) -> None:
    first, *rest = bench.deliveries()
    bench.bystander.sendall(first)
    bench.subscriber.sendall(b"".join(rest))
    assert bench.faults() == {"misrouted": 1, "lost": 1}


def test_a_delivery_to_a_publisher_is_misrouted(bench: Bench) -> None:
    first, *rest = bench.deliveries()
    bench.publisher.sendall(first)
    bench.subscriber.sendall(b"".join(rest))
    assert bench.faults() == {"misrouted": 1, "lost": 1}


@pytest.mark.parametrize("wire", NUMBERED, ids=wire_name)
def test_a_delivery_under_the_wrong_subscription_is_misrouted(bench: Bench) -> None:
    first, *rest = bench.published()
    wrong = bench.wire.delivery(first, SUBSCRIPTION + 1)
    bench.subscriber.sendall(wrong + b"".join(bench.wire.delivery(frame, SUBSCRIPTION) for frame in rest))
    assert bench.faults() == {"misrouted": 1, "lost": 1}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"line1", b"line2"),  # another topic
        (b"xyzab", b"xyzAb"),  # a changed payload
    ],
)
def test_a_changed_delivery_is_damaged(bench: Bench, old: bytes, new: bytes) -> None:
    first, *rest = bench.deliveries()
    assert old in first
    bench.subscriber.sendall(first.replace(old, new) + b"".join(rest))
    assert bench.faults() == {"damaged": 1, "lost": 1}


def test_a_payload_of_two_messages_is_damaged(bench: Bench) -> None:
    first, second, *rest = bench.deliveries()
    half = len(first) - 30
    bench.subscriber.sendall(first[:half] + second[half:] + second + b"".join(rest))
    assert bench.faults() == {"damaged": 1, "lost": 1}


def test_a_delivery_of_what_was_never_published_is_damaged(bench: Bench) -> None:
    deliveries = bench.deliveries()
    forged = deliveries[0].replace(struct.pack("=Q", 0), struct.pack("=Q", 256), 1)
    bench.subscriber.sendall(b"".join([*deliveries, forged]))
    assert bench.faults() == {"damaged": 1}


def test_what_is_no_frame_ends_the_connection_and_is_damaged(bench: Bench) -> None:
    bench.subscriber.sendall(bench.wire.nonsense)
    assert bench.faults() == {"damaged": 1, "closed": 1, "lost": 4}
    assert bench.generator.broken()


def test_a_closed_connection_is_a_fault(bench: Bench) -> None:
    bench.subscriber.sendall(b"".join(bench.deliveries()))
    bench.bystander.close()
    assert bench.faults() == {"closed": 1}


@pytest.mark.parametrize("wire", ERRING, ids=wire_name)
def test_an_error_from_the_broker_is_a_fault_and_is_kept(bench: Bench) -> None:
    bench.subscriber.sendall(b"".join(bench.deliveries()))
    bench.publisher.sendall(bench.wire.error)
    assert bench.faults() == {"refused": 1}
    assert bench.wire.error_words in bench.speaker.explain(bench.generator.complaint())


@pytest.mark.parametrize("wire", ERRING, ids=wire_name)
def test_after_an_error_what_still_comes_is_waited_for(bench: Bench) -> None:
    bench.publisher.sendall(bench.wire.error)
    bench.generator.run(0.02)
    assert bench.generator.broken()
    deliveries = bench.deliveries()
    bench.subscriber.sendall(deliveries[0])
    bench.generator.drain(0.01)
    late = threading.Timer(0.1, bench.subscriber.sendall, [b"".join(deliveries[1:])])
    late.start()
    assert bench.generator.drain(10.0)
    late.join()
    assert bench.faults() == {"refused": 1}


@pytest.mark.parametrize("wire", PINGING, ids=wire_name)
def test_a_ping_is_answered(bench: Bench) -> None:
    bench.subscriber.sendall(bench.wire.ping)
    bench.generator.drain(0.01)
    assert bench.subscriber.recv(100) == bench.wire.pong


def test_latency_is_the_time_from_sending_to_receiving(bench: Bench) -> None:
    # The messages went out at the beginning of a run of 20 ms.
    bench.subscriber.sendall(b"".join(bench.deliveries()))
    assert bench.faults() == {}
    assert bench.generator.streams.latency.total == 4
    assert bench.generator.streams.latency.quantile(0.5) > 15e6
    bench.generator.begin()
    assert bench.generator.streams.latency.total == 0


def paced(bench: Bench) -> float:
    """Publish more than the window holds, at 1,000 a second; how long it took, in seconds."""
    begun = time.monotonic()
    while bench.counters()["published"] <= 20:
        bench.generator.run(0.02, rate=1_000.0)
    return time.monotonic() - begun


def test_a_paced_load_waits_for_no_delivery_and_is_never_ahead_of_its_schedule(wire: Wire, pairs: Pairs) -> None:
    bench = make(wire, pairs)
    seconds = paced(bench)
    assert 20 < bench.counters()["published"] <= seconds * 1_000 + 1


def test_a_paced_message_carries_the_time_it_was_due_and_not_the_time_it_was_sent(wire: Wire, pairs: Pairs) -> None:
    bench = make(wire, pairs)
    paced(bench)
    times = []
    for frame in bench.deliveries():
        payload = bench.speaker.dialect.delivery(frame)["payload"]
        assert isinstance(payload, bytes)
        times.append(struct.unpack_from("=QQ", payload)[1])
    gaps = {round((later - earlier) / 1e6, 3) for earlier, later in itertools.pairwise(times)}
    assert gaps == {1.0}


def test_a_paced_load_is_not_piled_up_for_a_broker_that_does_not_read(wire: Wire, pairs: Pairs) -> None:
    bench = make(wire, pairs)
    before = -1
    while bench.counters()["published"] > before:
        before = bench.counters()["published"]
        bench.generator.run(0.2, rate=1e6)
    begun = time.thread_time()
    bench.generator.run(0.2, rate=1e6)
    assert time.thread_time() - begun < 0.1  # it waits, and does not ask all the time
    size = len(bench.published()[0])
    assert before * size < 8 << 20
    while bench.counters()["published"] == before:  # there is room again
        bench.generator.run(0.02, rate=1e6)


def test_what_a_slow_subscriber_misses_is_no_fault_and_what_it_gets_is_counted(wire: Wire, pairs: Pairs) -> None:
    bench = make(wire, pairs, slow=True)
    fill(bench)
    first, *_ = bench.deliveries()
    bench.subscriber.sendall(first)
    bench.generator.run(0.05)
    assert bench.faults() == {}
    assert bench.counters()["slow_received"] == 1
    bench.subscriber.sendall(first)
    bench.generator.run(0.05)
    assert bench.faults() == {"repeated": 1}
    bench.subscriber.close()
    bench.generator.run(0.05)
    assert bench.counters()["slow_closed"] == 1


def test_a_payload_too_small_for_its_header_is_refused() -> None:
    with pytest.raises(ValueError, match="20 bytes"):
        Streams(shared_counters.private(1), 0, 20)


# ---------------------------------------------------------------------- acknowledgements

ACKNOWLEDGING = [wire for wire in WIRES if wire.name != "nats"]


def acknowledged(wire: Wire, pairs: Pairs, qos: int) -> tuple[Bench, list[bytes]]:
    """A generator that has published four messages and wants them acknowledged; the four, which are delivered."""
    bench = make(wire, pairs, qos=qos)
    fill(bench)
    frames = bench.published()
    copies = [wire.delivery(frame, SUBSCRIPTION, number=number) for number, frame in enumerate(frames, 1)]
    bench.subscriber.sendall(b"".join(copies))
    return bench, frames


@pytest.mark.parametrize("wire", ACKNOWLEDGING, ids=wire_name)
def test_publishes_are_numbered_and_held_back_until_they_are_acknowledged(wire: Wire, pairs: Pairs) -> None:
    bench, frames = acknowledged(wire, pairs, 1)
    assert [wire.number(frame) for frame in frames] == [1, 2, 3, 4]
    bench.generator.run(0.02)
    assert bench.published() == []  # all four are in flight, delivered or not
    bench.publisher.sendall(b"".join(wire.acknowledgement(frame) for frame in frames))
    bench.generator.run(0.02)
    assert [wire.number(frame) for frame in bench.published()] == [5, 6, 7, 8]
    assert bench.counters()["acknowledged"] == 4


@pytest.mark.parametrize("wire", ACKNOWLEDGING, ids=wire_name)
@pytest.mark.parametrize(
    ("order", "faults"),
    [
        ([0, 1, 2, 3], {}),
        ([0, 1, 2], {"unacknowledged": 1}),
        ([0, 2, 1, 3], {"wrong_acknowledgements": 2}),
        ([0, 1, 1, 3], {"wrong_acknowledgements": 1}),
    ],
)
def test_acknowledgements_are_checked(wire: Wire, pairs: Pairs, order: list[int], faults: dict[str, int]) -> None:
    bench, frames = acknowledged(wire, pairs, 1)
    bench.publisher.sendall(b"".join(wire.acknowledgement(frames[number]) for number in order))
    assert bench.faults() == faults


def test_a_receipt_that_counts_other_subscriptions_than_there_are_is_wrong(pairs: Pairs) -> None:
    (native,) = (wire for wire in WIRES if wire.name == "native")
    bench, frames = acknowledged(native, pairs, 1)
    answers = [native.acknowledgement(frame, routed=1 + (number == 2)) for number, frame in enumerate(frames)]
    bench.publisher.sendall(b"".join(answers))
    assert bench.faults() == {"wrong_acknowledgements": 1}


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name.startswith("mqtt")], ids=wire_name)
def test_qos_2_is_done_when_pubcomp_has_come(wire: Wire, pairs: Pairs) -> None:
    bench, _ = acknowledged(wire, pairs, 2)
    numbers = [b"\x02\x00" + bytes([number]) for number in (1, 2, 3, 4)]
    bench.publisher.sendall(b"".join(b"\x50" + number for number in numbers))
    bench.generator.drain(0.01)
    assert bench.publisher.recv(100) == b"".join(b"\x62" + number for number in numbers)  # PUBREL
    assert bench.counters()["acknowledged"] == 0
    bench.publisher.sendall(b"".join(b"\x70" + number for number in numbers))
    # The subscriber's side: PUBREC to each PUBLISH, PUBCOMP to each PUBREL.
    assert bench.subscriber.recv(100) == b"".join(b"\x50" + number for number in numbers)
    bench.subscriber.sendall(b"".join(b"\x62" + number for number in numbers))
    assert bench.faults() == {}
    assert bench.subscriber.recv(100) == b"".join(b"\x70" + number for number in numbers)


def test_a_delivery_of_qos_1_is_acknowledged(pairs: Pairs) -> None:
    (mqtt,) = (wire for wire in WIRES if wire.name == "mqtt")
    bench, _ = acknowledged(mqtt, pairs, 1)
    bench.generator.run(0.02)
    assert bench.subscriber.recv(100) == b"".join(b"\x40\x02\x00" + bytes([number]) for number in (1, 2, 3, 4))


# ---------------------------------------------------------------------- what is MQTT 5's own


def aliased(publish: bytes, alias: int, *, topic: bool = True, more: bytes = b"") -> bytes:
    """The PUBLISH with a topic alias, with or without its topic, and with more properties."""
    payload = publish[-64:]
    octets = TOPIC.encode() if topic else b""
    properties = b"\x23" + struct.pack(">H", alias) + more
    body = struct.pack(">H", len(octets)) + octets + bytes([len(properties)]) + properties + payload
    return bytes([0x30, len(body)]) + body


@pytest.fixture
def five(pairs: Pairs) -> Bench:
    (mqtt5,) = (wire for wire in WIRES if wire.name == "mqtt5")
    bench = make(mqtt5, pairs, aliases=10)
    fill(bench)
    return bench


def test_a_topic_is_known_by_the_alias_that_the_broker_gave_it(five: Bench) -> None:
    first, *rest = five.published()
    identifier = b"\x0b\x07"  # a subscription identifier is no property of the message
    deliveries = [aliased(first, 10, more=identifier), *(aliased(frame, 10, topic=False) for frame in rest)]
    five.subscriber.sendall(b"".join(deliveries))
    assert five.faults() == {}


def test_an_alias_that_was_never_given_or_is_too_large_is_damage(five: Bench) -> None:
    first, second, *rest = five.published()
    five.subscriber.sendall(aliased(first, 3, topic=False) + aliased(second, 11) + b"".join(rest))
    assert five.faults() == {"damaged": 2, "lost": 2}


def test_a_property_that_nobody_sent_is_damage(five: Bench) -> None:
    first, *rest = five.published()
    five.subscriber.sendall(aliased(first, 1, more=b"\x26\x00\x01u\x00\x01v") + b"".join(rest))
    assert five.faults() == {"damaged": 1, "lost": 1}


@pytest.mark.parametrize(
    ("came", "faults"),
    [
        (b"\x03\x00\x01j\x26\x00\x01u\x00\x01v", {}),
        (b"\x26\x00\x01u\x00\x01v\x03\x00\x01j", {}),  # in another order (2.2.2.2)
        (b"\x0b\x07\x03\x00\x01j\x26\x00\x01u\x00\x01v", {}),
        (b"\x03\x00\x01j", {"damaged": 1, "lost": 1}),
        (b"\x03\x00\x01j\x26\x00\x01u\x00\x01w", {"damaged": 1, "lost": 1}),
        (b"", {"damaged": 1, "lost": 1}),
    ],
)
def test_properties_must_be_passed_through(pairs: Pairs, came: bytes, faults: dict[str, int]) -> None:
    (mqtt5,) = (wire for wire in WIRES if wire.name == "mqtt5")
    bench = make(mqtt5, pairs, properties={"content_type": "j", "user": {"u": "v"}})
    fill(bench)
    first, *rest = bench.published()
    sent = b"\x03\x00\x01j\x26\x00\x01u\x00\x01v"
    assert bytes([len(sent)]) + sent in first
    variable = struct.pack(">H", len(TOPIC)) + TOPIC.encode() + bytes([len(came)]) + came + first[-64:]
    bench.subscriber.sendall(bytes([0x30, len(variable)]) + variable + b"".join(rest))
    assert bench.faults() == faults


def test_each_message_of_a_topic_with_a_number_has_its_own_topic(wire: Wire, pairs: Pairs) -> None:
    bench = make(wire, pairs, topic="cold/{n}/temp")
    fill(bench)
    frames = bench.published()
    for number, frame in enumerate(frames):
        assert f"cold/{number:010}/temp".replace("/", chr(bench.speaker.publish("a/b", 1).topic[1])).encode() in frame
    deliveries = [wire.delivery(frame, SUBSCRIPTION) for frame in frames]
    wrong = deliveries[3].replace(b"0000000003", b"0000000002")
    bench.subscriber.sendall(b"".join([*deliveries[:3], wrong]))
    assert bench.faults() == {"damaged": 1, "lost": 1}
