"""A real HTTP listener over a small broker, and a real HTTP client."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
import uvloop

from fanlight_broker.admin import AdminServer, MetricSource
from fanlight_broker.auth import Credentials, PasswordAuthenticator

from .inspected import Inspected

HELP = {
    "messages_in": "Messages accepted from publishers", "connections": "Connections", "refusals": "Clients refused"
}  # fmt: skip
Serve = Callable[..., Awaitable["Served"]]


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every test runs on the loop that the broker runs on, and on Python's own: their transports differ."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


class Served:
    """A listener, what it shows, and a session to ask it with."""

    def __init__(self, server: AdminServer, inspected: Inspected, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.inspected = inspected
        self.session = session
        self.url = f"http://127.0.0.1:{server.port}"

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        """The status and the JSON of one GET."""
        async with self.session.get(self.url + path, **options) as response:
            assert response.content_type == "application/json"
            return response.status, await response.json()


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts listeners: credentials and AdminServer's bounds are keywords."""
    async with AsyncExitStack() as stack:

        async def start(credentials: Credentials | None = None, **bounds: Any) -> Served:
            inspected = Inspected()
            authenticator = PasswordAuthenticator(credentials or Credentials())
            stack.push_async_callback(authenticator.close)
            sources = [MetricSource(HELP, inspected.counters, inspected.gauges, inspected.reasons)]
            bounds = {"port": 0, "requests_per_second_max": 10_000, **bounds}
            server = AdminServer(inspected, authenticator, sources, version="1.2.3", **bounds)
            await server.start()
            stack.push_async_callback(server.stop)
            session = await stack.enter_async_context(aiohttp.ClientSession())
            return Served(server, inspected, session)

        yield start


@pytest.fixture
async def served(serve: Serve) -> Served:
    return await serve()
