"""Whatever one client asks for, no turn of the loop takes more than 50 ms of CPU.

Times are the CPU of the broker, so that a busy machine does not matter: the longest turn, as the broker measures it. A
slow machine has more, in proportion to what it takes for a piece of work that is always the same.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from time import thread_time

from fanlight_broker.protocols.mqtt.packets import Disconnect, Publish, Subscribe, Subscription, Unsubscribe
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from tests.conftest import StartBroker, TestBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.views import eventually, stats
from tests.system.wire import Peer, Type, ping, publish, subscribe

TURN_SECONDS_MAX = 0.050
WORK_SECONDS = 0.015  # of CPU, for what `slowness` does
WORDS = [f"w{n}" for n in range(120)]


def slowness() -> float:
    """How many times slower than the machine that the bound is meant for (a Xeon of 2.5 GHz), 1 at least."""
    taken = []
    for _ in range(3):
        before = thread_time()
        sum(n * n for n in range(200_000))
        taken.append(thread_time() - before)
    return max(1.0, min(taken) / WORK_SECONDS)


@asynccontextmanager
async def watched(broker: TestBroker) -> AsyncIterator[None]:
    """A neighbour asks all the while and is answered, and no turn is too long."""
    answers = 0

    async def ask(neighbour: Peer) -> None:
        while True:
            nonlocal answers
            await neighbour.settle()
            answers += 1

    async with await Peer.connect(broker.port) as neighbour:
        asking = asyncio.create_task(ask(neighbour))
        yield
        asking.cancel()
    longest = (await stats(broker))["turn_cpu_max_seconds"]
    assert 0 < longest < TURN_SECONDS_MAX * slowness(), f"a turn of {1000 * longest:.1f} ms"
    assert answers, "a neighbour was not answered"


def searching(n: int) -> str:
    """A filter that is found wrong at its very end, for a topic of many w0 and some w1."""
    piece = ".".join("w1" if n >> bit & 1 else "w0" for bit in range(16))
    return "#." + ".".join(["w0"] * 30) + "." + piece + ".#." + ".".join(["w0"] * 20) + ".#"


async def pour(peer: Peer, octets: bytes) -> None:
    """Send all of it, and wait until it is processed."""
    await asyncio.gather(peer.send(octets, ping(1)), drunk(peer.until(Type.PONG, 1)))


async def drunk(answers: Awaitable[object]) -> None:
    await answers


async def test_new_topics_against_filters_that_must_be_searched(start_broker: StartBroker) -> None:
    broker = start_broker(share_percent=100)  # one address may have as many as all
    async with AsyncExitStack() as stack:
        owners = [await stack.enter_async_context(await Peer.connect(broker.port)) for _ in range(6)]
        for number, owner in enumerate(owners):
            await pour(owner, b"".join(subscribe(None, n, searching(1_000 * number + n)) for n in range(1_100)))
        assert (await stats(broker))["subscriptions"] == 5_000  # of each 1,000 at most, of all 5,000
        flooding = await stack.enter_async_context(await Peer.connect(broker.port))
        tail = ".".join(["w0"] * 80 + ["w1"] * 20)
        async with watched(broker):
            await pour(flooding, b"".join(publish(f"t{n}.{tail}") for n in range(256)))


async def test_a_hundred_connections_with_new_topics_at_once(broker: TestBroker) -> None:
    async with AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(await Peer.connect(broker.port)) for _ in range(100)]
        await pour(peers[0], b"".join(subscribe(None, n, "#." + WORDS[n % 120]) for n in range(2_000)))
        async with watched(broker):
            floods = [b"".join(publish(f"{n}.{m}." + ".".join(WORDS)) for m in range(40)) for n in range(100)]
            await asyncio.gather(*(pour(peer, flood) for peer, flood in zip(peers, floods, strict=True)))


async def test_many_subscriptions_of_one_filter_made_matched_and_ended(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as other, watched(broker):
        async with await Peer.connect(broker.port) as owner:
            await pour(owner, b"".join(subscribe(None, n, "#") for n in range(50_000)))
            await pour(other, b"".join(publish(f"x.{n}") for n in range(20)))
        await eventually(broker, lambda seen: seen["subscriptions"] == 0)


async def test_one_packet_of_very_many_filters_and_the_end_of_its_session(broker: TestBroker) -> None:
    filters = tuple(f"f/{n}/+" for n in range(20_000))
    async with await MqttPeer.connect(broker.mqtt_port, "retaining") as retaining:
        for n in range(3_000):
            await retaining.send(Publish(f"r/{n}/" + "/".join(WORDS[:30]), b"kept", retain=True))
        async with watched(broker):
            async with await MqttPeer.connect(broker.mqtt_port, "bridge") as bridge:
                assert set(await bridge.subscribe(*filters)) == {0}
                await bridge.send(Unsubscribe(7, filters[:10_000]), Subscribe(8, (Subscription("#"),)))
                for _ in range(3_000):
                    await bridge.message()
            await eventually(broker, lambda seen: seen["subscriptions"] == 0)


async def test_a_packet_of_130_000_user_properties_is_refused_with_the_setting_s_name(broker: TestBroker) -> None:
    pairs = tuple(("", "") for _ in range(130_000))
    for packet in (
        Publish("t", b"", properties=Properties(user_properties=pairs)),
        Subscribe(1, (Subscription("t"),), Properties(user_properties=pairs)),
    ):
        async with watched(broker), await MqttPeer.connect(broker.mqtt_port, "wordy") as wordy:
            await wordy.send(packet)
            answer = await wordy.packet()
            assert isinstance(answer, Disconnect)
            assert answer.reason_code is ReasonCode.QUOTA_EXCEEDED
            assert "mqtt_user_properties_max" in (answer.properties.reason_string or "")


async def test_a_filter_with_many_hashes_is_refused_with_the_setting_s_name(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as peer:
        await peer.subscribe(1, "#.a.#.b.#")
        await peer.send(subscribe(2, 2, "#.a.#.b.#.c.#"))
        error = await peer.expect(Type.ERROR, 2)
        assert error[2] == "limit_exceeded"
        assert "filter_hashes_max" in str(error)


async def test_messages_with_a_thousand_headers_for_another_protocol(broker: TestBroker) -> None:
    pairs = tuple((f"k{n}", "v") for n in range(1_000))
    async with (
        await Peer.connect(broker.port) as native,
        await MqttPeer.connect(broker.mqtt_port, "wordy") as wordy,
    ):
        await native.subscribe(1, "t")
        message = Publish("t", b"", properties=Properties(user_properties=pairs))
        async with watched(broker):
            await wordy.send(*[message] * 40)
            for _ in range(40):
                await native.message()
