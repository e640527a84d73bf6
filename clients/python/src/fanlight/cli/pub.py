"""`fanlight pub`: one payload, from the command line, a file or standard input, or a message for each line."""

import argparse
import asyncio
import contextlib
import sys

from .. import reasons
from ..client import Client
from ..connecting import connect
from ..errors import FanlightError
from ..topics import Syntax
from . import exits, held, spelling, text
from .streams import lines, whole


async def run(options: argparse.Namespace) -> int:
    refused: list[FanlightError] = []

    def note(error: FanlightError) -> None:
        if not refused:  # the first says it; the rest are counted
            refused.append(error)

    syntax = spelling.of_topic(options, options.topic)
    with contextlib.ExitStack() as stack:
        source = _source(options, stack)
        async with connect(
            options.url, name=options.name, ca=options.ca, certificate=options.cert, key=options.key,
            reconnect=source is not None, timeout=options.timeout, on_error=note,
        ) as client:
            async with held.reported(client, "pub"):
                unheard = await _publish_all(client, options, syntax, source)
                await client.flush()
            if refused:
                more = client.stats.errors - 1
                print(f"fanlight pub: {refused[0]}{f' (and {more:,} more)' if more else ''}", file=sys.stderr)
                return exits.REFUSED
    if unheard:
        print("fanlight pub: nobody is subscribed, or no selector is true of it", file=sys.stderr)
        return exits.NOBODY
    return exits.OK


def _source(options: argparse.Namespace, stack: contextlib.ExitStack) -> int | None:
    """The descriptor to read payloads from; None: it is on the command line. Raises ValueError."""
    if options.payload is not None and (options.file is not None or options.stdin_whole):
        other = "--file" if options.file is not None else "--stdin-whole"
        raise ValueError(f"the payload is given twice: as a word, and by {other}")
    if options.file is not None:
        try:
            return stack.enter_context(open(options.file, "rb")).fileno()
        except OSError as error:
            raise ValueError(f"cannot read {text.quoted(options.file)}: {reasons.of(error)}") from error
    return None if options.payload is not None else sys.stdin.fileno()


async def _publish_all(client: Client, options: argparse.Namespace, syntax: Syntax, source: int | None) -> bool:
    """Publish the payload, or each line; True when a receipt said that nobody was subscribed."""
    longest = int(client.info.get("limits", {}).get("frame_bytes", 2**20))
    if source is None:
        return await _publish(client, options, syntax, [text.octets(options.payload)])
    if options.file is not None or options.stdin_whole:
        return await _publish(client, options, syntax, [await whole(source, longest)])
    unheard = False
    async for some in lines(source, longest):
        unheard |= await _publish(client, options, syntax, some)
    return unheard


async def _publish(client: Client, options: argparse.Namespace, syntax: Syntax, payloads: list[bytes]) -> bool:
    """Publish; True when a receipt said that nobody was there."""
    topic, headers = text.topic(options.topic), text.headers(options.headers)
    delay: float | None = options.delay
    if not options.receipt and delay:
        for payload in payloads:
            await client.publish(topic, payload, headers=headers, syntax=syntax, delay=delay)
        return False
    if not options.receipt:
        pairs = ((topic, payload) for payload in payloads)
        await client.publish_many(pairs, headers=headers, syntax=syntax)
        return False
    # All of what was read at once: a way there and back for each line would be slow, and 64 kB of lines is a
    # bound.
    counts = await asyncio.gather(
        *(
            client.publish(topic, payload, headers=headers, syntax=syntax, receipt=True, delay=delay)
            for payload in payloads
        )
    )
    for count in counts:
        print(f"delayed {count.id or ''}".rstrip() if count.delayed else count)
    sys.stdout.flush()
    return any(count == 0 and not count.delayed for count in counts)
