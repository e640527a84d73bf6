"""Whatever one client asks for, no turn of the loop takes more than 50 ms of CPU.

What can be counted is counted: how often work was left for a later turn (`turns_deferred`). A slow or busy machine only
makes that more. The longest turn, as the broker measures it, is checked beside it, in its CPU. A slow machine has more,
in proportion to what it takes for a piece of work that is always the same; and what a hypervisor takes away is counted
as CPU. So a scenario with a turn that is too long is tried again on another broker, and only one that has such a turn
each time fails.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
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
TRIES = 3
WORDS = [f"w{n}" for n in range(120)]

Scenario = Callable[[TestBroker], Awaitable[None]]


class LongTurn(AssertionError):
    """A turn took too much CPU: of the broker, or of another program of the machine's host."""


async def in_short_turns(start_broker: StartBroker, scenario: Scenario, **settings: object) -> None:
    """Raises LongTurn if each of three brokers has a turn that is too long."""
    for left in reversed(range(TRIES)):
        broker = start_broker(**settings)
        try:
            await scenario(broker)
        except LongTurn:
            if not left:
                raise
            broker.finish()
        else:
            return


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
    assert answers, "a neighbour was not answered"
    assert longest > 0
    if longest > TURN_SECONDS_MAX * slowness():
        raise LongTurn(f"a turn of {1000 * longest:.1f} ms")


@asynccontextmanager
async def deferring(broker: TestBroker, least: int) -> AsyncIterator[None]:
    """What is done inside is left for a later turn so many times, or more often."""
    before = (await stats(broker))["turns_deferred"]
    yield
    deferred = (await stats(broker))["turns_deferred"] - before
    assert deferred >= least, f"work was left for a later turn {deferred} times"


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
    async def scenario(broker: TestBroker) -> None:
        async with AsyncExitStack() as stack:
            owners = [await stack.enter_async_context(await Peer.connect(broker.port)) for _ in range(6)]
            for number, owner in enumerate(owners):
                await pour(owner, b"".join(subscribe(None, n, searching(1_000 * number + n)) for n in range(1_100)))
            assert (await stats(broker))["subscriptions"] == 5_000  # of each 1,000 at most, of all 5,000
            flooding = await stack.enter_async_context(await Peer.connect(broker.port))
            tail = ".".join(["w0"] * 80 + ["w1"] * 20)
            async with watched(broker):
                await pour(flooding, b"".join(publish(f"t{n}.{tail}") for n in range(256)))

    await in_short_turns(start_broker, scenario, share_percent=100)  # one address may have as many as all


async def test_a_hundred_connections_with_new_topics_at_once(start_broker: StartBroker) -> None:
    async def scenario(broker: TestBroker) -> None:
        async with AsyncExitStack() as stack:
            peers = [await stack.enter_async_context(await Peer.connect(broker.port)) for _ in range(100)]
            await pour(peers[0], b"".join(subscribe(None, n, "#." + WORDS[n % 120]) for n in range(2_000)))
            async with watched(broker):
                floods = [b"".join(publish(f"{n}.{m}." + ".".join(WORDS)) for m in range(40)) for n in range(100)]
                await asyncio.gather(*(pour(peer, flood) for peer, flood in zip(peers, floods, strict=True)))

    await in_short_turns(start_broker, scenario)


async def test_many_subscriptions_of_one_filter_made_matched_and_ended(start_broker: StartBroker) -> None:
    async def scenario(broker: TestBroker) -> None:
        async with await Peer.connect(broker.port) as other, watched(broker), AsyncExitStack() as departing:
            owner = await departing.enter_async_context(await Peer.connect(broker.port))
            async with deferring(broker, 10):
                await pour(owner, b"".join(subscribe(None, n, "#") for n in range(50_000)))
            async with deferring(broker, 5):
                await pour(other, b"".join(publish(f"x.{n}") for n in range(20)))
            async with deferring(broker, 5):
                await departing.aclose()
                await eventually(broker, lambda seen: seen["subscriptions"] == 0)

    await in_short_turns(start_broker, scenario)


async def test_one_packet_of_very_many_filters_and_the_end_of_its_session(start_broker: StartBroker) -> None:
    async def scenario(broker: TestBroker) -> None:
        filters = tuple(f"f/{n}/+" for n in range(20_000))
        async with await MqttPeer.connect(broker.mqtt_port, "retaining") as retaining:
            for n in range(3_000):
                await retaining.send(Publish(f"r/{n}/" + "/".join(WORDS[:30]), b"kept", retain=True))
            async with watched(broker):
                async with await MqttPeer.connect(broker.mqtt_port, "bridge") as bridge:
                    async with deferring(broker, 5):
                        assert set(await bridge.subscribe(*filters)) == {0}
                    await bridge.send(Unsubscribe(7, filters[:10_000]), Subscribe(8, (Subscription("#"),)))
                    for _ in range(3_000):
                        await bridge.message()
                await eventually(broker, lambda seen: seen["subscriptions"] == 0)

    await in_short_turns(start_broker, scenario)


async def test_a_packet_of_130_000_user_properties_is_refused_with_the_setting_s_name(
    start_broker: StartBroker,
) -> None:
    async def scenario(broker: TestBroker) -> None:
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

    await in_short_turns(start_broker, scenario)


async def test_a_filter_with_many_hashes_is_refused_with_the_setting_s_name(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as peer:
        await peer.subscribe(1, "#.a.#.b.#")
        await peer.send(subscribe(2, 2, "#.a.#.b.#.c.#"))
        error = await peer.expect(Type.ERROR, 2)
        assert error[2] == "limit_exceeded"
        assert "filter_hashes_max" in str(error)


async def test_messages_with_a_thousand_headers_for_another_protocol(start_broker: StartBroker) -> None:
    async def scenario(broker: TestBroker) -> None:
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

    await in_short_turns(start_broker, scenario)
