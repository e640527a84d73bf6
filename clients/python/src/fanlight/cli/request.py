"""`fanlight request`: ask, and write the answer."""

import argparse

from ..connecting import connect
from . import exits, text
from .streams import Output


async def run(options: argparse.Namespace) -> int:
    async with connect(
        options.url, name=options.name, ca=options.ca, certificate=options.cert, key=options.key, reconnect=False
    ) as client:
        reply = await client.request(
            text.topic(options.topic),
            text.octets(options.payload or ""),
            headers=text.headers(options.headers),
            syntax=options.syntax,
            timeout=options.timeout,
        )
        if options.json:
            Output().write(text.as_json(reply), flush=True)
        else:
            Output().write_bytes(reply.payload + b"\n")
    return exits.OK
