"""`fanlight request`: ask, and write the answer."""

import argparse
import sys

from ..connecting import connect
from . import exits, spelling, text
from .streams import Output


async def run(options: argparse.Namespace) -> int:
    syntax = spelling.of_topic(options, options.topic)
    async with connect(
        options.url, name=options.name, ca=options.ca, certificate=options.cert, key=options.key, reconnect=False
    ) as client:
        reply = await client.request(
            text.topic(options.topic),
            text.octets(options.payload or ""),
            headers=text.headers(options.headers),
            syntax=syntax,
            timeout=options.timeout,
        )
    if options.json:
        Output().write(text.as_json(reply), flush=True)
    else:
        Output().write_bytes(reply.payload + b"\n")
    if "error" in reply.headers:
        print(f"fanlight request: the answer is an error: {text.shown(str(reply.headers['error']))}", file=sys.stderr)
        return exits.REFUSED
    return exits.OK
