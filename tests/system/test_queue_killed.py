"""A work queue outlives its worker and its broker: both are killed with SIGKILL while orders are at work."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fanlight
from fanlight import sync
from tests.conftest import StartBroker, TestBroker

ORDERS = 12

WORKER = """
import asyncio, sys, fanlight

async def main(url, most):
    async with fanlight.connect(url) as client:
        async with client.subscribe("orders.#", durable="billing", ack=True, prefetch=3) as orders:
            print("ready", flush=True)
            async for order in orders:
                if int(order.payload) < most:
                    await order.ack()
                elif int(order.payload) == most + 2:
                    await client.flush()
                print(order.payload.decode(), order.attempt, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@contextmanager
def worker(broker: TestBroker, most: int) -> "Iterator[subprocess.Popen[str]]":
    """Acknowledges orders below `most`. With two more it has three at work, and has confirmed what it did."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, broker.url, str(most)], stdout=subprocess.PIPE, text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines(process: "subprocess.Popen[str]", count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


def test_the_selector_of_a_queue_survives_a_kill_of_the_broker(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(data=tmp_path)
    prices = [5, 500, 6, 600]
    expected: list[int] = []
    with sync.connect(broker.url) as shop:
        assert shop.queues.add("dear", "orders.#", where="price > 100")
    for life in range(3):
        with sync.connect(broker.url) as shop:
            for price in prices:
                payload = b"%d" % (price + life)
                routed = shop.publish("orders.new", payload, headers={"price": price + life}, receipt=True)
                assert routed == (price > 100)
            expected += [price + life for price in prices if price > 100]
            assert [int(each.payload) for each in shop.queues.peek("dear", 100)] == expected
        broker.kill()
        broker = start_broker(data=tmp_path)
        with sync.connect(broker.url) as shop:
            assert shop.queues.info("dear").where == "price > 100"
            with pytest.raises(fanlight.QueueInUse, match="another where"):
                shop.queues.add("dear", "orders.#")
    with sync.connect(broker.url) as shop, shop.subscribe(
        "orders.#", durable="dear", ack=True, where="price > 100"
    ) as orders:  # fmt: skip
        assert [int(orders.next(timeout=60).payload) for _ in expected] == expected


def test_a_work_queue_survives_a_kill_of_broker_and_worker(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(data=tmp_path)
    with worker(broker, 5) as first:
        assert lines(first, 1) == ["ready"]
        with sync.connect(broker.url) as shop:
            for number in range(ORDERS):
                assert shop.publish("orders.new", b"%d" % number, receipt=True) == 1
        assert lines(first, 8) == [f"{number} 1" for number in range(8)]
        broker.kill()
        first.kill()
    broker = start_broker(data=tmp_path)
    with worker(broker, ORDERS) as second:
        expected = [f"{number} {2 if number < 8 else 1}" for number in range(5, ORDERS)]
        assert lines(second, 1 + len(expected)) == ["ready", *expected]
