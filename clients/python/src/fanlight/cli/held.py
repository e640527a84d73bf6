"""On a terminal, says once for each hold that the broker reads nothing more: what it waits for is a slow subscriber."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..client import Client

LOOK_SECONDS = 0.2  # a hold that is shorter is a burst that is smoothed, and nothing to be told of


@asynccontextmanager
async def told(client: Client, command: str) -> AsyncIterator[None]:
    """While this lasts, holds are told of on standard error, if that is a terminal."""
    watching = asyncio.create_task(_watch(client, command)) if sys.stderr.isatty() else None
    try:
        yield
    finally:
        if watching is not None:
            watching.cancel()


async def _watch(client: Client, command: str) -> None:
    said = 0
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        stats = client.stats
        if stats.held and stats.held_times != said:
            said = stats.held_times
            print(f"fanlight {command}: held by the broker: a subscriber of this topic is behind", file=sys.stderr)
