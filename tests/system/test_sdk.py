"""The Python SDK against a real broker: what it promises, over a socket, on both event loops."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

import fanlight
import fanlight.sync
from tests.conftest import StartBroker, TestBroker

SECONDS = 60


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run the test on asyncio's own loop and on uvloop."""

    @pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
    def run(new_loop: Callable[[], asyncio.AbstractEventLoop], **fixtures: Any) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(asyncio.wait_for(test(**fixtures), SECONDS))

    wanted = inspect.signature(test)
    new_loop = inspect.Parameter("new_loop", inspect.Parameter.KEYWORD_ONLY)
    run.__name__ = test.__name__
    run.__signature__ = wanted.replace(parameters=[*wanted.parameters.values(), new_loop])  # type: ignore[attr-defined]
    return run


@on_both_loops
async def test_a_message_arrives_with_everything_that_was_sent(module_broker: TestBroker) -> None:
    async with (
        fanlight.connect(module_broker.url, name="everything") as client,
        client.subscribe("all.#") as got,
    ):
        headers = {"content-type": "text/plain", "count": 3, "tags": ["a", None, 1.5], "raw": b"\xff", "on": True}
        await client.publish("all.of.it", b"\x00payload", headers=headers, reply="answers.here")
        await client.publish(b"all.\xff\xfe", b"")
        message = await got.next(5)
        assert (message.topic, message.payload, message.reply) == ("all.of.it", b"\x00payload", "answers.here")
        assert dict(message.headers) == headers
        assert (message.syntax, message.words) == ("amqp", ("all", "of", "it"))
        assert (await got.next(5)).words == ("all", "\udcff\udcfe")


