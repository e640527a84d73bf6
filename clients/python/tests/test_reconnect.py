"""Losing a connection and making another: what is made again, what is kept, what is told to whom."""

import asyncio
import socket
from typing import Any

import pytest

import fanlight

from .frame_bytes import fixint, frame, octets, text
from .peer import Connection, Peer, connect, conversing, error, goodbye, listening, message, ok, pong
from .test_client import subscribe

NIL = b"\xc0"
QUICK = fanlight.Backoff(initial=0.001, maximum=0.01)


def published(topic: str, payload: bytes) -> bytes:
    return frame(fixint(3), NIL, text(topic), octets(payload))


async def test_subscriptions_are_made_again_and_iteration_goes_on() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        await first.expect(subscribe(1, 1, "a.*"))
        await first.say(ok(1))
        await first.expect(subscribe(2, 2, "b/+", syntax=fixint(1), group=text("g")))
        await first.say(ok(2), message(1, "a.x", b"1"))
        first.hang_up()
        second = await peer.greeted()
        await second.expect(subscribe(3, 1, "a.*"))
        await second.expect(subscribe(4, 2, "b/+", syntax=fixint(1), group=text("g")))
        await second.say(ok(3), ok(4), message(1, "a.x", b"2"))

    lost: list[fanlight.FanlightError] = []
    again: asyncio.Queue[fanlight.Client] = asyncio.Queue()
    async with (
        listening() as peer,
        conversing(peer, script),
        connect(peer.url, reconnect=QUICK, on_disconnect=lost.append, on_reconnect=again.put_nowait) as client,
    ):
        a = await client.subscribe("a.*")
        await client.subscribe("b/+", syntax="mqtt", group="g")
        assert [(await a.next(5)).payload for _ in range(2)] == [b"1", b"2"]
        assert await asyncio.wait_for(again.get(), 60) is client
        assert [error.code for error in lost] == ["connection_lost"]
        assert client.stats.reconnects == 1


async def test_what_was_unsent_is_kept_in_order_behind_the_subscriptions() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        await first.expect(subscribe(1, 1, "t"))
        await first.say(ok(1))
        first.hang_up()
        second = await peer.greeted()
        await second.expect(subscribe(2, 1, "t"))
        for number in range(50):
            await second.expect(published("t", b"%d" % number))
        await second.say(ok(2))

    async with listening() as peer, conversing(peer, script):
        gone = asyncio.Event()
        async with connect(peer.url, reconnect=QUICK, on_disconnect=lambda _: gone.set()) as client:
            await client.subscribe("t")
            await gone.wait()
            for number in range(50):
                await client.publish("t", b"%d" % number)
            while client.stats.reconnects == 0:
                await asyncio.sleep(0)
            assert client.stats.unsent_kept == 50
            assert client.stats.unsent_lost == client.stats.unconfirmed == 0


async def test_what_was_handed_over_and_not_confirmed_is_counted_and_not_sent_twice() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        for _ in range(3):
            await first.expect(published("t", b""))
        await first.expect(frame(fixint(11), fixint(1)))
        await first.say(pong(1))
        for _ in range(4):
            await first.expect(published("t", b""))
        first.hang_up()
        second = await peer.greeted()
        await second.expect(frame(fixint(14), text("normal")))

    reconnected = asyncio.Event()
    async with (
        listening() as peer,
        conversing(peer, script),
        connect(peer.url, reconnect=QUICK, on_reconnect=lambda _: reconnected.set()) as client,
    ):
        for _ in range(3):
            await client.publish("t")
        await client.flush()
        for _ in range(4):
            await client.publish("t")
        await asyncio.wait_for(reconnected.wait(), 60)
        assert client.stats.unconfirmed == 4
        assert client.stats.unsent_kept == 0


async def test_whoever_awaits_an_answer_is_told_that_the_connection_was_lost() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        await first.frame()
        first.hang_up()
        second = await peer.greeted()
        # The publish is not sent again behind its caller's back: the next frame is what he sends after that.
        await second.expect(frame(fixint(3), fixint(2), text("again"), octets(b"")))
        await second.say(frame(fixint(5), fixint(2), fixint(1)))

    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=QUICK) as client:
        with pytest.raises(fanlight.ConnectionLost):
            await client.publish("once", receipt=True)
        assert await client.publish("again", receipt=True) == 1


