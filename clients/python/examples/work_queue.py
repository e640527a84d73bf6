"""A work queue: orders wait until a worker has acknowledged them, and nothing is lost when one fails.

    python work_queue.py [fanlight://127.0.0.1:7420]
"""

import asyncio
import sys

import fanlight

ORDERS = 30


async def worker(url: str, name: str, done: "asyncio.Queue[str]", ready: asyncio.Event) -> None:
    options = fanlight.QueueOptions(deliveries_max=3, dead_letter="dead.orders")
    async with fanlight.connect(url, name=name) as client:
        orders = client.subscribe("orders.#", durable="billing", ack=True, prefetch=5, queue=options)
        async with orders:
            ready.set()
            async for order in orders:
                number = int(order.payload)
                if number == 13:
                    await order.nack()  # it fails each time, and is a dead letter in the end
                elif number % 5 == 0 and not order.redelivered:
                    await order.nack(delay=0.05)  # its customer is busy: later
                else:
                    await order.ack()
                    await done.put(f"{name} did {number}")


async def main(url: str) -> None:
    done: asyncio.Queue[str] = asyncio.Queue()
    ready = [asyncio.Event() for _ in range(3)]
    async with fanlight.connect(url, name="shop") as client, client.subscribe("dead.#") as dead:
        # The queue is there from the first subscription on: orders may come while no worker is connected.
        workers = [
            asyncio.create_task(worker(url, f"worker-{number}", done, event)) for number, event in enumerate(ready)
        ]
        await asyncio.gather(*(event.wait() for event in ready))
        for number in range(ORDERS):
            await client.publish("orders.new", b"%d" % number, receipt=True)
        reports = {(await done.get()).split()[-1] for _ in range(ORDERS - 1)}
        print(len(reports), "orders done")
        letter = await dead.next()
        print("order", letter.payload.decode(), "failed:", letter.headers["x-death-reason"])
    for task in workers:
        task.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else fanlight.DEFAULT_URL))
