"""All subscriptions as JSON lines: whole or visibly not, in slices that leave the loop to others."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from fanlight_broker.admin.snapshot import CONTENT_TYPE, PLACES
from fanlight_broker.auth import Credentials

from .conftest import Serve, Served
from .test_entrance import until

ALL = "/subscriptions?format=jsonl"


async def lines(served: Served, path: str = ALL) -> list[dict[str, Any]]:
    async with served.session.get(served.url + path) as response:
        assert (response.status, response.content_type) == (200, CONTENT_TYPE)
        return [json.loads(line) for line in (await response.text()).splitlines()]


def rows(number: int) -> list[dict[str, Any]]:
    return [{"id": each, "filter": f"plant.{each}.#"} for each in range(number)]


@pytest.mark.parametrize("number", [0, 1, PLACES, PLACES + 1, 5 * PLACES])
async def test_it_has_a_head_every_subscription_and_an_end(served: Served, number: int) -> None:
    served.inspected.rows = rows(number)
    head, *told, end = await lines(served)
    assert (head["snapshot"], head["broker"], head["from"]) == (2, "1.2.3", 0)
    assert told == rows(number)
    assert end == {"end": number}


async def test_who_was_cut_off_goes_on_behind_the_last_id(served: Served) -> None:
    served.inspected.rows = rows(500)
    head, *told, end = await lines(served, ALL + "&from=490")
    assert (head["from"], [row["id"] for row in told], end) == (490, list(range(490, 500)), {"end": 10})
    head, end = await lines(served, ALL + "&from=7000")
    assert end == {"end": 0}


async def test_what_no_utf8_can_spell_comes_as_lone_surrogates(served: Served) -> None:
    served.inspected.rows = [{"id": 0, "filter": b"a.\xff".decode("utf-8", "surrogateescape")}]
    _, row, _ = await lines(served)
    assert row["filter"].encode("utf-8", "surrogateescape") == b"a.\xff"


async def test_others_are_answered_while_it_is_made(served: Served) -> None:
    """50 slices: between two of them the loop turns, and answers."""
    served.inspected.rows = rows(50 * PLACES)
    async with served.session.get(served.url + ALL) as response:
        await response.content.readline()
        assert (await served.get("/healthz"))[0] == 200
        assert not response.content.is_eof()
        told = len((await response.text()).splitlines())
    assert told == 50 * PLACES + 1


async def test_several_at_once_are_each_whole(served: Served) -> None:
    served.inspected.rows = rows(10 * PLACES)
    for each in await asyncio.gather(*(lines(served) for _ in range(5))):
        assert each[1:-1] == rows(10 * PLACES)


async def test_an_error_in_the_middle_leaves_no_snapshot_that_looks_whole(served: Served) -> None:
    snapshot = served.inspected.snapshot

    def breaks(*, place: int, places: int) -> Any:
        if place:
            raise RuntimeError("no more")
        return snapshot(place=place, places=places)

    served.inspected.rows = rows(2 * PLACES)
    served.inspected.snapshot = breaks  # type: ignore[method-assign]
    with pytest.raises(aiohttp.ClientPayloadError):
        await lines(served)
    served.inspected.snapshot = snapshot  # type: ignore[method-assign]
    assert len(await lines(served)) == 2 * PLACES + 2


async def test_a_reader_that_goes_away_disturbs_nobody(served: Served) -> None:
    served.inspected.rows = rows(100 * PLACES)
    async with served.session.get(served.url + ALL) as response:
        await response.content.readline()
        response.close()
    served.inspected.rows = rows(3)
    assert len(await lines(served)) == 5


class Places(set[asyncio.Transport]):
    """The listener's connections; the event is set when one has gone."""

    def __init__(self, gone: asyncio.Event) -> None:
        self._gone = gone

    def discard(self, each: asyncio.Transport) -> None:
        super().discard(each)
        self._gone.set()


async def test_a_reader_that_does_not_read_is_cut_off_in_time(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanlight_broker.admin.listener.FORCE_SECONDS", 0.1)
    served = await serve(connection_seconds_max=0.2)
    served.inspected.rows = [{"filter": "x" * 10_000} for _ in range(5_000)]  # 50 MB: more than sockets hold
    await served.get("/healthz", headers={"Connection": "close"})  # the server is there with the first request
    assert served.server._http is not None
    server = served.server._http.server
    assert server is not None
    await until(lambda: not server.transports)
    _, writer = await asyncio.open_connection("127.0.0.1", served.server.port, limit=1_000)
    writer.write(f"GET {ALL} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    cut_off = asyncio.Event()
    monkeypatch.setattr(server, "transports", Places(cut_off))
    await asyncio.wait_for(cut_off.wait(), 60)
    writer.close()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("format=csv", "json"), ("format=jsonl&limit=3", "no limit"), ("format=jsonl&offset=3", "no offset"),
        ("from=3", "no from"), ("format=jsonl&from=x", "from=x must be a whole number"),
    ],
)  # fmt: skip
async def test_what_makes_no_sense_is_told(served: Served, query: str, told: str) -> None:
    status, answer = await served.get(f"/subscriptions?{query}")
    assert status == 400
    assert told in answer["error"]


async def test_head_has_no_body_and_a_password_is_asked_for(serve: Serve) -> None:
    served = await serve()
    async with served.session.head(served.url + ALL) as response:
        assert (response.status, response.content_type, await response.read()) == (200, CONTENT_TYPE, b"")
    served = await serve(Credentials(password="sesame"))
    assert (await served.get(ALL))[0] == 401
