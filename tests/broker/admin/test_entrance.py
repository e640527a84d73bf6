"""Connections that come before aiohttp is imported (admin/entrance.py)."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from fanlight_broker.admin import entrance
from fanlight_broker.admin.gatekeeper import MetricsAccess
from fanlight_broker.auth import Credentials
from fanlight_broker.core.limits import Limits
from fanlight_broker.net.strangers import Strangers, StrangersNow
from tests.captured_logs import capture_logs

from .conftest import Serve, Served
from .test_listener import Streams, to_end
from .test_listener import dial as dialled

LOCAL = "127.0.0.1"
ASK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class HeldImport:
    """Stands in for `import_module`: the import waits until it is let go, and may fail."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.error: ImportError | None = None
        self.calls = 0

    def __call__(self, module: str) -> None:
        assert module == "fanlight_broker.admin.requests"
        self.calls += 1
        self.begun.set()
        assert self.go_on.wait(60)
        if self.error is not None:
            raise self.error


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldImport:
    held = HeldImport()
    monkeypatch.setattr(entrance, "import_module", held)
    return held


@pytest.fixture
async def dial() -> AsyncIterator[Callable[[Served], Awaitable[Streams]]]:
    """Connects; what is not closed at the end of the test is then."""
    writers = []

    async def connect(served: Served) -> Streams:
        streams = await dialled(served)
        writers.append(streams[1])
        return streams

    yield connect
    for writer in writers:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


Dial = Callable[[Served], Awaitable[Streams]]


async def until(condition: Callable[[], Any], wait: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await wait(0)


async def test_what_the_first_clients_send_waits_for_the_import_and_is_answered(
    serve: Serve, dial: Dial, held: HeldImport
) -> None:
    served = await serve(connections_max=3)
    streams = [await dial(served) for _ in range(3)]
    assert served.server._http is not None
    http = served.server._http
    await until(lambda: len(http.waiting) == 3)
    streams[0][1].write(ASK)
    streams[1][1].write(ASK[:20])
    streams[2][1].write(ASK)
    streams[2][1].write_eof()
    assert (await to_end((await dial(served))[0])).startswith(b"HTTP/1.1 503 ")  # they have their places
    assert http.refused == 1
    await until(lambda: sum(len(each._kept) for each in http.waiting) == 2 * len(ASK) + 20)
    held.go_on.set()
    await until(lambda: not http.waiting)
    streams[1][1].write(ASK[20:])
    for reader, _ in streams[:2]:
        assert (await to_end(reader)).startswith(b"HTTP/1.1 200 ")
    await to_end(streams[2][0])  # aiohttp decides what a client gets that sends no more: an end, in any case
    assert held.calls == 1


async def test_a_client_that_sends_much_meanwhile_is_not_read_without_end(
    serve: Serve, dial: Dial, held: HeldImport
) -> None:
    served = await serve()
    reader, writer = await dial(served)
    assert served.server._http is not None
    http = served.server._http
    await until(lambda: len(http.waiting) == 1)
    (waiting,) = http.waiting
    writer.write(b"x" * 8_000_000)
    await until(lambda: len(waiting._kept) >= entrance.KEPT_BYTES)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(waiting._kept) < 1_000_000
    held.go_on.set()
    await to_end(reader)  # refused, as it would be at any time; a reset may overtake the answer


async def test_an_import_that_fails_ends_the_connections_and_the_next_one_tries_again(
    serve: Serve, dial: Dial, held: HeldImport
) -> None:
    held.error = ImportError("for the test")
    served = await serve()
    reader, _ = await dial(served)
    with capture_logs() as lines:
        held.go_on.set()
        assert await to_end(reader) == b""
    assert [line["event"] for line in lines] == ["http_not_loaded"]
    held.error = None
    reader, writer = await dial(served)
    writer.write(ASK)
    assert (await to_end(reader)).startswith(b"HTTP/1.1 200 ")


async def test_a_stop_ends_connections_that_wait(serve: Serve, dial: Dial, held: HeldImport) -> None:
    served = await serve()
    reader, _ = await dial(served)
    assert served.server._http is not None
    http = served.server._http
    await until(lambda: len(http.waiting) == 1)
    held.go_on.set()
    await served.server.stop()
    assert await to_end(reader) == b""


async def test_an_address_whose_connections_were_let_in_to_nothing_is_closed_to_without_an_answer(
    serve: Serve, dial: Dial
) -> None:
    limits = Limits(connections_without_login_per_second_max=2)
    strangers = StrangersNow(Strangers(), lambda: limits, lambda: 0.0)
    served = await serve(
        Credentials(password="sesame"), strangers=strangers, connections_max=2, metrics=MetricsAccess(open=True)
    )

    async def once(sent: bytes) -> bytes:
        reader, writer = await dial(served)
        writer.write(sent)
        answer = await to_end(reader)
        writer.close()
        return answer

    for _ in range(3):  # who is let in does not count, with or without a name
        assert (await once(ASK)).startswith(b"HTTP/1.1 200 ")
        assert (await once(ASK.replace(b"healthz", b"metrics"))).startswith(b"HTTP/1.1 200 ")
    assert len(strangers._strangers) == 0
    (await dial(served))[1].close()
    await once(ASK.replace(b"healthz", b"stats"))
    await once(b"\0\x10\r\n\r\n")
    assert served.server._http is not None
    server = served.server._http.server
    assert server is not None
    await until(lambda: not server.transports)
    places = [await dial(served) for _ in range(2)]
    assert strangers.refusal(LOCAL) is None
    assert (await once(b"")).startswith(b"HTTP/1.1 503 ")  # one too many counts as well: the fourth, of 2 s
    await until(lambda: strangers.refusal(LOCAL))
    refused = strangers._strangers.refused
    assert await once(ASK) == b""
    assert strangers._strangers.refused == refused + 1
    for _, writer in places:
        writer.close()
