"""Slow consumers, over real sockets: what each policy does to them, and that nobody else notices.

A slow consumer here does not read its socket at all until the test says so. The kernel's buffers take some hundred
kilobytes before the broker's outbox begins to fill, so a flood is megabytes. Sequences are compared and counters must
account for every message; times are not measured.
"""

import asyncio
from typing import Any

import pytest

import fanlight
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish, SubAck, Subscribe, Subscription
from tests.conftest import StartBroker, TestBroker
from tests.system.mqtt_wire import MqttPeer
from tests.system.views import KIB, MIB, eventually, logged_once_it_is, stats, view
from tests.system.wire import (
    SMALL_BUFFER,
    Peer,
    Peers,
    Type,
    number_of,
    numbered,
    ping,
    publish,
    unsubscribe,
)

FLOOD = 8_000  # messages of SIZE bytes: far more than the kernel and an outbox of OUTBOX together hold
SIZE = 1_000
OUTBOX = 256 * KIB
# A policy acts at once, and a client may choose any.
SMALL: dict[str, Any] = {
    "outbox_bytes_max": OUTBOX, "frame_bytes_max": 64 * KIB, "burst_seconds_max": 0, "pause_allowed": True,
    "linger_seconds_max": 60,  # what a sleeper that wakes up still gets, it is to get on a slow machine, too
}


async def sleeper(broker: TestBroker, policy: str, pattern: str = "flood") -> Peer:
    """A subscriber that reads nothing more after its OK, with as small a buffer as the kernel gives."""
    peer = await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER, client="sleeper", slow_policy=policy)
    await peer.subscribe(1, pattern)
    return peer


def flood(count: int = FLOOD, topic: str = "flood", start: int = 0) -> bytes:
    return b"".join(publish(topic, payload) for payload in numbered(range(start, start + count), SIZE))


async def slow_consumer(broker: TestBroker) -> dict[str, Any]:
    """The one entry of /slow-consumers."""
    (only,) = (await view(broker, "/slow-consumers"))["slow_consumers"]
    assert only["client"] == "sleeper"
    return dict(only)


async def named_once(broker: TestBroker, policy: str) -> None:
    """The log has one line about it, which says who it is and what happens to it."""
    (line,) = await logged_once_it_is(broker, "slow_consumer", client="sleeper")
    assert (line["policy"], line["address"]) == (policy, "127.0.0.1")
    assert line["connection"] > 0


DEFAULTS: dict[str, Any] = {"outbox_bytes_max": OUTBOX, "frame_bytes_max": 64 * KIB}  # but for a smaller outbox


async def test_by_default_a_slow_subscriber_costs_only_itself(start_broker: StartBroker) -> None:
    """Everybody else gets everything; what it loses is counted, and publishers wait for no longer than their budget."""
    broker = start_broker(**DEFAULTS, burst_window_seconds=3600)
    slow = await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER, client="sleeper")
    async with slow, await Peer.connect(broker.port) as reader, await Peer.connect(broker.port) as publisher:
        assert slow.welcome["slow_policy"] == "drop_newest"
        await slow.subscribe(1, "flood")
        await reader.subscribe(1, "flood")
        for start in range(0, FLOOD, 100):
            await publisher.send(flood(100, start=start))
            assert await reader.payloads(100) == numbered(range(start, start + 100), SIZE)
        await publisher.settle()
        seen = await stats(broker)
        assert seen["slow_consumers_disconnected"] == 0
        dropped = seen["dropped_newest"]
        assert dropped > 0
        entry = await slow_consumer(broker)
        assert entry["dropped"] == dropped
        assert entry["held_publishers_seconds"] > 0
        assert entry["slow_seconds"] > 0
        # However late a busy machine's timer is, it is one hold, which ended before it drained, and no other came.
        assert seen["publishers_paused"] == 1
        assert [held for _, held, *_ in publisher.notices] == [True, False]
        request = slow.next_request()
        await slow.send(unsubscribe(request, 1))
        *frames, answer = await slow.until(Type.OK, request)
        assert answer[2] == {"delivered": len(frames), "dropped": dropped}
        assert len(frames) + dropped == FLOOD


async def test_a_client_does_not_get_pause_where_the_operator_does_not_allow_it(start_broker: StartBroker) -> None:
    broker = start_broker(**DEFAULTS, burst_seconds_max=0)
    async with await sleeper(broker, "pause") as slow, await Peer.connect(broker.port) as publisher:
        assert slow.welcome["slow_policy"] == "drop_newest"
        await publisher.send(flood())
        await publisher.settle()
        seen = await stats(broker)
        assert seen["publishers_paused"] == 0
        assert seen["dropped_newest"] > 0


