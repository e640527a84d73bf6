"""Holds on a terminal: one line each time the broker stops reading from us because a subscriber is slow."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..client import Client

LOOK_SECONDS = 0.2  # a shorter hold smooths a burst, and is not reported


@asynccontextmanager
async def reported(client: Client, command: str) -> AsyncIterator[None]:
    """Report holds on standard error while this lasts, if that is a terminal."""
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
