"""Publishing with marks (docs/native-protocol.md, 3.8): what the client says, and what it makes of the receipt."""

import asyncio
from typing import Any

import pytest

import fanlight
import fanlight.sync
from fanlight import Mark

from .frame_bytes import FALSE, NIL, TRUE, array, fixint, frame, num, octets, text
from .peer import Connection, Peer, connect, conversing, listening, receipt


def marked(request: int | None, payload: bytes, mark: Mark, headers: bytes = NIL, reply: bytes = NIL) -> bytes:
    asked = NIL if request is None else num(request)
    said = array(text(mark.producer), num(mark.batch), num(mark.sequence))
    return frame(fixint(3), asked, text("t"), octets(payload), headers, NIL, reply, said)


async def greeted(peer: Peer, *features: str) -> Connection:
    connection = await peer.connection()
    await connection.greet(features=features)
    return connection


async def test_a_receipt_tells_whether_the_message_was_taken_before() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "replay", "marks")
        await connection.expect(marked(1, b"a", Mark("q.0", 3, 0)))
        await connection.say(receipt(1, 2))
        await connection.expect(marked(2, b"a", Mark("q.0", 3, 0)))
        await connection.say(frame(fixint(5), num(2), num(0), NIL, TRUE))
        await connection.expect(marked(3, b"b", Mark("q.0", 3, 2**40), reply=text("r")))
        await connection.say(frame(fixint(5), num(3), num(1), NIL, FALSE))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        first = await client.publish("t", b"a", receipt=True, mark=Mark("q.0", 3, 0))
        assert (first, first.repeated) == (2, False)
        again = await client.publish("t", b"a", receipt=True, mark=Mark("q.0", 3, 0))
        assert (again, again.repeated) == (0, True)
        third = await client.publish("t", b"b", receipt=True, mark=Mark("q.0", 3, 2**40), reply="r")
        assert (third, third.repeated) == (1, False)


async def test_a_mark_goes_with_a_message_that_wants_no_receipt() -> None:
    done = asyncio.Event()

    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "marks")
        await connection.expect(marked(None, b"a", Mark("ß", 0, 1)))
        done.set()

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        await client.publish("t", b"a", mark=Mark("ß", 0, 1))
        await asyncio.wait_for(done.wait(), 60)


async def test_a_broker_without_marks_is_sent_none() -> None:
    async def script(peer: Peer) -> None:
        await greeted(peer, "replay")

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        for receipt in (True, False):
            with pytest.raises(fanlight.Unsupported, match="knows no marks"):
                await client.publish("t", b"a", receipt=receipt, mark=Mark("p", 0, 0))
        assert client.stats.published == 0


@pytest.mark.parametrize(
    "mark", [Mark("", 0, 0), Mark("p" * 256, 0, 0), Mark("\ud800", 0, 0), Mark("p", -1, 0), Mark("p", 0, 2**64)]
)
async def test_a_mark_that_would_cost_the_connection_is_not_sent(mark: Mark) -> None:
    async def script(peer: Peer) -> None:
        await greeted(peer, "marks")

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        for receipt in (True, False):
            with pytest.raises(ValueError, match="a mark has a producer's name"):
                await client.publish("t", b"a", receipt=receipt, mark=mark)


async def test_the_blocking_client_says_the_same() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "marks")
        await connection.expect(marked(None, b"a", Mark("p", 1, 2)))
        await connection.expect(marked(1, b"a", Mark("p", 1, 2)))
        await connection.say(frame(fixint(5), num(1), num(0), NIL, TRUE))
        await connection.frame()  # GOODBYE

    def blocking(url: str) -> Any:
        with fanlight.sync.connect(url) as client:
            client.publish("t", b"a", mark=Mark("p", 1, 2))
            with pytest.raises(ValueError, match="a mark has a producer's name"):
                client.publish("t", b"a", mark=Mark("p", 1, -2))
            return client.publish("t", b"a", receipt=True, mark=Mark("p", 1, 2))

    async with listening() as peer, conversing(peer, script):
        routed = await asyncio.to_thread(blocking, peer.url)
    assert (routed, routed.repeated) == (0, True)


async def test_the_blocking_client_asks_for_the_feature_too() -> None:
    async def script(peer: Peer) -> None:
        await greeted(peer)

    def blocking(url: str) -> None:
        with fanlight.sync.connect(url) as client:
            for receipt in (True, False):
                with pytest.raises(fanlight.Unsupported, match="knows no marks"):
                    client.publish("t", b"a", receipt=receipt, mark=Mark("p", 1, 2))

    async with listening() as peer, conversing(peer, script):
        await asyncio.to_thread(blocking, peer.url)
