"""Subscriptions with `where`: as text or dict, and never at a broker that would ignore it."""

import asyncio

import pytest

import fanlight

from .frame_bytes import TRUE, array, fixint, frame, num, options, text
from .peer import Peer, connect, conversing, error, listening, ok
from .test_marks import greeted
from .test_reconnect import QUICK

PATTERN = options(price=array(options(numeric=array(text(">"), num(100)))))


async def test_a_selector_is_sent_as_it_was_given() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "where", "replay")
        await connection.expect(frame(fixint(6), num(1), num(1), text("t"), options(where=text("price > 100"))))
        await connection.say(ok(1))
        await connection.expect(frame(fixint(6), num(2), num(2), text("t"), options(where=PATTERN)))
        await connection.say(ok(2))
        await connection.expect(frame(fixint(48), num(3), num(3), text("t"), options(where=text("x = 1"))))
        await connection.say(ok(3))
        await connection.frame()
        await connection.say(error(4, "invalid_selector"))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        await client.subscribe("t", where="price > 100")
        await client.subscribe("t", where={"price": [{"numeric": [">", 100]}]})
        await client.replay("t", where="x = 1")
        with pytest.raises(fanlight.InvalidSelector):
            await client.subscribe("t", where="x >")


async def test_the_selector_of_a_queue_is_sent_on_each_connection() -> None:
    wanted = {"where": text("price > 100"), "consumer": text("q"), "durable": TRUE, "ack": TRUE}

    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "where", "queues")
        await connection.expect(frame(fixint(6), num(1), num(1), text("t"), options(**wanted)))
        await connection.say(ok(1))
        connection.hang_up()
        connection = await greeted(peer, "where", "queues")
        await connection.expect(frame(fixint(6), num(2), num(1), text("t"), options(**wanted)))
        await connection.say(ok(2))

    again: asyncio.Queue[fanlight.Client] = asyncio.Queue()
    async with (
        listening() as peer, conversing(peer, script),
        connect(peer.url, reconnect=QUICK, on_reconnect=again.put_nowait) as client,
    ):  # fmt: skip
        await client.subscribe("t", ack=True, durable="q", where="price > 100")
        await asyncio.wait_for(again.get(), 60)


async def test_a_broker_without_selectors_is_not_asked() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "replay", "queues")
        assert text("u") in await connection.frame()  # the first that came
        await connection.say(ok(4))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        for begun in (client.subscribe("t", where="x = 1"), client.replay("t", where="x = 1")):
            with pytest.raises(fanlight.Unsupported, match="no selectors"):
                await begun
        with pytest.raises(fanlight.Unsupported, match="no selectors"):
            await client.queues.add("q", "t", where="x = 1")
        await client.subscribe("u")
