"""Real sockets and real time for the clients of tests/simulation."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from fanlight_broker.protocols.mqtt.version import Version
from tests.simulation.clients import Client
from tests.simulation.native_clients import NativeClient
from tests.simulation.queue_history import QueueHistory


class LiveSchedule:
    """What tests.simulation.schedule.Schedule does, by a loop's clock. A violation ends the run."""

    def __init__(self, random: Random, failed: "asyncio.Future[None]") -> None:
        self.random, self.failed = random, failed
        self.over = False  # nothing begins any more: the clients stay as they are
        self._loop = failed.get_loop()

    @property
    def now(self) -> float:
        return self._loop.time()

    def after(self, seconds: float, act: Callable[..., Any], *arguments: Any) -> None:
        self._loop.call_later(seconds, self.run, act, *arguments)

    def soon(self, act: Callable[..., Any], *arguments: Any, most: float = 0.05) -> None:
        self.after(self.random.uniform(0, most), act, *arguments)

    def run(self, act: Callable[..., Any], *arguments: Any) -> None:
        """Do it, unless the run is over."""
        if self.over or self.failed.done():
            return
        try:
            act(*arguments)
        except Exception as error:
            self.failed.set_exception(error)


class LiveLink(asyncio.Protocol):
    """One connection of a client, from the attempt on."""

    def __init__(self, schedule: LiveSchedule, client: Client | NativeClient, port: int) -> None:
        self._schedule, self._client = schedule, client
        self._transport: asyncio.Transport | None = None
        self._early = b""  # written before there was a connection
        self.opening = asyncio.get_running_loop().create_task(self._open(port))

    async def _open(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: self, "127.0.0.1", port)
        except OSError:
            self._schedule.run(self._client.closed, self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._early)

    def write(self, octets: bytes) -> None:
        if self._transport is None:
            self._early += octets
        elif not self._transport.is_closing():
            self._transport.write(octets)

    def data_received(self, data: bytes) -> None:
        self._schedule.run(self._client.receive, self, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._schedule.run(self._client.closed, self)

    def close(self) -> None:
        self.opening.cancel()
        if self._transport is not None:
            self._transport.abort()


class LiveNetwork:
    """Where clients connect to: two ports, whether or not a broker is there just now."""

    def __init__(self, schedule: LiveSchedule, history: Any, port: int, native_port: int) -> None:
        self.schedule, self.history, self.port, self.native_port = schedule, history, port, native_port
        self.queues = QueueHistory()
        self.links: list[LiveLink] = []

    def dial(self, client: Client, version: Version) -> Any:
        return self._linked(client, self.port)

    def dial_native(self, client: NativeClient) -> Any:
        return self._linked(client, self.native_port)

    def _linked(self, client: Client | NativeClient, port: int) -> LiveLink:
        link = LiveLink(self.schedule, client, port)
        self.links.append(link)
        if len(self.links) > 200:
            self.links = [each for each in self.links if each is each._client.link or not each.opening.done()] + [link]
        return link

    async def close(self) -> None:
        """End all connections and attempts; none begins after this, though the loop may run on."""
        self.schedule.over = True
        for link in self.links:
            link.close()
        if self.links:
            await asyncio.wait([link.opening for link in self.links])

