"""Subscribers over their rate: they get what waits later, and nobody else waits for them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native
from tests.broker.protocols.native.world import messages
from tests.broker.protocols.sinks import FREE, PACED, ByAddress, NativePeer, connect_mqtt, connect_native


def native_world(**entries: Any) -> native.World:
    world = native.World(idle_seconds_max=0)
    world.broker.clients.quotas = ByAddress(PACED, **entries)
    return world


def subscribed(world: native.World, address: str = PACED, **options: Any) -> NativePeer:
    peer = connect_native(world, address, **options)
    peer.send(native.frame(6, 1, 1, "#"))
    assert peer.next()[0] != 13
    return peer


def got(peer: native.Peer) -> int:
    return len(messages(peer.frames()))


@given(
    st.integers(1, 20), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12),
    st.booleans(), st.integers(1, 3),
)
def test_so_many_messages_are_sent_as_the_rate_allows_and_none_is_lost(
    rate: int, steps: list[tuple[int, int]], large: bool, watchers: int
) -> None:
    world = native_world(deliver_messages=rate)
    subscriber, publisher = subscribed(world), connect_native(world, FREE)
    others = [subscribed(world, FREE) for _ in range(watchers)]  # so that messages are joined to batches
    one = native.publish("a", b"x" * (20_000 if large else 1))
    tokens, waiting = float(rate), 0
    for count, eighths in steps:
        publisher.send(one * count)
        assert [got(other) for other in others] == [count] * watchers
        waiting += count
        for seconds in (0, eighths / 8):
            world.pass_time(seconds)
            tokens = min(tokens + seconds * rate, float(rate))
            sent = min(waiting, int(tokens))
            tokens, waiting = tokens - sent, waiting - sent
            assert got(subscriber) == sent
    for _ in range(waiting):
        world.pass_time(1.0)
        waiting -= got(subscriber)
    assert waiting == 0


def test_a_message_that_takes_more_than_there_is_is_sent_and_the_next_one_waits_for_it() -> None:
    world = native_world(deliver_bytes=1_000)
    subscriber, publisher = subscribed(world), connect_native(world, FREE)
    publisher.send(native.publish("a", bytes(2_960)) + native.publish("a", b"x"))
    assert got(subscriber) == 1
    world.pass_time(1.9)
    assert got(subscriber) == 0
    world.pass_time(0.2)
    assert got(subscriber) == 1


@given(st.lists(st.sampled_from([20, 100, 700, 20_000]), min_size=1, max_size=20), st.integers(100, 5_000))
def test_the_average_of_bytes_is_kept_whatever_the_sizes(sizes: list[int], rate: int) -> None:
    world = native_world(deliver_bytes=rate)
    subscriber, publisher = subscribed(world), connect_native(world, FREE)
    publisher.send(b"".join(native.publish("a", bytes(size)) for size in sizes))
    begun, total = world.now, 0
    while total < len(sizes):
        frames = subscriber.frames()
        total += len(messages(frames))
        octets = sum(len(native.frame(*fields)) for fields in frames)
        before = world.now
        world.pass_time(1.0)
        assert octets <= 2 * rate + 20_100 + (world.now - before) * rate
        assert world.now - begun < 60 + sum(sizes) * 2 / rate + 10 * len(sizes)
    assert world.now - begun >= (sum(sizes[:-1]) - rate) / rate


def test_answers_pass_while_no_message_waits_before_them() -> None:
    world = native_world(deliver_messages=1)
    subscriber, publisher = subscribed(world), connect_native(world, FREE)
    publisher.send(native.publish("a", b"x"))
    assert got(subscriber) == 1
    subscriber.send(native.frame(11, 7))  # PING
    assert subscriber.frames() == [[12, 7]]


def test_all_connections_of_a_principal_have_one_rate_and_take_turns() -> None:
    world = native_world(deliver_messages=4)
    subscribers, publisher = [subscribed(world) for _ in range(4)], connect_native(world, FREE)
    publisher.send(native.publish("a", b"x") * 4)
    by_subscriber = [0] * 4
    for _ in range(4):
        count = [got(subscriber) for subscriber in subscribers]
        by_subscriber = [one + more for one, more in zip(by_subscriber, count, strict=True)]
        assert sum(count) == 4
        world.pass_time(1.0)
    assert by_subscriber == [4] * 4


def test_another_subscriber_and_the_publisher_do_not_wait() -> None:
    world = native_world(deliver_messages=1)
    slow, quick, publisher = subscribed(world), subscribed(world, FREE), connect_native(world, FREE)
    publisher.send(native.publish("a", b"x") * 1_000)
    assert (got(slow), got(quick), publisher.held_back) == (1, 1_000, False)
    assert world.broker.paces.sat_out >= 1


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "disconnect"])
def test_what_piles_up_meets_the_policy_of_slow_consumers(policy: str) -> None:
    world = native.World(idle_seconds_max=0, outbox_bytes_max=2_000)
    world.broker.clients.quotas = ByAddress(PACED, deliver_messages=1)
    slow, publisher = subscribed(world, slow_policy=policy), connect_native(world, FREE)
    outbox = slow.protocol.outbox
    publisher.send(b"".join(native.publish("a", bytes([n]) * 100) for n in range(1, 100)))
    assert not publisher.held_back
    assert outbox.size <= 2_000
    assert slow.gone == (policy == "disconnect")
    if policy != "disconnect":
        assert outbox.dropped > 50
        kept = [slow.frames()]
        for _ in range(30):
            world.pass_time(1.0)
            kept.append(slow.frames())
        payloads = [payload[0] for frames in kept for _, payload in messages(frames)]
        assert len(payloads) + outbox.dropped == 99
        assert payloads == sorted(payloads)
        assert (99 in payloads) == (policy == "drop_oldest")


def test_a_debt_outlives_the_connection() -> None:
    world = native_world(deliver_messages=10)
    subscriber, publisher = subscribed(world), connect_native(world, FREE)
    publisher.send(native.publish("a", b"x") * 100)
    assert got(subscriber) == 10
    subscriber.vanish()
    again = subscribed(world)
    publisher.send(native.publish("a", b"x") * 100)
    assert got(again) == 0
    world.pass_time(0.1)
    assert got(again) == 1
    again.vanish()
    world.pass_time(1.0)
    assert len(world.broker.paces) == 0


def test_what_a_closing_connection_sends_is_paid_by_the_next_one() -> None:
    world = native_world(deliver_messages=10)
    subscriber, publisher = subscribed(world), connect_native(world, FREE)
    publisher.send(native.publish("a", b"x") * 25)
    assert got(subscriber) == 10
    subscriber.send(native.frame(14, "done", "bye"))  # GOODBYE
    assert got(subscriber) == 15
    again = subscribed(world)
    publisher.send(native.publish("a", b"x"))
    world.pass_time(1.5)
    assert got(again) == 0
    world.pass_time(0.1)
    assert got(again) == 1


def test_a_subscriber_that_is_sent_nothing_is_not_taken_for_silent() -> None:
    world = native.World(idle_seconds_max=10)
    world.broker.clients.quotas = ByAddress(PACED, deliver_messages=0.01)
    subscriber, publisher = subscribed(world), connect_native(world, FREE)
    publisher.send(native.publish("a", b"x") * 3)
    for _ in range(30):
        world.pass_time(4.0)
        publisher.send(native.frame(11, 1))
    assert not subscriber.gone
    assert got(subscriber) == 2


def test_a_client_whose_answers_wait_is_not_read_from_and_not_cut_off() -> None:
    world = native.World(idle_seconds_max=0, control_bytes_max=100, pause_seconds_max=5)
    world.broker.clients.quotas = ByAddress(PACED, deliver_messages=0.05)
    subscriber, publisher = subscribed(world), connect_native(world, FREE)
    publisher.send(native.publish("a", b"x") * 2)
    for number in range(40):
        subscriber.send(native.frame(11, number))
    assert subscriber.held_back
    for _ in range(19):
        world.pass_time(1.0)
    assert not subscriber.gone
    assert got(subscriber) == 1
    world.pass_time(2.0)
    assert [fields[0] for fields in subscriber.frames()] == [4] + [12] * 40
    assert not subscriber.held_back


def test_other_quotas_reach_those_who_wait() -> None:
    world = native_world(deliver_messages=1)
    subscriber, publisher = subscribed(world), connect_native(world, FREE)
    publisher.send(native.publish("a", b"x") * 10)
    assert got(subscriber) == 1
    world.broker.use_quotas(ByAddress(PACED, deliver_messages=4, burst_seconds=2))
    world.turn()
    world.pass_time(1.0)
    assert got(subscriber) == 4
    world.broker.use_quotas(ByAddress("elsewhere", connections=1))
    world.turn()
    assert got(subscriber) == 5
    assert subscriber.protocol.outbox.delivery is None
    assert not subscriber.protocol.outbox.sits_out


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("qos", [0, 1])
def test_mqtt_messages_wait_and_none_is_lost_or_sent_twice(version: Version, qos: int) -> None:
    world = mqtt.World()
    world.broker.clients.quotas = ByAddress(PACED, deliver_messages=3)
    subscriber = connect_mqtt(world, "s", version, PACED)
    assert subscriber.subscribe("#", qos=qos) == (qos,)
    publisher = connect_mqtt(world, "p", version, FREE)
    for number in range(1, 41):
        publisher.say(Publish("a", bytes([number]), qos=qos, packet_id=number if qos else None))
    got: list[int] = []
    for second in range(20):
        packets = [packet for packet in subscriber.packets() if isinstance(packet, Publish)]
        got += [packet.payload[0] for packet in packets]
        assert len(got) <= 3 * (second + 1)
        for packet in packets:
            if packet.packet_id is not None:
                subscriber.say(PubAck(packet.packet_id))
        world.pass_time(1.0)
    assert got == list(range(1, 41))


def test_who_acknowledges_late_gets_as_many_as_it_takes_unacknowledged() -> None:
    """What is in flight may wait in the outbox: a client may wait for more before it acknowledges any."""
    world = mqtt.World()
    world.broker.clients.quotas = ByAddress(PACED, deliver_messages=1)
    subscriber = connect_mqtt(world, "s", V5, PACED, receive_maximum=10)
    assert subscriber.subscribe("#", qos=1) == (1,)
    publisher = connect_mqtt(world, "p", V5, FREE)
    for number in range(1, 21):
        publisher.say(Publish("a", bytes([number]), qos=1, packet_id=number))
    got: list[int] = []
    while len(got) < 20:
        unacknowledged = []
        for _ in range(15):
            unacknowledged += [packet for packet in subscriber.packets() if isinstance(packet, Publish)]
            world.pass_time(1.0)
        assert len(unacknowledged) == 10
        got += [packet.payload[0] for packet in unacknowledged]
        subscriber.say(*(PubAck(packet.packet_id or 0) for packet in unacknowledged))
    assert got == list(range(1, 21))


def test_a_consumer_of_a_named_queue_gets_all_once_and_in_order() -> None:
    """Its prefetch and the time in which it is to acknowledge must fit its rate: here 2 within 5 seconds."""
    world = native_world(deliver_messages=0.5)
    consumer, publisher = connect_native(world, PACED), connect_native(world, FREE)
    consumer.say(6, 1, 7, "orders.#", {"consumer": "q", "durable": True, "ack": True, "ack_wait": 5.0, "prefetch": 2})
    assert consumer.next()[0] == 7
    for number in range(12):
        publisher.send(native.publish("orders.a", bytes([number])))
    got: list[int] = []
    for _ in range(40):
        deliveries = [fields for fields in consumer.frames() if fields[0] == 32]
        got += [fields[2] for fields in deliveries]
        for fields in deliveries:
            consumer.say(33, 7, fields[2])
        world.pass_time(1.0)
    assert got == list(range(1, 13))
    assert world.broker.ledger.redelivered == 0
