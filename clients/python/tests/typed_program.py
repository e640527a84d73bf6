"""An ordinary user's program, as `mypy --strict` sees it: test_typing.py runs it over this file."""

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import fanlight


class Prices:
    """Reads quotes, remembers the last one of each ticker."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}
        self.raw: dict[bytes, int] = {}

    def take(self, message: fanlight.Message) -> str:
        topic: str = message.topic
        exchange, ticker = message.words[-2:]
        if topic.startswith("stock.") and topic.split(".")[-1] == ticker:
            self.last[ticker] = float(message.payload)
        self.raw[message.topic_bytes] = len(message.payload)
        return f"{exchange}: {ticker}"


async def rows() -> AsyncIterator[tuple[str, bytes]]:
    yield "stock.nasdaq.AAPL", b"189.95"


async def main(url: str) -> Prices:
    prices = Prices()
    async with fanlight.connect(url, name="prices", reconnect=fanlight.Backoff(maximum=2.0)) as client:  # noqa: SIM117
        async with client.subscribe("stock.*.AAPL", group="readers") as quotes:
            where: str = quotes.filter
            routed: int = await client.publish("stock.nasdaq.AAPL", b"189.95", receipt=True)
            await client.publish_many(rows())
            try:
                message = await quotes.next(timeout=timedelta(seconds=5).total_seconds())
            except fanlight.MessageTimeout as error:
                raise SystemExit(f"nothing on {where}, though {routed} were routed: {error.details}") from error
            print(prices.take(message))
            async for message in quotes:
                print(prices.take(message))
                if message.reply is not None:
                    await client.publish(message.reply, b"seen")
                break
    return prices


def blocking(url: str) -> str:
    with fanlight.sync.connect(url) as client, client.subscribe("stock/#", syntax="mqtt") as quotes:
        client.publish("stock/nasdaq/AAPL", b"189.95", syntax="mqtt")
        for message in quotes:
            topic: str = message.topic
            return topic.upper()
    raise fanlight.SubscriptionEnded("no quote")


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1])).last, blocking(sys.argv[1]))
