"""The client in the sessions of the vectors: it writes exactly what they say."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import fanlight
from fanlight.codec import decode_body

from . import make_vectors
from .peer import Connection, Peer, conversing, listening

SESSIONS = {session["name"]: session for session in json.loads(make_vectors.TARGET.read_text())["sessions"]}


async def publish_subscribe(client: fanlight.Client) -> None:
    async with client.subscribe("forex.*") as quotes:
        await client.publish("forex.eur", b"hi")
        message = await quotes.next(timeout=60)
        assert (message.topic, message.payload, message.words) == ("forex.eur", b"hi", ("forex", "eur"))
        assert message.subscription is quotes


async def receipts(client: fanlight.Client) -> None:
    assert await client.publish("forex.eur", b"hi", receipt=True) == 0
    quotes = await client.subscribe("forex.*")
    assert await client.publish("forex.eur", b"hi", receipt=True) == 1
    assert (await quotes.next(timeout=60)).payload == b"hi"


async def ends_after_two(client: fanlight.Client) -> None:
    quotes = await client.subscribe("forex.*", after=2)
    assert await client.publish_many([("forex.eur", b"hi")] * 3) == 3
    assert [message.payload async for message in quotes] == [b"hi", b"hi"]
    with pytest.raises(fanlight.SubscriptionEnded):
        await quotes.next()


async def across_spellings(client: fanlight.Client) -> None:
    temperatures = await client.subscribe("site.*.temp")
    await client.publish("site/7/temp", b"hi", syntax="mqtt")
    message = await temperatures.next(timeout=60)
    assert (message.topic, message.syntax, message.words) == ("site/7/temp", "mqtt", ("site", "7", "temp"))


async def a_refusal_does_not_close(client: fanlight.Client) -> None:
    with pytest.raises(fanlight.InvalidFilter) as raised:
        await client.subscribe("a/#/b", syntax="mqtt")
    assert raised.value.request == 1
    await client.flush()


PROGRAMS: dict[str, Callable[[fanlight.Client], Awaitable[None]]] = {
    each.__name__: each
    for each in (publish_subscribe, receipts, ends_after_two, across_spellings, a_refusal_does_not_close)
}


async def play(connection: Connection, steps: list[dict[str, Any]]) -> None:
    for step in steps:
        data = bytes.fromhex(step["bytes"])
        if step["from"] == "broker":
            await connection.say(data)
        elif step["exact"]:
            await connection.expect(data)
        else:
            frame = decode_body(await connection.frame())
            assert frame is not None
            said = frame._asdict()
            assert {key: said[key] for key in step["fields"]} == step["fields"]
    await connection.at_end()


@pytest.mark.parametrize("name", SESSIONS)
async def test_a_client_says_what_the_session_says(name: str) -> None:
    async def script(peer: Peer) -> None:
        await play(await peer.connection(), SESSIONS[name]["steps"])

    async with (
        listening() as peer,
        conversing(peer, script),
        fanlight.connect(peer.url, name="desk-7") as client,
    ):
        await PROGRAMS[name](client)