async def test_a_goodbye_names_its_reason_and_the_client_comes_back() -> None:
    async def script(peer: Peer) -> None:
        await (await peer.greeted()).say(goodbye("shutting_down"))
        await peer.greeted()

    again = asyncio.Event()
    reasons: asyncio.Queue[fanlight.FanlightError] = asyncio.Queue()
    async with (
        listening() as peer,
        conversing(peer, script),
        connect(peer.url, reconnect=QUICK, on_disconnect=reasons.put_nowait, on_reconnect=lambda _: again.set()),
    ):
        assert (await asyncio.wait_for(reasons.get(), 60)).code == "shutting_down"
        await asyncio.wait_for(again.wait(), 60)


@pytest.mark.parametrize("reason", ["authentication_failed", "not_permitted", "unsupported_version"])
async def test_a_refusal_for_good_is_not_tried_again(reason: str) -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        await first.expect(subscribe(1, 1, "t"))
        await first.say(ok(1), error(None, reason, "go away"), goodbye(reason))
        await first.at_end()

    async with listening() as peer, conversing(peer, script):
        async with connect(peer.url, reconnect=QUICK) as client:
            listened = await client.subscribe("t")
            with pytest.raises(fanlight.ConnectionLost) as raised:
                await listened.next(5)
            assert raised.value.code == reason
            assert client.closed
            with pytest.raises(fanlight.ConnectionLost):
                await client.publish("t")
        assert peer.connections.empty()


async def test_a_refusal_during_a_later_handshake_ends_the_subscriptions_with_it() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        await first.frame()
        await first.say(ok(1))
        first.hang_up()
        second = await peer.connection()
        await second.frame()
        await second.say(error(None, "authentication_failed"), goodbye("authentication_failed"))

    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=QUICK) as client:
        listened = await client.subscribe("t")
        with pytest.raises(fanlight.AuthenticationFailed):
            async for _ in listened:
                pass


async def test_without_reconnect_a_loss_is_the_end_and_what_was_unsent_is_counted() -> None:
    async def script(peer: Peer) -> None:
        (await peer.greeted()).hang_up()

    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=False) as client:
        with pytest.raises(fanlight.ConnectionLost):
            await publish_each_turn(client)
        stats = client.stats
        assert stats.published == stats.unsent_lost + stats.unconfirmed > 0


async def publish_each_turn(client: fanlight.Client) -> None:
    while True:
        await client.publish("t", bytes(100))
        await asyncio.sleep(0)


async def test_the_attempts_of_a_backoff_are_the_last_word() -> None:
    async with listening() as peer:
        gone = asyncio.Event()
        backoff = fanlight.Backoff(initial=0.001, maximum=0.002, attempts=3)
        client, connection = await both_ends(peer, reconnect=backoff, on_disconnect=lambda _: gone.set())
        listened = asyncio.create_task(waiting(client))
        await connection.frame()
        await connection.say(ok(1))
    connection.hang_up()
    with pytest.raises(fanlight.ConnectError):
        await asyncio.wait_for(listened, 60)
    assert gone.is_set()
    assert client.closed
    await client.close()


async def waiting(client: fanlight.Client) -> Any:
    async with client.subscribe("t") as subscription:
        return await subscription.next()


async def test_the_first_connection_may_be_tried_again_too() -> None:
    async with listening() as peer:
        port = int(peer.url.rpartition(":")[2])
    connecting = asyncio.ensure_future(connect(peer.url, retry_first_connect=True, reconnect=QUICK).open())
    await asyncio.sleep(0)

    async def script(peer: Peer) -> None:
        await peer.greeted()

    async with listening(port) as peer, conversing(peer, script):
        client = await asyncio.wait_for(connecting, 60)
        assert client.connected
        await client.close()


