"""Connections are hidden from the garbage collector while they are open, and freed when they are closed."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from fanlight_broker import event_log
from fanlight_broker.auth.access import Credentials
from fanlight_broker.auth.authenticator import PasswordAuthenticator
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import ProtocolConnection
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.ports import Transport
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.connection import Connection
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.listener import Listener
from fanlight_broker.net.poller import Poller
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer

MANY = 50


def looked_at() -> int:
    """How many of the broker's objects the garbage collector looks at."""
    gc.collect()
    return sum(str(type(each).__module__).startswith("fanlight_broker.") for each in gc.get_objects())


class Failing(NativeConnection):
    """It fails at the first bytes, and keeps the exception, whose traceback refers to it."""

    error: Exception | None = None

    def receive(self, now: float) -> None:
        try:
            raise RuntimeError("as the test wants it")
        except RuntimeError as error:
            self.error = error
            raise

    def take(self, event: int | None, now: float) -> None:
        self.receive(now)


class Counting(Listener):
    """It says when all connections are open, and when all are closed."""

    def __init__(self, *of: Any, **options: Any) -> None:
        super().__init__(*of, **options)
        self.all_open = asyncio.Event()
        self.all_closed = asyncio.Event()

    def opened(self, connection: Connection) -> ProtocolConnection | None:
        protocol = super().opened(connection)
        if self.accepted == MANY:
            self.all_open.set()
        return protocol

    def closed(self, connection: Connection) -> None:
        super().closed(connection)
        if self.ended == MANY:
            self.all_closed.set()


class NoSink:
    """Forgets every event: pytest keeps log records, and so the frames that an exception has passed through."""

    level = event_log.DEBUG

    def write(self, level: int, logger: str, event: str, keys: event_log.Keys) -> None:
        pass


@pytest.fixture
def quiet() -> Iterator[None]:
    before = event_log.use(NoSink())
    gc.disable()
    yield
    gc.enable()
    event_log.use(before)


@pytest.mark.parametrize("polled", [False, True], ids=["transports", "poller"])
@pytest.mark.parametrize("kind", [NativeConnection, Failing])
async def test_connections_are_no_work_for_the_collector_and_freed_at_their_end(
    kind: type[NativeConnection], polled: bool, quiet: None
) -> None:
    loop = asyncio.get_running_loop()
    broker = Broker(Limits(), lambda: flusher.schedule(loop), loop.call_soon)
    flusher = Flusher(broker.ledger, lambda outbox, error: None)
    authenticator = PasswordAuthenticator(Credentials(allow_anonymous=True))
    wires: list[weakref.ref[Transport]] = []

    def connection(broker: Broker, transport: Transport, shared: ReceiveBuffer, now: float) -> NativeConnection:
        wires.append(weakref.ref(transport))
        return kind(broker, transport, shared, now)

    listener = Counting(
        "native", broker, connection, authenticator, clock=monotonic, shared=ReceiveBuffer(),
        poller=Poller(loop, flusher) if polled else None,
    )
    host, port = await listener.start("127.0.0.1", 0)
    before = looked_at()
    streams = [await asyncio.open_connection(host, port) for _ in range(MANY)]
    await listener.all_open.wait()
    assert all(wire() is not None for wire in wires)
    assert looked_at() - before < MANY / 10
    for _, writer in streams:
        writer.write(b"what is no frame")
    for reader, writer in streams:
        await reader.read()
        writer.close()
        await writer.wait_closed()
    await listener.all_closed.wait()
    await asyncio.sleep(0)  # the callback that closed the last one is over
    if kind is NativeConnection:
        assert not [wire for wire in wires if wire() is not None]  # before any collection
    gc.collect()
    assert len(wires) == MANY
    assert not [wire for wire in wires if wire() is not None]
    await listener.stop()
    await authenticator.close()
