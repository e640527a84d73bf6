"""Subscriptions with `where`: as text or dict, and never at a broker that would ignore it."""

import pytest

import fanlight

from .frame_bytes import array, fixint, frame, num, options, text
from .peer import Peer, connect, conversing, error, listening, ok
from .test_marks import greeted

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


async def test_a_broker_without_selectors_is_not_asked() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "replay")
        assert text("u") in await connection.frame()  # the first that came
        await connection.say(ok(3))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        for begun in (client.subscribe("t", where="x = 1"), client.replay("t", where="x = 1")):
            with pytest.raises(fanlight.Unsupported, match="no selectors"):
                await begun
        with pytest.raises(ValueError, match="ack=True"):
            client.subscribe("t", ack=True, where="x = 1")
        await client.subscribe("u")