async def test_a_subscription_with_an_end_asks_only_for_the_rest() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        await first.expect(subscribe(1, 1, "t", after=fixint(5)))
        await first.say(ok(1), message(1, "t", b""), message(1, "t", b""))
        first.hang_up()
        second = await peer.greeted()
        await second.expect(subscribe(2, 1, "t", after=fixint(3)))
        await second.say(ok(2), *[message(1, "t", b"")] * 3)
        await second.say(frame(fixint(9), fixint(1), text("after"), fixint(3), fixint(0)))

    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=QUICK) as client:
        listened = await client.subscribe("t", after=5)
        assert len([message async for message in listened]) == 5


async def test_a_dead_peer_is_noticed_by_its_silence() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        await first.expect(frame(fixint(11), fixint(0)))  # and no PONG
        await peer.greeted()

    again = asyncio.Event()
    reasons: asyncio.Queue[fanlight.FanlightError] = asyncio.Queue()
    async with (
        listening() as peer,
        conversing(peer, script),
        connect(
            peer.url,
            ping_interval=0.05,
            reconnect=QUICK,
            on_disconnect=reasons.put_nowait,
            on_reconnect=lambda _: again.set(),
        ),
    ):
        assert (await asyncio.wait_for(reasons.get(), 60)).code == "timeout"
        await asyncio.wait_for(again.wait(), 60)


async def test_a_peer_that_answers_is_kept_and_its_answer_confirms() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(published("t", b""))
        for _ in range(3):
            await connection.expect(frame(fixint(11), fixint(0)))
            await connection.say(pong(0))
        connection.hang_up()

    gone = asyncio.Event()
    async with (
        listening() as peer,
        conversing(peer, script),
        connect(peer.url, ping_interval=0.02, reconnect=False, on_disconnect=lambda _: gone.set()) as client,
    ):
        await client.publish("t")
        await asyncio.wait_for(gone.wait(), 60)
        assert client.stats.unconfirmed == 0


async def test_a_malformed_frame_costs_the_connection_and_not_the_client() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        await first.say(b"\x00\x00\x00\x00")
        await peer.greeted()

    again = asyncio.Event()
    reasons: asyncio.Queue[fanlight.FanlightError] = asyncio.Queue()
    async with (
        listening() as peer,
        conversing(peer, script),
        connect(peer.url, reconnect=QUICK, on_disconnect=reasons.put_nowait, on_reconnect=lambda _: again.set()),
    ):
        assert (await asyncio.wait_for(reasons.get(), 60)).code == "protocol_error"
        await asyncio.wait_for(again.wait(), 60)


async def test_closing_while_reconnecting_leaves_nothing_running() -> None:
    async with listening() as peer:
        gone = asyncio.Event()
        client, connection = await both_ends(peer, on_disconnect=lambda _: gone.set())
        connection.hang_up()
    await asyncio.wait_for(gone.wait(), 60)
    await client.publish("t")
    await client.close()
    assert client.stats.unsent_lost == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def both_ends(peer: Peer, **wanted: Any) -> tuple[fanlight.Client, Connection]:
    opening = asyncio.ensure_future(connect(peer.url, **wanted).open())
    connection = await peer.greeted()
    return await opening, connection


async def test_the_next_of_several_servers_is_tried_when_one_is_away() -> None:
    async def script(peer: Peer) -> None:
        first = await peer.greeted()
        first.hang_up()
        await peer.greeted()

    with socket.create_server(("127.0.0.1", 0)) as taken:
        away = taken.getsockname()[1]
    again: asyncio.Queue[fanlight.Client] = asyncio.Queue()
    async with listening() as peer, conversing(peer, script):
        both = peer.url.replace("127.0.0.1:", f"127.0.0.1:{away},127.0.0.1:")
        async with connect(both, reconnect=QUICK, on_reconnect=again.put_nowait) as client:
            await asyncio.wait_for(again.get(), 60)
            assert str(client.address) == peer.url
    with pytest.raises(fanlight.ConnectError, match=str(away)):
        await fanlight.connect(f"fanlight://127.0.0.1:{away},127.0.0.1:{away}")
