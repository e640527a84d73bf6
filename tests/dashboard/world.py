"""What the pages are looked at with: real topics, subscribers whose filters are right and wrong, and queues."""

import math
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice

import fanlight
from fanlight import sync
from tests import realdata
from tests.conftest import TestBroker

PRICES = ("189.95", "17.20", "402.11", "63.00", "88.88")


class World:
    """Clients of one broker."""

    def __init__(self, broker: TestBroker, stack: ExitStack) -> None:
        self.broker = broker
        self._stack = stack
        self.clients: dict[str, sync.Client] = {}
        self._ended = threading.Event()

    def feed(self, topics: list[str]) -> None:
        """Prices all the time, now more and now fewer, so that there is something to be drawn."""
        publisher = self.client("price-feed")
        chosen = random.Random(7)

        def run() -> None:
            number = 0
            while not self._ended.wait(0.1):
                number += 1
                for topic in chosen.choices(topics, k=round(25 + 15 * math.sin(number / 40))):
                    publisher.publish(topic, b'{"price": 189.95}')

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(self._ended.set)

    def client(self, name: str, *, reconnect: bool = True) -> sync.Client:
        self.clients[name] = self._stack.enter_context(
            sync.connect(self.broker.url, name=name, reconnect=reconnect)
        )
        return self.clients[name]

    def publish(self, topics: list[str]) -> None:
        """A price on each of them."""
        publisher = self.clients["market-feed"]
        for topic, price in zip(topics, cycle(PRICES), strict=False):
            publisher.publish(topic, f'{{"price": {price}}}'.encode(), headers={"price": float(price)})
        publisher.flush()


@contextmanager
def world(broker: TestBroker) -> Iterator[World]:
    with ExitStack() as stack:
        made = World(broker, stack)
        made.client("market-feed")
        topics = [topic for topic in realdata.stock_topics(".") if topic.count(".") == 2]
        for name, *filters in (
            ("desk-nasdaq", "stock.nasdaq.*", "stock.*.AAPL", "stock.nasdaq.AAPL"),
            ("desk-nyse", "stock.nyse.*", "stock.nyse.BRK.#"), ("misspelt", "stocks.nasdaq.AAPL", "stock.*.APPL"),
            ("history", "stock.#"), ("transit-map", "transit.austin.#"),
        ):
            client = made.client(name)
            for filter in filters:
                client.subscribe(filter)
        worker = made.client("billing-worker")
        orders = worker.subscribe(
            "orders.#", ack=True, durable="billing",
            queue=fanlight.QueueOptions(deliveries_max=1, dead_letter="dead.billing"),
        )
        worker.subscribe("orders.#", ack=True, durable="audit", prefetch=1)
        worker.subscribe("dead.#", ack=True, durable="billing-dead", prefetch=1)
        made.publish(list(islice(topics, 300)))
        made.publish([topic.replace("/", ".") for topic in islice(realdata.transit_topics(), 60)])
        made.publish([f"orders.eu.{number}" for number in range(12)])
        for message in islice(orders, 3):
            message.term("no such customer")
        worker.flush()
        made.feed(topics[:400])
        yield made
