"""The story of test_amqp_clients.py with FastStream, and with aio-pika, which is below it: PORT faststream|aio-pika.

Both come back on their own: the consumer that holds what it has not acknowledged lives over the kill, and the library
consumes again for it, on the channel that it has opened again.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aio_pika
from aio_pika.exceptions import DeliveryError
from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitMessage, RabbitQueue

KIND = sys.argv[2]
QUEUE = f"story-{KIND}"
URL = f"amqp://guest:guest@127.0.0.1:{sys.argv[1]}/"
AGAIN = 0.05  # seconds between two attempts to connect; 5 without it
logging.disable()  # of attempts to connect before the broker is there again


def say(line: str) -> None:
    print(line, flush=True)


class Reader:
    """Acknowledges the first `most`, and holds the others."""

    def __init__(self, most: int) -> None:
        self.bodies: list[str] = []
        self.most = most
        self.done = asyncio.Event()
        self.lost = asyncio.Event()

    async def take(self, body: bytes, acknowledge: Callable[[], Awaitable[Any]]) -> None:
        if len(self.bodies) < self.most:
            self.bodies.append(body.decode())
            await acknowledge()
            if self.bodies[self.most - 1 :] == [body.decode()]:
                self.done.set()

    async def taken(self) -> str:
        await self.done.wait()
        return f"took {','.join(self.bodies)}"

    def on_loss(self, *_: Any) -> None:
        """Before the library connects again."""
        if not self.lost.is_set():
            self.bodies, self.most = [], 100 - self.most
            self.done.clear()
            self.lost.set()


async def returned(publishing: Awaitable[Any]) -> str:
    try:
        await publishing
    except DeliveryError as error:
        delivery: Any = error.message.delivery
        return f"returned {delivery.reply_code} {delivery.reply_text} {delivery.routing_key}"
    raise AssertionError("it was not returned")


async def with_aio_pika(reader: Reader) -> None:
    connection = await aio_pika.connect_robust(URL, reconnect_interval=AGAIN)
    connection.close_callbacks.add(reader.on_loss)
    async with connection:
        channel = await connection.channel(on_return_raises=True)
        await channel.set_qos(10)
        queue = await channel.declare_queue(QUEUE, durable=True)
        publish = channel.default_exchange.publish
        for number in range(100):
            await publish(aio_pika.Message(b"%d" % number, delivery_mode=aio_pika.DeliveryMode.PERSISTENT), QUEUE)
        say("confirmed 100")
        say(await returned(publish(aio_pika.Message(b"x"), "nobody")))
        await queue.consume(lambda message: reader.take(message.body, message.ack))
        say(await reader.taken())
        await queue.declare()
        await over_the_kill(reader)


async def with_faststream(reader: Reader) -> None:
    channel = Channel(prefetch_count=1, on_return_raises=True)  # its handlers run side by side, in no order
    broker = RabbitBroker(
        URL, default_channel=channel, reconnect_interval=AGAIN, on_close=[reader.on_loss], logger=None
    )
    queue = RabbitQueue(QUEUE, durable=True)

    @broker.subscriber(queue, ack_policy=AckPolicy.MANUAL)
    async def work(body: str, message: RabbitMessage) -> None:
        await reader.take(body.encode(), message.ack)

    async with broker:
        declared = await broker.declare_queue(queue)
        for number in range(100):
            await broker.publish(str(number), QUEUE, persist=True)
        say("confirmed 100")
        say(await returned(broker.publish("x", "nobody")))
        await broker.start()
        say(await reader.taken())
        await declared.declare()
        await over_the_kill(reader)


async def over_the_kill(reader: Reader) -> None:
    say("ready")
    await reader.lost.wait()
    say("lost")
    say(await reader.taken())


asyncio.run({"aio-pika": with_aio_pika, "faststream": with_faststream}[KIND](Reader(60)))
say("done")