@on_both_loops
async def test_a_large_payload_arrives_whole_among_small_ones(module_broker: TestBroker) -> None:
    async with fanlight.connect(module_broker.url) as client, client.subscribe("size.*") as got:
        limit = client.info["limits"]["frame_bytes"]
        large = bytes(range(256)) * (limit // 256 - 1)
        for payload in (b"small", large, b"", large, b"small"):
            await client.publish("size.x", payload)
        assert [(await got.next(5)).payload for _ in range(5)] == [b"small", large, b"", large, b"small"]
        with pytest.raises(fanlight.FrameTooLarge):
            await client.publish("size.x", bytes(limit))
        assert client.connected


@on_both_loops
async def test_receipts_count_the_subscriptions(module_broker: TestBroker) -> None:
    async with fanlight.connect(module_broker.url) as client:
        assert await client.publish("counted.x", receipt=True) == 0
        async with client.subscribe("counted.*"), client.subscribe("counted/#", syntax="mqtt"):
            await client.subscribe("counted.x", group="g")
            await client.subscribe("counted.x", group="g")
            assert await client.publish("counted.x", receipt=True) == 3  # the group counts once


@on_both_loops
async def test_fifty_thousand_messages_come_in_order_and_nothing_is_lost(module_broker: TestBroker) -> None:
    count = 50_000
    async with (
        fanlight.connect(module_broker.url) as publisher,
        fanlight.connect(module_broker.url) as subscriber,
        # A queue far smaller than what comes: the default policy holds up the socket, and the broker the publisher.
        subscriber.subscribe("many", pending_messages=100) as got,
    ):
        publishing = asyncio.create_task(
            publisher.publish_many(("many", number.to_bytes(4, "big")) for number in range(count))
        )
        for number in range(count):
            message = await got.next(10)
            assert int.from_bytes(message.payload, "big") == number
            assert got.pending[0] <= 200
        assert await publishing == count
        assert got.stats.dropped == subscriber.stats.dropped == 0


@on_both_loops
async def test_with_credit_no_more_comes_than_was_granted(module_broker: TestBroker) -> None:
    async with fanlight.connect(module_broker.url) as client, client.subscribe("metered", credit=10) as got:
        await client.publish_many(("metered", b"%d" % number) for number in range(100))
        await client.flush()
        assert got.stats.delivered == 10
        assert [int((await got.next(5)).payload) for _ in range(100)] == list(range(100))


@on_both_loops
async def test_a_subscription_ends_by_itself_after_so_many(module_broker: TestBroker) -> None:
    async with fanlight.connect(module_broker.url) as client, client.subscribe("ending", after=3) as got:
        await client.publish_many([("ending", b"")] * 5)
        assert len([message async for message in got]) == 3
        assert await client.publish("ending", receipt=True) == 0


@on_both_loops
async def test_what_it_publishes_itself_does_not_come_back_with_no_echo(module_broker: TestBroker) -> None:
    async with (
        fanlight.connect(module_broker.url) as one,
        fanlight.connect(module_broker.url) as other,
        one.subscribe("echo", no_echo=True) as got,
    ):
        await one.publish("echo", b"mine")
        await one.flush()
        await other.publish("echo", b"theirs")
        assert (await got.next(5)).payload == b"theirs"


@on_both_loops
async def test_requests_are_answered_by_one_of_a_group_each(module_broker: TestBroker) -> None:
    async def answer(questions: fanlight.Subscription) -> int:
        answered = 0
        async for question in questions:
            await question.respond({"double": question.value * 2})
            answered += 1
        return answered

    async with (
        fanlight.connect(module_broker.url, serializer=fanlight.JSON) as asker,
        fanlight.connect(module_broker.url, serializer=fanlight.JSON) as responder,
    ):
        subscriptions = [await responder.subscribe("double", group="d") for _ in range(2)]
        tasks = [asyncio.create_task(answer(each)) for each in subscriptions]
        replies = await asyncio.gather(*(asker.request("double", number) for number in range(200)))
        assert [reply.value["double"] for reply in replies] == [2 * number for number in range(200)]
        await responder_done(subscriptions)
        assert sum(await asyncio.gather(*tasks)) == 200


async def responder_done(subscriptions: list[fanlight.Subscription]) -> None:
    for subscription in subscriptions:
        await subscription.unsubscribe()


@on_both_loops
async def test_a_request_to_nobody_fails_at_once(module_broker: TestBroker) -> None:
    async with fanlight.connect(module_broker.url) as client:
        with pytest.raises(fanlight.NoResponders):
            await client.request("is.anybody.there", timeout=60)


@on_both_loops
async def test_what_the_broker_refuses_comes_as_the_error_of_its_code(module_broker: TestBroker) -> None:
    said: list[fanlight.FanlightError] = []
    async with fanlight.connect(module_broker.url, on_error=said.append) as client:
        with pytest.raises(fanlight.InvalidFilter) as raised:
            await client.subscribe("a/#/b", syntax="mqtt")
        assert raised.value.details["position"] == 2
        with pytest.raises(fanlight.NotPermitted):
            await client.publish("$SYS.load", receipt=True)
        with pytest.raises(fanlight.InvalidTopic):
            await client.publish("", syntax="mqtt", receipt=True)
        await client.publish("$SYS.load")
        await client.flush()
        assert [error.code for error in said] == ["not_permitted"]
        assert client.connected


@on_both_loops
async def test_draining_hands_out_what_came_and_then_ends(module_broker: TestBroker) -> None:
    client = await fanlight.connect(module_broker.url)
    got = await client.subscribe("drained")
    await client.publish_many(("drained", b"%d" % number) for number in range(1000))
    await client.flush()

    async def take() -> list[int]:
        return [int(message.payload) async for message in got]

    taking = asyncio.create_task(take())
    await client.drain()
    assert await taking == list(range(1000))
    assert client.closed


@on_both_loops
async def test_draining_in_the_middle_of_a_flood_ends_without_a_gap(module_broker: TestBroker) -> None:
    async def take() -> list[int]:
        numbers = []
        async for message in got:
            numbers.append(int(message.payload))
            if len(numbers) == 1000:
                flooded.set()
            await asyncio.sleep(0)
        return numbers

    flooded = asyncio.Event()
    async with fanlight.connect(module_broker.url) as publisher:
        subscriber = await fanlight.connect(module_broker.url)
        got = await subscriber.subscribe("flood", pending_messages=20)
        publishing = asyncio.create_task(publisher.publish_many(("flood", b"%d" % number) for number in range(60_000)))
        taking = asyncio.create_task(take())
        await flooded.wait()
        await subscriber.drain()
        numbers = await taking
        assert numbers == list(range(len(numbers)))
        assert len(numbers) == got.stats.delivered == got.stats.taken
        await publishing


@on_both_loops
async def test_a_drain_that_nobody_helps_says_what_was_left(module_broker: TestBroker) -> None:
    client = await fanlight.connect(module_broker.url)
    await client.subscribe("undrained")
    await client.publish_many([("undrained", b"")] * 7)
    await client.flush()
    with pytest.raises(fanlight.DrainTimeout) as raised:
        await client.drain(timeout=0.1)
    assert raised.value.details["unread"] == 7
    assert client.closed


@on_both_loops
async def test_a_broker_that_is_killed_and_comes_back_finds_its_subscribers_again(start_broker: StartBroker) -> None:
    first = start_broker()
    port = int(first.url.rpartition(":")[2])
    backoff = fanlight.Backoff(initial=0.02, maximum=0.1)
    again = asyncio.Event()
    lost = asyncio.Event()
    async with (
        fanlight.connect(
            first.url, reconnect=backoff, on_disconnect=lambda _: lost.set(), on_reconnect=lambda _: again.set()
        ) as client,
        client.subscribe("phoenix.#") as got,
    ):
        await client.publish("phoenix.1", b"before")
        assert (await got.next(5)).payload == b"before"
        first.process.kill()
        await asyncio.wait_for(lost.wait(), 60)
        await client.publish("phoenix.2", b"meanwhile")  # kept, and sent behind the subscription
        await asyncio.to_thread(start_broker, native_port=port)
        await asyncio.wait_for(again.wait(), 60)
        await client.publish("phoenix.3", b"after")
        assert [(await got.next(5)).payload for _ in range(2)] == [b"meanwhile", b"after"]
        assert client.stats.reconnects == 1
        assert client.stats.unsent_kept == 1
        assert (await client.publish("phoenix.4", receipt=True)) == 1


@on_both_loops
async def test_a_stopping_broker_says_goodbye(start_broker: StartBroker) -> None:
    broker = start_broker()
    reasons: asyncio.Queue[fanlight.FanlightError] = asyncio.Queue()
    async with fanlight.connect(broker.url, reconnect=False, on_disconnect=reasons.put_nowait):
        await asyncio.to_thread(broker.terminate)
        assert (await asyncio.wait_for(reasons.get(), 60)).code == "shutting_down"


@on_both_loops
async def test_a_name_and_a_password_are_asked_for_and_checked(start_broker: StartBroker) -> None:
    broker = start_broker(environment={"FANLIGHT_PASSWORD": "s3cret:@"})
    with pytest.raises(fanlight.AuthenticationFailed):
        await fanlight.connect(broker.url.replace("://", "://me:wrong@"))
    async with fanlight.connect(broker.url, user="me", password="s3cret:@") as client:
        assert client.connected
    async with fanlight.connect(broker.url.replace("://", "://me:s3cret%3A%40@")) as client:
        assert client.connected


def test_the_blocking_client_does_the_same_from_several_threads(module_broker: TestBroker) -> None:
    before = threading.active_count()
    with fanlight.sync.connect(module_broker.url) as client:
        with client.subscribe("threads.#", after=4000) as got:
            threads = [threading.Thread(target=publish_some, args=(client, name)) for name in "abcd"]
            for thread in threads:
                thread.start()
            seen: dict[str, list[int]] = {name: [] for name in "abcd"}
            for message in got:
                seen[str(message.words[1])].append(int(message.payload))
            for thread in threads:
                thread.join()
        # Each thread's own in the order in which it published them.
        assert all(numbers == list(range(1000)) for numbers in seen.values())
        assert client.publish("threads.x", receipt=True) == 0
        with pytest.raises(fanlight.NoResponders):
            client.request("nobody")
        client.flush()
    assert threading.active_count() == before
    with pytest.raises(fanlight.ConnectionClosed):
        client.publish("threads.x")


def publish_some(client: fanlight.sync.Client, name: str) -> None:
    for number in range(1000):
        client.publish(f"threads.{name}", b"%d" % number)


def test_a_blocking_iteration_is_ended_by_another_thread(module_broker: TestBroker) -> None:
    client = fanlight.sync.connect(module_broker.url)
    got = client.subscribe("ended")
    client.publish("ended", b"one")
    taken: list[bytes] = []
    first = threading.Event()

    def take() -> None:
        for message in got:
            taken.append(message.payload)
            first.set()

    thread = threading.Thread(target=take)
    thread.start()
    assert first.wait(5)
    client.close()
    thread.join(5)
    assert not thread.is_alive()
    assert taken == [b"one"]