async def test_a_publisher_sees_that_it_is_held_and_for_how_long(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL, pause_seconds_max=3600)
    async with await sleeper(broker, "pause") as slow, fanlight.connect(broker.url) as publisher:
        flooding = publisher.publish_many(("flood", bytes(SIZE)) for _ in range(FLOOD))
        publishing = asyncio.create_task(flooding)
        await eventually(broker, lambda now: now["publishers_held"] == 1)
        await eventually(broker, lambda _: publisher.stats.held)
        assert publisher.stats.held_times >= 1
        await slow.payloads(FLOOD)
        await publishing
        await publisher.flush()
        assert not publisher.stats.held
        assert publisher.stats.held_seconds > 0
        after = await stats(broker)
        assert after["publishers_held"] == 0
        assert after["publishers_held_ms"] > 0


async def test_a_subscriber_that_acknowledges_now_and_then_stops_nobody(start_broker: StartBroker) -> None:
    """With QoS 1, to `#`: its queue fills, drops and counts; each publish of another client is acknowledged."""
    broker = start_broker(queue_messages_max=500, inflight_messages_max=10)
    slow, publisher = MqttPeer(), MqttPeer()
    async with slow.connected(broker.mqtt_port, "slow"), publisher.connected(broker.mqtt_port, "publisher"):
        await slow.send(Subscribe(1, (Subscription("#", 1),)))
        await slow.expect(SubAck)
        identifiers = []
        for number in range(3_000):
            identifier = number % 60_000 + 1
            await publisher.send(Publish("a/b", payload=bytes(100), qos=1, packet_id=identifier))
            assert (await publisher.expect(PubAck)).packet_id == identifier
            if number % 100 == 99:  # a token
                identifiers.append((await slow.expect(Publish)).packet_id)
                await slow.send(PubAck(identifiers[-1]))
        seen = await stats(broker)
        assert seen["messages_in"] >= 3_000
        assert seen["dropped_queue"] > 2_000
        assert seen["slow_consumers_disconnected"] == 0
        (entry,) = (await view(broker, "/slow-consumers"))["slow_consumers"]
        assert (entry["client"], entry["dropped"]) == ("slow", seen["dropped_queue"])
    await logged_once_it_is(broker, "slow_consumer", client="slow")


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest"])
async def test_what_is_dropped_is_accounted_for_to_the_message(start_broker: StartBroker, policy: str) -> None:
    broker = start_broker(**SMALL)
    async with await sleeper(broker, policy) as slow, await Peer.connect(broker.port) as publisher:
        await publisher.send(flood())
        await publisher.settle()

        dropped = (await stats(broker))[f"dropped_{policy.removeprefix('drop_')}"]
        assert dropped > 0
        entry = await slow_consumer(broker)
        assert entry["dropped"] == dropped
        assert entry["policy"] == policy
        assert entry["outbox_bytes"] <= OUTBOX

        request = slow.next_request()
        await slow.send(unsubscribe(request, 1))
        *frames, answer = await slow.until(Type.OK, request)
        assert {kind for kind, *_ in frames} == {Type.MESSAGE}
        received = [number_of(payload) for _, _, _, payload in frames]
        assert len(received) == FLOOD - dropped
        assert received == sorted(set(received))
        assert all(len(payload) == SIZE for _, _, _, payload in frames)
        assert answer[2] == {"delivered": FLOOD - dropped, "dropped": dropped}
        assert (await stats(broker))["messages_out"] == FLOOD - dropped
    await named_once(broker, policy)


async def test_drop_oldest_keeps_the_newest_without_a_gap(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL)
    async with await sleeper(broker, "drop_oldest") as slow, await Peer.connect(broker.port) as publisher:
        await publisher.send(flood())
        await publisher.settle()
        count = FLOOD - (await stats(broker))["dropped_oldest"]
        received = [number_of(payload) for payload in await slow.payloads(count)]
        # What the outbox held when the flood was over is the end of it; what came before had left for the kernel.
        held = OUTBOX // (SIZE + 40)
        assert received[-held:] == list(range(FLOOD - held, FLOOD))


async def test_drop_newest_keeps_the_oldest_without_a_gap(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL)
    async with await sleeper(broker, "drop_newest") as slow, await Peer.connect(broker.port) as publisher:
        await publisher.send(flood())
        await publisher.settle()
        count = FLOOD - (await stats(broker))["dropped_newest"]
        received = [number_of(payload) for payload in await slow.payloads(count)]
        held = OUTBOX // (SIZE + 40)
        assert received[:held] == list(range(held))


async def test_a_consumer_that_reads_again_gets_everything_from_then_on(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL)
    async with await sleeper(broker, "drop_newest") as slow, await Peer.connect(broker.port) as publisher:
        await publisher.send(flood())
        await publisher.settle()
        await slow.payloads(FLOOD - (await stats(broker))["dropped_newest"])
        for start in range(FLOOD, FLOOD + 1_000, 100):
            await publisher.send(flood(100, start=start))
            received = [number_of(payload) for payload in await slow.payloads(100)]
            assert received == list(range(start, start + 100))
    await named_once(broker, "drop_newest")


