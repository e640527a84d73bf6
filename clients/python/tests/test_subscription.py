"""A subscription's local queue: its limits, what happens when they are reached, and what is counted."""

import asyncio

import pytest

import fanlight

from .frame_bytes import fixint, frame, num, octets, options, text
from .peer import Connection, Peer, connect, conversing, listening, message, ok, pong, receipt
from .test_client import subscribe


async def subscribed(peer: Peer) -> Connection:
    connection = await peer.greeted()
    await connection.frame()
    await connection.say(ok(1))
    return connection


def numbered(*numbers: int) -> list[bytes]:
    return [message(1, "t", b"%d" % number) for number in numbers]


async def answer_ping(connection: Connection, request: int) -> None:
    await connection.expect(frame(fixint(11), num(request)))
    await connection.say(pong(request))


async def test_drop_newest_keeps_what_came_first_and_counts() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(*numbered(*range(10)))
        await answer_ping(connection, 2)

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t", pending_messages=3, overflow="drop_newest")
        await client.flush()
        assert [(await got.next(5)).payload for _ in range(3)] == [b"0", b"1", b"2"]
        assert (got.stats.delivered, got.stats.taken, got.stats.dropped) == (10, 3, 7)
        assert client.stats.dropped == 7


async def test_drop_oldest_keeps_what_came_last_and_counts() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(*numbered(*range(10)))
        await answer_ping(connection, 2)

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t", pending_messages=3, overflow="drop_oldest")
        await client.flush()
        assert [(await got.next(5)).payload for _ in range(3)] == [b"7", b"8", b"9"]
        assert (got.stats.delivered, got.stats.dropped) == (10, 7)


async def test_bytes_are_a_limit_of_their_own() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(
            message(1, "t", bytes(400)), message(1, "t", bytes(400)), message(1, "t", bytes(2000)),
            message(1, "t", bytes(400)),
        )  # fmt: skip
        await answer_ping(connection, 2)

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t", pending_bytes=1000, overflow="drop_oldest")
        await client.flush()
        # The one that could never fit is dropped itself; the last pushes out the first.
        assert got.pending[0] == 2
        assert 800 < got.pending[1] <= 1000
        assert got.stats.dropped == 2


async def test_overflow_as_an_error_is_raised_and_iterating_may_go_on() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(*numbered(*range(5)))
        await answer_ping(connection, 2)

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t", pending_messages=2, overflow="error")
        await client.flush()
        with pytest.raises(fanlight.SubscriptionOverflow) as raised:
            await got.next(5)
        assert raised.value.details["dropped"] == 3
        assert [(await got.next(5)).payload for _ in range(2)] == [b"0", b"1"]


async def test_pause_stops_reading_and_loses_nothing() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        everything = b"".join(message(1, "t", number.to_bytes(4, "big") + bytes(996)) for number in range(count))
        connection.writer.write(everything)
        await connection.writer.drain()  # only when the client has read nearly all of it

    count = 20_000  # 20 MB: more than the socket's buffers hold
    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t", pending_messages=50)
        for number in range(count):
            assert int.from_bytes((await got.next(5)).payload[:4], "big") == number
            assert got.pending[0] <= 50
        assert got.stats.dropped == 0


async def test_while_paused_an_answer_still_arrives() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(*numbered(*range(12)))
        await answer_ping(connection, 2)

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t", pending_messages=10)
        await got.next(5)
        await client.flush()  # its PONG lies behind more messages than the queue has room for
        assert 10 <= got.pending[0] < 20


async def test_an_answer_that_cannot_arrive_is_an_error_and_no_deadlock() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(*numbered(*range(50)))
        await answer_ping(connection, 2)
        await connection.say(receipt(3, 7))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t", pending_messages=10)
        with pytest.raises(fanlight.ReadingPaused, match="credit="):
            await client.flush()
        assert got.pending[0] == 20
        assert [int((await got.next(5)).payload) for _ in range(50)] == list(range(50))
        assert await client.publish("t", receipt=True) == 7  # and the connection has come to no harm


async def test_what_was_held_back_is_handed_out_when_the_connection_breaks() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(*numbered(*range(50)))
        await broken.wait()
        connection.hang_up()

    broken = asyncio.Event()
    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=False) as client:
        got = await client.subscribe("t", pending_messages=10)
        assert (await got.next(5)).payload == b"0"
        broken.set()
        with pytest.raises(fanlight.ConnectionLost):
            async for _ in got:
                pass
        assert got.stats.taken == 50


