"""Named queues, a real broker and the SDK: what a worker has not acknowledged is not lost with it."""

import asyncio

import pytest

import fanlight
import fanlight.sync
from tests.conftest import TestBroker
from tests.system.test_archive import get


async def taken(subscription: fanlight.QueueSubscription, count: int) -> list[fanlight.QueueMessage]:
    return [await subscription.next(timeout=10) for _ in range(count)]


async def test_the_queue_stays_and_unacknowledged_messages_come_to_the_next_worker(broker: TestBroker) -> None:
    async with fanlight.connect(broker.url) as shop:
        async with fanlight.connect(broker.url) as client:
            orders = await client.subscribe("orders.#", durable="billing", ack=True, prefetch=3)
            for number in range(5):
                assert await shop.publish("orders.eu", b"%d" % number, receipt=True) == 1
            first = await taken(orders, 3)
            assert [(each.payload, each.attempt, each.redelivered) for each in first] == [
                (b"0", 1, False), (b"1", 1, False), (b"2", 1, False)
            ]
            assert await first[1].ack()
            assert (await orders.next(timeout=10)).payload == b"3"
        assert not await first[0].ack()  # its connection is gone
        assert await shop.publish("orders.us", b"5", receipt=True) == 1  # nobody is connected
        async with fanlight.connect(broker.url) as client:
            orders = await client.subscribe("orders.#", durable="billing", ack=True)
            assert [(each.payload, each.attempt) for each in await taken(orders, 5)] == [
                (b"0", 2), (b"2", 2), (b"3", 2), (b"4", 1), (b"5", 1),
            ]


async def test_workers_share_a_queue_and_every_message_is_done_once(broker: TestBroker) -> None:
    done: list[bytes] = []

    async def work(client: fanlight.Client, fails: int) -> None:
        async for job in await client.subscribe(
            "jobs", durable="jobs", ack=True, prefetch=4
        ):
            if job.attempt == 1 and int(job.payload) % fails == 0:
                await job.nack()
                continue
            done.append(job.payload)
            await job.ack()

    async with fanlight.connect(broker.url) as a, fanlight.connect(broker.url) as b, fanlight.connect(broker.url) as c:
        workers = [asyncio.create_task(work(client, fails)) for client, fails in ((a, 3), (b, 7))]
        while (await c.publish("jobs", b"0", receipt=True)) == 0:
            await c.flush()
        await c.publish_many(("jobs", b"%d" % number) for number in range(1, 500))
        async with asyncio.timeout(30):
            while len(done) < 500:
                await c.flush()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await asyncio.gather(a.flush(), b.flush())
    assert sorted(map(int, done)) == list(range(500))
    (view,) = get(broker, "/queues")["queues"]
    assert (view["acknowledged"], view["waiting"], view["unacknowledged"], view["discarded"]) == (500, 0, 0, 0)
    stats = get(broker, "/stats")
    assert stats["queue_acknowledged"] == 500
    assert stats["queue_redeliveries"] == view["redeliveries"] > 0


def test_the_blocking_client_acknowledges(broker: TestBroker) -> None:
    with fanlight.sync.connect(broker.url) as client:
        with client.subscribe("jobs", durable="jobs", ack=True) as jobs:
            client.publish("jobs", b"1", receipt=True)
            job = next(jobs)
            assert (job.payload, job.attempt, jobs.queue) == (b"1", 1, "jobs")
            assert job.nack()
            job = jobs.next(timeout=10)
            assert (job.attempt, job.redelivered) == (2, True)
            assert job.in_progress()
            assert job.ack(all=True)
            client.publish("jobs", b"2", receipt=True)
            assert jobs.next(timeout=10).term("no")
        client.flush()
        with client.subscribe("jobs", durable="jobs", ack=True) as jobs, pytest.raises(fanlight.MessageTimeout):
            jobs.next(timeout=0.05)


async def test_errors_of_queues_have_classes_of_their_own(broker: TestBroker) -> None:
    async with fanlight.connect(broker.url) as client:
        small = fanlight.QueueOptions(messages_max=1)
        async with client.subscribe("a", durable="q", ack=True, prefetch=1, queue=small):
            await client.publish("a", b"1", receipt=True)
            await client.publish("a", b"2", receipt=True)
            with pytest.raises(fanlight.QueueFull):
                await client.publish("a", b"3", receipt=True)
            with pytest.raises(fanlight.QueueInUse) as raised:
                await client.subscribe("b", durable="q", ack=True)
            assert raised.value.details == {"consumer": "q", "option": "filter"}
        with pytest.raises(ValueError, match="need ack=True"):
            client.subscribe("a", durable="q")
        with pytest.raises(ValueError, match="alone"):
            client.subscribe("a", durable="q", ack=True, group="g")  # type: ignore[call-overload]