async def test_disconnect_cuts_the_slow_one_off_and_says_why(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL)
    async with await sleeper(broker, "disconnect") as slow, await Peer.connect(broker.port) as publisher:
        await publisher.send(flood())
        await publisher.settle()

        *frames, goodbye = await slow.rest()
        assert goodbye[:2] == [Type.GOODBYE, "slow_consumer"]
        received = [number_of(payload) for _, _, _, payload in frames]
        assert received == list(range(len(received)))
        seen = await eventually(broker, lambda now: now["connections"] == 1)
        assert seen["messages_out"] == len(received)
        assert seen["dropped_disconnect"] > 0
        assert seen["slow_consumers"] == seen["slow_consumers_disconnected"] == 1
        assert seen["messages_unroutable"] + seen["messages_out"] + seen["dropped_disconnect"] == FLOOD
        assert seen["outbox_bytes"] == 0
        assert await publisher.publish("flood") == 0
    await named_once(broker, "disconnect")
    (line,) = await logged_once_it_is(broker, "slow_consumer_disconnected", client="sleeper")
    assert 0 < line["lost"] <= seen["dropped_disconnect"]
    (end,) = await logged_once_it_is(broker, "client_disconnected", client="sleeper")
    assert end["lost"] == line["lost"]


async def test_a_cut_off_consumer_that_never_reads_is_gone_after_linger_seconds(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL | {"linger_seconds_max": 0.3})
    async with await sleeper(broker, "disconnect"), await Peer.connect(broker.port) as publisher:
        await publisher.send(flood())
        await publisher.settle()
        await eventually(broker, lambda now: now["connections"] == 1 and now["outbox_bytes"] == 0)
        assert await publisher.publish("flood") == 0


async def test_pause_holds_the_publisher_back_and_loses_nothing(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL, pause_seconds_max=60)
    async with await sleeper(broker, "pause") as slow, await Peer.connect(broker.port) as publisher:
        sending = asyncio.create_task(publisher.send(flood(), ping(1)))
        paused = await eventually(broker, lambda now: now["outboxes_blocking"] == 1)
        assert paused["messages_in"] < FLOOD
        assert (await slow_consumer(broker))["reason"] == "holds publishers back"

        received = [number_of(payload) for payload in await slow.payloads(FLOOD)]
        assert received == list(range(FLOOD))
        await sending
        await publisher.expect(Type.PONG, 1)
        after = await stats(broker)
        assert after["messages_out"] == FLOOD
        assert after["publishers_paused"] >= 1
        assert not any(count for name, count in after.items() if name.startswith("dropped_"))
        assert after["outboxes_blocking"] == after["outbox_bytes"] == 0
    await named_once(broker, "pause")


async def test_only_publishers_to_the_slow_one_are_paused(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL, pause_seconds_max=60)
    async with (
        await sleeper(broker, "pause") as slow,
        await Peer.connect(broker.port) as publisher,
        await Peer.connect(broker.port) as reader,
        await Peer.connect(broker.port) as other,
    ):
        await reader.subscribe(1, "elsewhere")
        sending = asyncio.create_task(publisher.send(flood()))
        await eventually(broker, lambda now: now["outboxes_blocking"] == 1)
        for start in range(0, 1_000, 100):
            await other.send(flood(100, "elsewhere", start))
            assert await reader.payloads(100) == numbered(range(start, start + 100), SIZE)
        assert (await stats(broker))["outboxes_blocking"] == 1
        await slow.payloads(FLOOD)
        await sending


async def test_a_pause_ends_after_pause_seconds_with_the_consumer_cut_off(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL, pause_seconds_max=0.5)
    async with (
        await sleeper(broker, "pause") as slow,
        await Peer.connect(broker.port) as reader,
        await Peer.connect(broker.port) as publisher,
    ):
        await reader.subscribe(1, "flood")
        # The reader is held up with the publisher, and gets everything all the same.
        for start in range(0, FLOOD, 100):  # no more at a time than there is room for, however slow this machine is
            await publisher.send(flood(100, start=start))
            assert [number_of(payload) for payload in await reader.payloads(100)] == list(range(start, start + 100))
        await publisher.send(ping(1))
        await publisher.expect(Type.PONG, 1)
        *frames, goodbye = await slow.rest()
        assert goodbye[:2] == [Type.GOODBYE, "slow_consumer"]
        got = [number_of(payload) for _, _, _, payload in frames]
        assert got == list(range(len(got)))
        seen = await eventually(broker, lambda now: now["connections"] == 2)
        assert seen["slow_consumers_disconnected"] == 1
        assert seen["messages_out"] == FLOOD + len(got)
        assert seen["outbox_bytes"] == seen["outboxes_blocking"] == 0
    await named_once(broker, "pause")