async def test_leaving_a_full_subscription_lets_the_others_go_on() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        for request in (1, 2):
            await connection.frame()
            await connection.say(ok(request))
        await connection.say(*numbered(*range(500)))
        await connection.expect(frame(fixint(8), fixint(3), fixint(1)))
        await connection.say(ok(3), message(2, "u", b"through"))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        full = client.subscribe("t", pending_messages=5)
        async with full:
            other = await client.subscribe("u")
            await full.next(5)
        assert (await other.next(5)).payload == b"through"
        assert full.stats.delivered == 500
        assert full.stats.taken + full.pending[0] + client.stats.unclaimed == 500


async def test_credit_is_given_back_in_halves_as_messages_are_taken() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(subscribe(1, 1, "t", credit=fixint(4)))
        await connection.say(ok(1), *numbered(0, 1, 2, 3))
        await connection.expect(frame(fixint(10), fixint(1), fixint(2)))
        await connection.say(*numbered(4, 5))
        await connection.expect(frame(fixint(10), fixint(1), fixint(2)))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t", credit=4)
        assert [int((await got.next(5)).payload) for _ in range(5)] == list(range(5))


async def test_what_is_queued_can_be_taken_after_unsubscribing() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(*numbered(0, 1, 2))
        await connection.expect(frame(fixint(8), fixint(2), fixint(1)))
        await connection.say(frame(fixint(7), fixint(2), options(delivered=fixint(3), dropped=fixint(9))))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t")
        await got.unsubscribe()
        assert [message.payload async for message in got] == [b"0", b"1", b"2"]
        assert got.stats.dropped_by_broker == 9
        assert client.subscriptions == ()
        with pytest.raises(fanlight.SubscriptionEnded):
            await got.next()


async def test_several_consumers_share_a_subscription() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(*numbered(*range(30)))
        await connection.frame()
        await connection.say(ok(2))

    async def take(got: fanlight.Subscription) -> None:
        async for each in got:
            taken.append(int(each.payload))
            if len(taken) == 30:
                all_taken.set()

    taken: list[int] = []
    all_taken = asyncio.Event()
    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t")
        consumers = [asyncio.create_task(take(got)) for _ in range(3)]
        await asyncio.wait_for(all_taken.wait(), 60)
        await got.unsubscribe()
        await asyncio.gather(*consumers)
        assert taken == list(range(30))


async def test_a_consumer_that_gives_up_leaves_the_message_to_the_next() -> None:
    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await go.wait()
        await connection.say(*numbered(1))

    go = asyncio.Event()
    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t")
        with pytest.raises(fanlight.MessageTimeout, match="no message on 't' within"):
            await got.next(0.01)
        waiting = asyncio.create_task(got.next())
        patient = asyncio.create_task(got.next(5))
        await asyncio.sleep(0)
        waiting.cancel()
        go.set()
        assert (await patient).payload == b"1"
        assert waiting.cancelled()


async def test_a_consumer_that_was_cancelled_just_before_the_end_is_cancelled() -> None:
    """Both in one turn of the loop: the end of the subscription passes over it before it hears of its cancellation."""
    async with listening() as peer, conversing(peer, subscribed), connect(peer.url) as client:
        got = await client.subscribe("t")
        waiting = asyncio.create_task(got.next())
        await asyncio.sleep(0)
        waiting.cancel()
        got.finish(fanlight.SubscriptionEnded("over", code="after"))
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_a_subscription_that_was_not_begun_says_so() -> None:
    async with listening() as peer, conversing(peer, lambda peer: greet(peer)), connect(peer.url) as client:
        with pytest.raises(fanlight.FanlightError, match="async with"):
            await client.subscribe("t").next()


async def greet(peer: Peer) -> None:
    await peer.greeted()


@pytest.mark.parametrize(
    "wrong",
    [{"overflow": "forget"}, {"pending_messages": 0}, {"pending_bytes": 0}, {"credit": 0}, {"after": 0},
     {"syntax": "stomp"}],
    ids=str,
)  # fmt: skip
async def test_options_that_make_no_sense_are_refused_at_once(wrong: dict[str, object]) -> None:
    async with listening() as peer, conversing(peer, greet), connect(peer.url) as client:
        with pytest.raises(ValueError, match=r"\w"):
            client.subscribe("t", **wrong)  # type: ignore[arg-type]


async def test_a_publish_frame_is_not_what_a_client_gets() -> None:
    """A frame that only clients send is no answer to anything, and passed over."""

    async def script(peer: Peer) -> None:
        connection = await subscribed(peer)
        await connection.say(frame(fixint(3), b"\xc0", text("t"), octets(b"")), *numbered(1))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        got = await client.subscribe("t")
        assert (await got.next(5)).payload == b"1"
