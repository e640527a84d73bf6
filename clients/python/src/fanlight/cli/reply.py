"""`fanlight reply`: answer requests with the request itself, a template, or the output of a program.

One request at a time: what waits meanwhile waits at the broker, for the subscription is made with little
credit. An answer that went wrong has the header `error`, which says why.
"""

import argparse
import asyncio
import os
import shlex
import shutil
import sys
import tempfile

from .. import reasons
from ..connecting import connect
from ..message import Message
from . import exits, spelling, text

CREDIT = 16


async def run(options: argparse.Namespace) -> int:
    command = None if options.exec is None else command_of(options.exec)
    syntax = spelling.of_filter(options, options.filter)
    async with connect(
        options.url, name=options.name, ca=options.ca, certificate=options.cert, key=options.key
    ) as client:
        asked = client.subscribe(
            text.topic(options.filter), syntax=syntax, group=options.group, after=options.count, credit=CREDIT
        )
        async with asked:
            if options.ready:
                print("fanlight reply: ready", file=sys.stderr, flush=True)
            async for message in asked:
                topic = text.quoted(message.topic)
                if message.reply is None:
                    print(f"fanlight reply: {topic} asks for no reply", file=sys.stderr, flush=True)
                    continue
                payload, failure = await _answer(message, command, options)
                if failure:
                    print(f"fanlight reply: {topic}: {failure}", file=sys.stderr, flush=True)
                await message.respond(payload, headers={"error": failure} if failure else None)
    return exits.OK


def command_of(line: str) -> list[str]:
    """The words of a command line whose program is there. Raises ValueError."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ValueError(f"cannot read --exec {line!r}: {error}") from None
    if not words:
        raise ValueError("--exec names no program")
    if shutil.which(words[0]) is None:
        raise ValueError(f"--exec: there is no program {words[0]!r} to run, or it may not be run")
    return words


async def _answer(message: Message, command: list[str] | None, options: argparse.Namespace) -> tuple[bytes, str | None]:
    """The answer's payload, and what went wrong if something did."""
    if command is not None:
        return await _executed(message, command, options.exec_timeout)
    if options.template is not None:
        template = text.octets(options.template)
        # The topic first: a payload that says {topic} means itself.
        return template.replace(b"{topic}", message.topic_bytes).replace(b"{payload}", message.payload), None
    if options.upper:
        return message.payload.upper(), None
    return message.payload, None


async def _executed(message: Message, command: list[str], seconds: float) -> tuple[bytes, str | None]:
    """Run the command, without a shell: payload in, answer out."""
    # A file, not a pipe: writing to a program that has ended without reading is an error of uvloop's.
    with tempfile.TemporaryFile() as question:
        question.write(message.payload)
        question.seek(0)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=question,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "FANLIGHT_TOPIC": message.topic},
            )
        except (OSError, ValueError) as error:  # it was there when we began; ValueError: a topic with NUL
            return b"", f"cannot run {command[0]}: {reasons.of(error)}"
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