async def test_a_paused_publisher_that_goes_away_is_forgotten(start_broker: StartBroker) -> None:
    broker = start_broker(**SMALL, pause_seconds_max=60)
    async with await sleeper(broker, "pause") as slow:
        publisher = await Peer.connect(broker.port)
        sending = asyncio.create_task(publisher.send(flood()))
        await eventually(broker, lambda now: now["outboxes_blocking"] == 1)
        sending.cancel()
        await asyncio.wait({sending})
        publisher.reset()
        # Nothing is read from a paused publisher, so its end is seen when the last of its pauses is over: what it had
        # sent before may fill the outbox more than once.
        while (now := await stats(broker))["connections"] > 1:
            if now["outboxes_blocking"]:
                await slow.payloads(100)
        async with await Peer.connect(broker.port, slow_policy="pause") as reader, await Peer.connect(
            broker.port
        ) as another:
            await reader.subscribe(1, "elsewhere")
            assert await another.publish("elsewhere", b"on") == 1
            assert (await reader.message()).payload == b"on"


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "disconnect"])
async def test_one_stalled_of_fifty_does_not_cost_the_others_a_message(
    start_broker: StartBroker, policy: str
) -> None:
    broker = start_broker(**SMALL, slow_policy=policy)
    batch, batches, size = 25, 40, 8_000
    async with Peers() as readers, await Peer.connect(broker.port) as publisher:
        slow = await sleeper(broker, policy, "ticks.#")
        readers.append(slow)
        for _ in range(49):
            peer = await Peer.connect(broker.port)
            await peer.subscribe(1, "ticks.#")
            readers.append(peer)
        for number in range(batches):
            numbers = range(number * batch, (number + 1) * batch)
            wanted = numbered(numbers, size)
            topics = [f"ticks.{i % 7}" for i in numbers]
            await publisher.send(*map(publish, topics, wanted))
            # Together they must have this batch before the next is sent: none of them is behind, but the one.
            for got in await asyncio.gather(*(peer.payloads(batch) for peer in readers[1:])):
                assert got == wanted
        seen = await stats(broker)
        assert seen["slow_consumers"] == 1
        lost = seen["dropped_newest"] + seen["dropped_oldest"] + seen["dropped_disconnect"]
        assert lost > 0
        if policy == "disconnect":
            assert (await slow.rest())[-1][:2] == [Type.GOODBYE, "slow_consumer"]
        else:
            received = [number_of(payload) for payload in await slow.payloads(batch * batches - lost)]
            assert received == sorted(set(received))
            assert seen["messages_in"] * 50 == (await stats(broker))["messages_out"] + lost
    await named_once(broker, policy)


async def test_large_frames_leave_whole_however_slowly_they_are_read(start_broker: StartBroker) -> None:
    broker = start_broker(pause_allowed=True, pause_seconds_max=3600)
    size, count = MIB - 100, 24
    payloads = [bytes([n]) * size for n in range(count)]
    async with Peers() as readers, await Peer.connect(broker.port) as publisher:
        for buffer in (None, SMALL_BUFFER, None, SMALL_BUFFER):
            peer = await Peer.connect(broker.port, receive_buffer=buffer, slow_policy="pause")
            await peer.subscribe(1, "large")
            readers.append(peer)

        async def read(peer: Peer) -> list[bytes]:
            return await peer.payloads(count)

        sending = asyncio.create_task(publisher.send(*(publish("large", payload) for payload in payloads)))
        for got in await asyncio.gather(*map(read, readers)):
            assert got == payloads
        await sending
        assert (await stats(broker))["outbox_bytes"] == 0


async def test_large_shared_frames_are_dropped_whole_and_the_newest_stay(start_broker: StartBroker) -> None:
    broker = start_broker(burst_seconds_max=0)
    size, count = MIB - 100, 40
    async with (
        await sleeper(broker, "drop_oldest", "large") as slow,
        await Peer.connect(broker.port) as reader,
        await Peer.connect(broker.port) as publisher,
    ):
        await reader.subscribe(1, "large")
        for n in range(count):
            await publisher.send(publish("large", bytes([n]) * size), publish("large", b"small"))
            large, small = await reader.payloads(2)
            assert large == bytes([n]) * size
            assert small == b"small"
        seen = await stats(broker)
        assert 0 < seen["outbox_bytes"] <= 8 * MIB
        left = await slow.payloads(2 * count - seen["dropped_oldest"])
        assert all(payload == b"small" or payload == payload[:1] * size for payload in left)
        order = [payload[0] for payload in left if payload != b"small"]
        assert order == sorted(order)
        assert order[-5:] == list(range(count - 5, count))
