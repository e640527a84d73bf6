"""What bounds the HTTP listener: connections, their time, requests a second, and bytes that are no HTTP."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.admin.listener import Pace

from .conftest import Serve, Served

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def dial(served: Served) -> Streams:
    return await asyncio.open_connection("127.0.0.1", served.server.port)


async def to_end(reader: asyncio.StreamReader) -> bytes:
    """What comes until the other side closes, which it must within 4 seconds: before it would force it."""
    async with asyncio.timeout(4):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def test_one_connection_too_many_is_told_so_and_a_place_that_is_left_can_be_taken(serve: Serve) -> None:
    served = await serve(connections_max=2)
    first, second = await dial(served), await dial(served)
    for _, writer in (first, second):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for reader, _ in (first, second):
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    reader, writer = await dial(served)
    answer = await to_end(reader)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"http_connections_max" in answer
    writer.close()
    first[1].close()
    await first[1].wait_closed()
    status, refused = 503, 1
    async with asyncio.timeout(60):
        while status == 503:  # until the listener has seen that the first one left
            reader, writer = await dial(served)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            status = int((await to_end(reader)).split()[1])
            writer.close()
            refused += status == 503
    assert served.server._http is not None
    assert served.server._http.refused == refused
    second[1].close()


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /stats HT", b"GET /stats HTTP/1.1\r\nHost: localhost\r\nX-Slow: "],
    ids=["nothing", "a line", "a header"],
)
async def test_a_client_that_does_not_finish_its_request_loses_its_connection(serve: Serve, sent: bytes) -> None:
    served = await serve(connection_seconds_max=0.2)
    reader, writer = await dial(served)
    writer.write(sent)
    await to_end(reader)
    writer.close()
    assert (await served.get("/stats"))[1]["http_connections_retired"] == 1


async def test_a_connection_that_is_kept_alive_ends_in_order_when_its_time_is_over(serve: Serve) -> None:
    served = await serve(connection_seconds_max=0.3)
    reader, writer = await dial(served)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = await to_end(reader)
    assert answer.endswith(b'{"status": "ok"}\n')
    writer.close()


async def test_a_client_that_reads_nothing_loses_its_connection_too(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fanlight_broker.admin.listener.FORCE_SECONDS", 0.2)
    served = await serve(connection_seconds_max=0.2)
    served.inspected.hot = [{"topic": "x" * 60_000}] * 1_000  # 60 MB, more than sockets hold
    _, writer = await dial(served)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /topics?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert served.server._http is not None
    async with asyncio.timeout(60):
        while not (await served.get("/stats"))[1]["http_connections_retired"]:
            pass
        while len(served.server._http.server.transports) > 1:
            await served.get("/stats")
    writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x00\x00\x0b\x93\x01\x01\x81",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % each for each in range(5_000)) + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["native", "version", "length", "header", "line", "headers", "chunk"],
)
async def test_what_is_no_request_is_answered_or_closed_and_the_listener_goes_on(serve: Serve, sent: bytes) -> None:
    served = await serve(connection_seconds_max=1)
    reader, writer = await dial(served)
    writer.write(sent)
    answer = await to_end(reader)
    assert b" 200 " not in answer
    writer.close()
    assert (await served.get("/healthz"))[0] == 200


async def test_what_comes_too_fast_waits_for_its_turn_and_health_has_a_turn_of_its_own(serve: Serve) -> None:
    served = await serve(requests_per_second_max=20)
    loop = asyncio.get_running_loop()
    flood = [asyncio.create_task(served.get("/stats")) for _ in range(24)]
    await asyncio.sleep(0)
    assert await served.get("/healthz") == (200, {"status": "ok"})
    started = loop.time()
    assert {status for status, _ in await asyncio.gather(*flood)} == {200}
    assert served.server._requests is not None
    assert served.server._requests._pace.wait(loop.time()) > 0
    assert loop.time() >= started


def test_a_second_of_requests_may_come_together_and_the_rest_comes_evenly() -> None:
    pace = Pace(10)
    waits = [pace.wait(100.0) for _ in range(13)]
    assert waits[:10] == [0.0] * 10
    assert waits[10:] == pytest.approx([0.1, 0.2, 0.3])
    assert pace.wait(200.0) == 0.0


@given(st.lists(st.floats(0, 10), max_size=200), st.integers(1, 100))
def test_in_any_second_no_more_than_two_seconds_worth_is_let_through(gaps: list[float], rate: int) -> None:
    pace, now, turns = Pace(rate), 0.0, []
    for gap in gaps:
        now += gap
        turns.append(now + pace.wait(now))
    turns.sort()
    for number, turn in enumerate(turns):
        together = sum(1 for other in turns[number:] if other < turn + 1)
        assert together <= 2 * rate + 1
