"""Publish and subscribe, with a wildcard.

    python publish_subscribe.py [fanlight://127.0.0.1:7420]
"""

import asyncio
import sys

import fanlight


async def main(url: str) -> None:
    async with fanlight.connect(url, name="publish-subscribe") as client:
        # `*` is one word, `#` any number of them.
        async with client.subscribe("stock.*.AAPL", after=2) as quotes:
            await client.publish("stock.nasdaq.AAPL", b"189.95")
            await client.publish("stock.nasdaq.MSFT", b"374.58")  # matches nothing
            await client.publish("stock.xetra.AAPL", b"174.20")
            async for message in quotes:
                print(message.words[1], message.payload.decode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else fanlight.DEFAULT_URL))
