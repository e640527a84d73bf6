"""Delayed messages (docs/native-protocol.md, 3.3): what the client says, and what it makes of the receipt."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from math import inf, nan
from typing import Any

import pytest

import fanlight
import fanlight.sync
from fanlight import Mark

from .frame_bytes import FALSE, NIL, TRUE, array, fixint, float64, frame, num, octets, options, text
from .peer import Connection, Peer, connect, conversing, listening

THEN = 1_900_000_000


def later(request: int | None, said: bytes, mark: bytes = NIL) -> bytes:
    asked = NIL if request is None else num(request)
    return frame(fixint(3), asked, text("t"), octets(b"a"), NIL, NIL, NIL, mark, said)


def delayed(request: int) -> bytes:
    return frame(fixint(5), num(request), num(0), NIL, NIL, TRUE)


async def greeted(peer: Peer, *features: str) -> Connection:
    connection = await peer.connection()
    await connection.greet(features=features)
    return connection


async def test_the_receipt_of_a_delayed_message_says_so() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "delay", "marks")
        await connection.expect(later(1, options(delay=num(90))))
        await connection.say(delayed(1))
        await connection.expect(later(2, options(deliver_at=float64(float(THEN)))))
        await connection.say(delayed(2))
        await connection.expect(later(3, options(delay=float64(0.5)), array(text("p"), num(0), num(1))))
        await connection.say(frame(fixint(5), num(3), num(2)))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        found = await client.publish("t", b"a", receipt=True, delay=90)
        assert (found, found.delayed, found.repeated) == (0, True, False)
        at = datetime.fromtimestamp(THEN, timezone(timedelta(hours=2)))
        assert (await client.publish("t", b"a", receipt=True, deliver_at=at)).delayed
        third = await client.publish("t", b"a", receipt=True, delay=0.5, mark=Mark("p", 0, 1))
        assert (third, third.delayed) == (2, False)


async def test_a_delay_goes_with_a_message_that_wants_no_receipt_and_0_is_none() -> None:
    done = asyncio.Event()

    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "delay")
        await connection.expect(frame(fixint(3), NIL, text("t"), octets(b"a")))
        await connection.expect(later(None, options(deliver_at=num(THEN))))
        done.set()

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        await client.publish("t", b"a", delay=0)
        await client.publish("t", b"a", deliver_at=THEN)
        await asyncio.wait_for(done.wait(), 60)


async def test_the_blocking_client_delays_too() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "delay")
        await connection.expect(later(None, options(delay=num(5))))
        await connection.expect(later(1, options(deliver_at=num(THEN))))
        await connection.say(delayed(1))

    def program(url: str) -> bool:
        with fanlight.sync.connect(url) as client:
            with pytest.raises(ValueError, match="0 or more"):
                client.publish("t", b"a", delay=-1)
            client.publish("t", b"a", delay=5)
            return client.publish("t", b"a", receipt=True, deliver_at=THEN).delayed

    async with listening() as peer, conversing(peer, script):
        assert await asyncio.to_thread(program, peer.url)


async def test_a_broker_that_would_deliver_at_once_is_not_sent_it() -> None:
    async def script(peer: Peer) -> None:
        await greeted(peer, "marks")

    def program(url: str) -> None:
        with fanlight.sync.connect(url) as client, pytest.raises(fanlight.Unsupported, match="delays no messages"):
            client.publish("t", b"a", delay=5)

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        for receipt in (True, False):
            with pytest.raises(fanlight.Unsupported, match="delays no messages"):
                await client.publish("t", b"a", receipt=receipt, delay=5)
        assert client.stats.published == 0
    async with listening() as peer, conversing(peer, script):
        await asyncio.to_thread(program, peer.url)


WRONG: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "negative": ({"delay": -1}, ValueError),
    "not a number": ({"delay": nan}, ValueError),
    "endless": ({"deliver_at": inf}, ValueError),
    "text": ({"delay": "5"}, TypeError),
    "a bool": ({"delay": True}, TypeError),
    "both": ({"delay": 1, "deliver_at": THEN}, ValueError),
    "without a zone": ({"deliver_at": datetime(2030, 1, 1)}, ValueError),
    "before 1970": ({"deliver_at": datetime(1960, 1, 1, tzinfo=UTC)}, ValueError),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_delay_that_would_cost_the_connection_is_not_sent(what: str) -> None:
    wrong, error = WRONG[what]

    async def script(peer: Peer) -> None:
        await greeted(peer, "delay")

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        for receipt in (True, False):
            with pytest.raises(error):
                await client.publish("t", b"a", receipt=receipt, **wrong)


def receipted(request: int, id: int) -> bytes:
    return frame(fixint(5), num(request), num(0), NIL, NIL, TRUE, num(id))


async def test_a_message_is_cancelled_by_its_receipt_or_its_id() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "delay", "cancel")
        await connection.expect(later(1, options(delay=num(90))))
        await connection.say(receipted(1, 2**41))
        await connection.expect(frame(fixint(39), num(2), text("cancel"), options(id=num(2**41))))
        await connection.say(frame(fixint(7), num(2), options(cancelled=TRUE)))
        await connection.expect(frame(fixint(39), num(3), text("cancel"), options(id=num(7))))
        await connection.say(frame(fixint(7), num(3), options(cancelled=FALSE)))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        found = await client.publish("t", b"a", receipt=True, delay=90)
        assert (found, found.delayed, found.id) == (0, True, 2**41)
        assert await client.cancel(found) is True
        assert await client.cancel(7) is False
        with pytest.raises(fanlight.Unsupported, match="no id"):
            await client.cancel(fanlight.Routed(1))
        for id in (0, -1, 2**64):
            with pytest.raises(ValueError, match="no id"):
                await client.cancel(id)


async def test_what_waits_is_listed() -> None:
    async def script(peer: Peer) -> None:
        connection = await greeted(peer, "delay", "cancel")
        await connection.expect(
            frame(fixint(39), num(1), text("delayed"), options(limit=num(2), payload_bytes=num(3)))
        )
        message = options(
            id=num(9), seconds=float64(1.5), client=text("shop"), topic=text("a/b"), syntax=num(1), size=num(9),
            payload=octets(b"abc"), headers=NIL, reply=NIL, cut=TRUE, later=TRUE,
        )  # fmt: skip
        await connection.say(
            frame(fixint(7), num(1), options(count=num(7), next_seconds=float64(1.5), messages=array(message)))
        )
        await connection.expect(
            frame(fixint(39), num(2), text("delayed"), options(limit=num(100), payload_bytes=num(128)))
        )
        await connection.say(frame(fixint(7), num(2), options(count=num(0), next_seconds=NIL, messages=array())))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        found = await client.delayed(2, payload_bytes=3)
        assert (found.count, found.next_seconds) == (7, 1.5)
        (message,) = found.messages
        assert (message.id, message.seconds, message.client, message.size, message.cut) == (9, 1.5, "shop", 9, True)
        assert (message.topic, message.syntax, message.payload, message.headers) == ("a/b", "mqtt", b"abc", {})
        assert await client.delayed() == fanlight.DelayedMessages(count=0, next_seconds=None, messages=())


async def test_a_broker_that_cancels_nothing_is_not_asked() -> None:
    async def script(peer: Peer) -> None:
        await greeted(peer, "delay", "queues")

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        with pytest.raises(fanlight.Unsupported):
            await client.cancel(7)
        with pytest.raises(fanlight.Unsupported):
            await client.delayed()
