"""`fanlight pub`: one payload from the command line, or a message for each line of standard input."""

import argparse
import asyncio
import sys

from ..client import Client
from ..connecting import connect
from ..errors import FanlightError
from . import exits, text
from .streams import lines


async def run(options: argparse.Namespace) -> int:
    refused: list[FanlightError] = []

    def note(error: FanlightError) -> None:
        if not refused:  # the first says it; the rest are counted
            refused.append(error)

    from_stdin = options.payload is None
    async with connect(
        options.url, name=options.name, ca=options.ca, certificate=options.cert, key=options.key,
        reconnect=from_stdin, timeout=options.timeout, on_error=note,
    ) as client:
        if from_stdin:
            unheard = await _publish_lines(client, options)
        else:
            unheard = await _publish(client, options, [text.octets(options.payload)])
        await client.flush()
        if refused:
            more = client.stats.errors - 1
            print(f"fanlight pub: {refused[0]}{f' (and {more:,} more)' if more else ''}", file=sys.stderr)
            return exits.REFUSED
    if unheard:
        print("fanlight pub: nobody is subscribed", file=sys.stderr)
        return exits.REFUSED
    return exits.OK


async def _publish_lines(client: Client, options: argparse.Namespace) -> bool:
    longest = int(client.info.get("limits", {}).get("frame_bytes", 2**20))
    unheard = False
    async for some in lines(sys.stdin.fileno(), longest):
        unheard |= await _publish(client, options, some)
    return unheard


async def _publish(client: Client, options: argparse.Namespace, payloads: list[bytes]) -> bool:
    """Publish; True when a receipt said that nobody was there."""
    topic, headers = text.topic(options.topic), text.headers(options.headers)
    if not options.receipt:
        pairs = ((topic, payload) for payload in payloads)
        await client.publish_many(pairs, headers=headers, syntax=options.syntax)
        return False
    # All of what was read at once: a way there and back for each line would be slow, and 64 kB of lines is a
    # bound.
    counts = await asyncio.gather(
        *(client.publish(topic, payload, headers=headers, syntax=options.syntax, receipt=True) for payload in payloads)
    )
    for count in counts:
        print(count)
    sys.stdout.flush()
    return 0 in counts
