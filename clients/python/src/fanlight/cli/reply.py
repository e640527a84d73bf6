"""`fanlight reply`: answer requests, with the request itself, a template, or what a program writes.

One request at a time: what waits meanwhile waits at the broker, for the subscription is made with little
credit.
"""

import argparse
import asyncio
import os
import shlex
import sys
import tempfile

from ..connecting import connect
from ..message import Message
from . import exits, text

CREDIT = 16


async def run(options: argparse.Namespace) -> int:
    async with connect(
        options.url, name=options.name, ca=options.ca, certificate=options.cert, key=options.key
    ) as client:
        asked = client.subscribe(
            text.topic(options.filter),
            syntax=options.syntax,
            group=options.group,
            after=options.count,
            credit=CREDIT,
        )
        async with asked:
            if options.ready:
                print("fanlight reply: ready", file=sys.stderr, flush=True)
            async for message in asked:
                if message.reply is None:
                    print(f"fanlight reply: {message.topic!r} asks for no reply", file=sys.stderr)
                    continue
                payload, failure = await _answer(message, options)
                await message.respond(payload, headers={"error": failure} if failure else None)
    return exits.OK


async def _answer(message: Message, options: argparse.Namespace) -> tuple[bytes, str | None]:
    """The answer's payload, and what went wrong if something did."""
    if options.exec is not None:
        return await _executed(message, options.exec, options.timeout)
    if options.template is not None:
        template = text.octets(options.template)
        topic = message.topic if isinstance(message.topic, bytes) else message.topic.encode()
        # The topic first: a payload that says {topic} means itself.
        return template.replace(b"{topic}", topic).replace(b"{payload}", message.payload), None
    if options.upper:
        return message.payload.upper(), None
    return message.payload, None


async def _executed(message: Message, command: str, seconds: float) -> tuple[bytes, str | None]:
    """Run the command, without a shell: payload in, answer out."""
    topic = message.topic if isinstance(message.topic, bytes) else message.topic.encode()
    # A file, not a pipe: writing to a program that has ended without reading is an error of uvloop's.
    with tempfile.TemporaryFile() as question:
        question.write(message.payload)
        question.seek(0)
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            stdin=question,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "FANLIGHT_TOPIC": os.fsdecode(topic)},
        )
    try:
        async with asyncio.timeout(seconds):
            written, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return b"", f"no answer within {seconds:g} s"
    if process.returncode:
        return written, f"exit code {process.returncode}"
    return written.removesuffix(b"\n"), None
