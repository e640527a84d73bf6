"""Values instead of bytes: a serialiser for the client, another for one call, headers beside them.

    python json_messages.py [fanlight://127.0.0.1:7420]
"""

import asyncio
import sys

import fanlight


async def main(url: str) -> None:
    async with fanlight.connect(url, serializer=fanlight.JSON) as client:
        async with client.subscribe("readings.#", after=3) as readings:
            await client.publish("readings.cellar", {"celsius": 11.5}, headers={"sensor": "c-7"})
            await client.publish("readings.attic", {"celsius": 27.25}, serializer=fanlight.MSGPACK)
            await client.publish("readings.raw", b"\x00\x01")  # bytes go as they are
            async for message in readings:
                # `value` reads the payload as the content-type header says.
                print(message.topic, message.headers.get("content-type"), message.value)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else fanlight.DEFAULT_URL))
