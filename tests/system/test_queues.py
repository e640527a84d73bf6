"""Named queues, a real broker and the SDK: what a worker has not acknowledged is not lost with it."""

import asyncio
from pathlib import Path

import pytest

import fanlight
import fanlight.sync
from tests.conftest import StartBroker, TestBroker
from tests.system.test_archive import get


async def taken(subscription: fanlight.QueueSubscription, count: int) -> list[fanlight.QueueMessage]:
    return [await subscription.next(timeout=60) for _ in range(count)]


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
            assert (await orders.next(timeout=60)).payload == b"3"
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
            jobs.wait_active(timeout=60)
            assert jobs.active
            jobs.pause()
            assert jobs.paused
            jobs.resume()
            jobs.change(prefetch=50, ack_wait=60)
            assert job.nack()
            job = jobs.next(timeout=60)
            assert (job.attempt, job.redelivered) == (2, True)
            assert job.in_progress()
            assert job.ack(all=True)
            client.publish("jobs", b"2", receipt=True)
            assert jobs.next(timeout=60).term("no")
        client.flush()
        with client.subscribe("jobs", durable="jobs", ack=True) as jobs, pytest.raises(fanlight.MessageTimeout):
            jobs.next(timeout=0.05)


async def test_a_standby_worker_learns_that_it_is_active_and_pauses(broker: TestBroker) -> None:
    options = fanlight.QueueOptions(single_active=True)
    async with fanlight.connect(broker.url) as a, fanlight.connect(broker.url) as b:
        first = await a.subscribe("jobs", durable="jobs", ack=True, queue=options)
        second = await b.subscribe("jobs", durable="jobs", ack=True, prefetch=1)
        assert (first.active, second.active) == (True, False)
        with pytest.raises(fanlight.MessageTimeout, match="another subscriber"):
            await second.wait_active(timeout=0)
        await second.pause()
        waiting = asyncio.create_task(second.wait_active())
        await a.publish_many(("jobs", b"%d" % number) for number in range(3))
        await a.flush()
        await first.unsubscribe()
        await waiting
        assert (second.active, second.paused, second.pending[0]) == (True, True, 0)
        await second.change(prefetch=3, paused=False)
        assert [each.payload for each in await taken(second, 3)] == [b"0", b"1", b"2"]
        with pytest.raises(ValueError, match="at least 1"):
            await second.change(prefetch=0)
        await second.unsubscribe()
        with pytest.raises(fanlight.FanlightError, match="not in force"):
            await second.pause()


async def test_urgent_jobs_come_first(broker: TestBroker) -> None:
    async with fanlight.connect(broker.url) as client:
        jobs = await client.subscribe(
            "jobs", durable="jobs", ack=True, prefetch=1, queue=fanlight.QueueOptions(priorities=10)
        )
        await jobs.pause()
        for number in range(4):
            await client.publish("jobs", b"%d" % number, headers={"priority": number})
        await client.flush()
        await jobs.resume()
        for expected in (b"3", b"2", b"1", b"0"):
            job = await jobs.next(timeout=60)
            assert (job.payload, job.headers["priority"]) == (expected, int(expected))
            await job.ack()


async def test_a_new_queue_begins_in_the_archive(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(archive=tmp_path / "archive", archive_receipts=True)
    async with fanlight.connect(broker.url) as client:
        for number in range(5):
            await client.publish("jobs", b"%d" % number, receipt=True)
        jobs = await client.subscribe("jobs", durable="jobs", ack=True, deliver=fanlight.FromArchive(offset=2))
        await client.publish("jobs", b"5", receipt=True)
        assert [each.payload for each in await taken(jobs, 4)] == [b"2", b"3", b"4", b"5"]
        with pytest.raises(fanlight.MessagesGone):
            await client.subscribe(
                "jobs", durable="other", ack=True, deliver=fanlight.FromArchive(offset=1_000)
            )
        everything = client.subscribe("jobs", ack=True, deliver=fanlight.FromArchive(since=0))
        async with everything:
            assert [each.payload for each in await taken(everything, 6)] == [b"%d" % number for number in range(6)]
    with pytest.raises(ValueError, match="not at both"):
        fanlight.FromArchive(offset=1, since=2)


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
