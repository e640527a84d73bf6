"""Two spellings, one broker: what is published as a/b reaches a.*, and the other way round.

    python mqtt_patterns.py [fanlight://127.0.0.1:7420]
"""

import asyncio
import sys

import fanlight


async def main(url: str) -> None:
    async with fanlight.connect(url) as client:
        slashes = await client.subscribe("stock/+/#", syntax="mqtt", after=2)
        dots = await client.subscribe("stock.*.*", after=1)
        # One word in MQTT's spelling, two in AMQP's: the ticker BRK.B has a dot in it.
        await client.publish("stock/nyse/BRK.B", b"364.10", syntax="mqtt")
        await client.publish("stock.nyse.BRK.B", b"364.10")
        async for message in slashes:
            print("stock/+/#", message.syntax, message.words)
        async for message in dots:
            print("stock.*.*", message.syntax, message.words)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else fanlight.DEFAULT_URL))
