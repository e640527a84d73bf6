"""Ask and be answered; and learn at once when nobody is there to answer.

    python request_reply.py [fanlight://127.0.0.1:7420]
"""

import asyncio
import sys

import fanlight


async def shout(questions: fanlight.Subscription) -> None:
    async for question in questions:
        await question.respond(question.payload.upper())


async def main(url: str) -> None:
    async with fanlight.connect(url, name="requester") as client:
        try:
            await client.request("shout", b"anybody there?", timeout=2)
        except fanlight.NoResponders as error:
            print(error)
        async with fanlight.connect(url, name="responder") as responder:
            questions = await responder.subscribe("shout", group="shouters")
            answering = asyncio.create_task(shout(questions))
            answer = await client.request("shout", b"hello", timeout=2)
            print(answer.payload.decode())
            await questions.unsubscribe()  # what was asked before is still answered
            await answering


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else fanlight.DEFAULT_URL))
