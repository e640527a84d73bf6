"""aio-pika, the AMQP client of asyncio: a robust connection's channel, confirms, iterators, and a work queue of two."""

import asyncio
from collections.abc import AsyncIterator

import aio_pika
import pytest
import pytest_asyncio
from aio_pika.abc import AbstractChannel, AbstractConnection

from tests.conftest import StartBroker, TestBroker
from tests.interop.peer import soon

COUNT = 100


@pytest.fixture(scope="module")
def amqp_broker(start_module_broker: StartBroker) -> TestBroker:
    broker = start_module_broker(amqp=True)
    broker.wait_for(lambda: "amqp" in broker.addresses, 60.0)
    return broker


@pytest_asyncio.fixture
async def connection(amqp_broker: TestBroker) -> AsyncIterator[AbstractConnection]:
    async with await aio_pika.connect(f"amqp://guest:guest@127.0.0.1:{amqp_broker.amqp_port}/") as found:
        yield found


@pytest_asyncio.fixture
async def channel(connection: AbstractConnection) -> AbstractChannel:
    return await connection.channel()  # with publisher confirms


async def test_two_workers_share_a_queue_and_each_message_is_done_once(channel: AbstractChannel) -> None:
    await channel.set_qos(prefetch_count=5)
    queue = await channel.declare_queue("jobs", durable=True)
    done: list[int] = []
    finished = asyncio.Event()

    async def work(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        async with message.process():
            done.append(int(message.body))
            if len(done) == COUNT:
                finished.set()

    tags = [await queue.consume(work) for _ in range(2)]
    for number in range(COUNT):
        await channel.default_exchange.publish(
            aio_pika.Message(b"%d" % number, delivery_mode=aio_pika.DeliveryMode.PERSISTENT), "jobs"
        )
    await soon(finished.wait())
    assert sorted(done) == list(range(COUNT))
    for tag in tags:
        await queue.cancel(tag)
    assert (await channel.declare_queue("jobs", passive=True)).declaration_result.message_count == 0


async def test_a_message_that_fails_is_requeued_and_comes_again(channel: AbstractChannel) -> None:
    queue = await channel.declare_queue("retried", auto_delete=True)
    exchange = await channel.declare_exchange("events", aio_pika.ExchangeType.TOPIC)
    await queue.bind(exchange, "user.#")
    await exchange.publish(aio_pika.Message(b"x", headers={"n": 1, "t": [1, "a"]}, correlation_id="c"), "user.created")
    seen = []
    async with queue.iterator() as messages:
        async for message in messages:
            seen.append((message.redelivered, message.headers, message.correlation_id, message.routing_key))
            if message.redelivered:
                await message.ack()
                break
            await message.nack(requeue=True)
    headers = {"n": 1, "t": [1, "a"]}
    assert seen == [(False, headers, "c", "user.created"), (True, headers, "c", "user.created")]


async def test_what_nobody_gets_is_an_error_where_that_is_asked_for(connection: AbstractConnection) -> None:
    strict = await connection.channel(on_return_raises=True)
    with pytest.raises(aio_pika.exceptions.DeliveryError):
        await strict.default_exchange.publish(aio_pika.Message(b"x"), "nobody-is-here")
