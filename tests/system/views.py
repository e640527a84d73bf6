"""What a running broker says of itself over HTTP, and waiting until it says something.

The views have no events: `eventually` asks again, twenty times a second, and says at last what it saw.
"""

import asyncio
import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from fanlight_bench.launch import Broker
from fanlight_bench.procfs import resident_bytes
from tests.system.wire import WAIT_SECONDS

POLL_SECONDS = 0.05
KIB = 1024
MIB = 1024 * KIB

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy that the environment names


def ask(url: str, *, user: str | None = None, password: str = "", bearer: str | None = None) -> tuple[int, str]:
    """Status and text of an answer. Raises OSError if there is none."""
    request = urllib.request.Request(url)
    if user is not None:
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {token}")
    if bearer is not None:
        request.add_header("Authorization", f"Bearer {bearer}")
    try:
        with _opener.open(request, timeout=WAIT_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def view(broker: Broker, path: str) -> dict[str, Any]:
    """A JSON view, which must be there."""
    status, text = await asyncio.to_thread(ask, broker.http_url + path)
    assert status == 200, f"{path}: {status} {text}"
    found: dict[str, Any] = json.loads(text)
    return found


async def stats(broker: Broker) -> dict[str, Any]:
    return await view(broker, "/stats")


async def eventually(
    broker: Broker, holds: Callable[[dict[str, Any]], bool], path: str = "/stats", seconds: float = WAIT_SECONDS
) -> dict[str, Any]:
    """The view at `path` once `holds` is true of it."""
    end = time.monotonic() + seconds
    while True:
        seen = await view(broker, path)
        if holds(seen):
            return seen
        assert time.monotonic() < end, f"{path} never came to it; at last: {json.dumps(seen)[:3000]}"
        await asyncio.sleep(POLL_SECONDS)


def resident(broker: Broker) -> int:
    """Bytes of memory of the broker's process; 0 where that is not to be known."""
    return resident_bytes(broker.pid) or 0


async def logged_once_it_is(broker: Broker, event: str, **keys: Any) -> list[dict[str, Any]]:
    """The log's lines of one event with these keys, of which there will be one at least: lines are written behind."""

    def found() -> list[dict[str, Any]]:
        return [line for line in logged(broker, event) if keys.items() <= line.items()]

    await asyncio.to_thread(broker.wait_for, lambda: bool(found()), WAIT_SECONDS)
    return found()


def logged(broker: Broker, event: str) -> list[dict[str, Any]]:
    """The log's lines of one event."""
    lines = [json.loads(line) for line in list(broker.lines) if line.startswith("{")]
    return [line for line in lines if line.get("event") == event]
