"""Hostile input over real sockets. Whatever one client does, a well-behaved pair beside it gets all its messages.

Each test runs its attack inside `calm`, which publishes and receives before, while and after it. Attacks end in an
ERROR, a GOODBYE or a close, within the limits of the broker that they are run against.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgpack  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.conftest import StartBroker, TestBroker
from tests.system.views import KIB, MIB, eventually, logged, logged_once_it_is, resident, stats
from tests.system.wire import (
    SMALL_BUFFER,
    WAIT_SECONDS,
    Peer,
    Peers,
    Type,
    frame,
    hello,
    number_of,
    numbered,
    ping,
    publish,
    subscribe,
    unsubscribe,
)


@pytest.fixture(scope="module")
def broker(start_module_broker: StartBroker) -> TestBroker:
    """One for all attacks: what one leaves behind would show in the next."""
    return start_module_broker(
        handshake_seconds_max=0.5, linger_seconds_max=0.5, pause_seconds_max=1,
        subscriptions_per_client_max=1_000, password_threads=1,
    )


@asynccontextmanager
async def calm(broker: TestBroker) -> AsyncIterator[None]:
    """A publisher and a subscriber that go on all the while: when a message has arrived comes the next."""
    done = 0
    stop = False
    async with await Peer.connect(broker.port) as reader, await Peer.connect(broker.port) as publisher:
        await reader.subscribe(1, "calm.*", no_echo=True)

        async def run() -> None:
            nonlocal done
            while not stop or done < 10:
                await publisher.send(publish(f"calm.{done % 3}", done.to_bytes(8, "big")))
                assert number_of((await next_message(reader, publisher)).pop()) == done
                done += 1
                await asyncio.sleep(0.002)  # often enough: without a pause it takes a whole processor

        running = asyncio.create_task(run())
        try:
            yield
        finally:
            stop = True
            await running


async def next_message(reader: Peer, publisher: Peer) -> list[Any]:
    """The next MESSAGE, as its fields; both answer the PINGs that a broker with a short idle time sends."""
    while True:
        got = await reader.frame()
        if got[0] == Type.MESSAGE:
            # The publisher hears nothing but PINGs, and what it sends shows that it is there.
            return got
        assert got[0] == Type.PING
        await reader.send(frame(Type.PONG, got[1]))


async def send_for_ever(peer: Peer, octets: bytes) -> None:
    while True:
        await peer.send(octets)


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


MALFORMED = {
    "an empty frame": framed(b""),
    "no array": framed(b"\xc0"),
    "an empty array": framed(b"\x90"),
    "a type that is no integer": framed(msgpack.packb(["type"])),
    "bytes left over": framed(msgpack.packb([11, 1]) + b"\xc0"),
    "an array that ends too soon": framed(b"\x95\x0b"),
    "a str that ends too soon": framed(b"\x92\x0b\xdb\xff\xff\xff\xff"),
    "a map of four thousand million": framed(b"\x92\x01\xdf\xff\xff\xff\xff"),
    "nested nine levels deep": framed(b"\x92\x0b" + nested(8)),
    "nested a thousand levels deep": framed(b"\x92\x0b" + nested(1000)),
    "an extension type": framed(b"\x92\x0b\xd4\x01\x01"),
    "an octet that msgpack never uses": framed(b"\x92\x0b\xc1"),
    "invalid UTF-8": framed(b"\x94\x03\xc0\xa1\xff\xc4\x00"),
    "a publish without a payload": frame(Type.PUBLISH, None, "a"),
    "a header that is reserved": publish("a", b"", None, {"$x": 1}),
    "a second hello": hello(),
    "a frame of the broker's": frame(Type.PUBLISH, True, "a", b""),
    "a subscription of the wrong type": frame(Type.SUBSCRIBE, 1, "one", "a"),
}


@pytest.mark.parametrize("octets", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_frame_costs_its_own_connection_and_no_other(broker: TestBroker, octets: bytes) -> None:
    async with calm(broker), await Peer.connect(broker.port) as bad:
        await bad.subscribe(1, "a")
        await bad.send(octets, ping(1), publish("a"))  # nothing behind it is processed
        *frames, error, goodbye = await bad.rest()
        assert not frames
        assert error[0] == Type.ERROR
        assert error[2] == "protocol_error"
        assert error[3]
        assert goodbye[:2] == [Type.GOODBYE, "protocol_error"]


async def test_a_frame_that_is_too_large_is_refused_by_its_length_alone(broker: TestBroker) -> None:
    async with calm(broker), await Peer.connect(broker.port) as bad:
        await bad.send((MIB + 1).to_bytes(4, "big"))
        error, goodbye = await bad.rest()
        assert error[2] == "frame_too_large"
        assert error[4] == {"size": MIB + 1, "limit": MIB}
        assert goodbye[1] == "frame_too_large"


async def test_who_sends_too_large_a_frame_hears_why_though_it_is_still_sending(broker: TestBroker) -> None:
    async with calm(broker), await Peer.connect(broker.port) as bad:
        sending = asyncio.create_task(send_for_ever(bad, framed(bytes(8 * MIB))))
        got = await bad.until(Type.GOODBYE)
        assert [each[0] for each in got] == [Type.ERROR, Type.GOODBYE]
        # After linger_seconds_max the broker has listened long enough.
        await asyncio.wait({sending}, timeout=WAIT_SECONDS)
        assert isinstance(sending.exception(), ConnectionError)
        assert got[0][2] == "frame_too_large"


async def test_before_the_handshake_a_frame_may_have_4096_bytes(broker: TestBroker) -> None:
    async with calm(broker), await Peer.open(broker.port) as bad:
        await bad.send(hello(client="x", agent="y", password="p" * 5_000))
        error, goodbye = await bad.rest()
        assert error[2] == goodbye[1] == "frame_too_large"
    async with calm(broker), await Peer.open(broker.port) as bad:
        await bad.send((0xFFFFFFFF).to_bytes(4, "big"), bytes(100_000))
        assert (await bad.rest())[-1][1] == "frame_too_large"


@pytest.mark.parametrize("first", [publish("a", b"x"), subscribe(1, 1, "a"), ping(1), frame(99)])
async def test_before_hello_nothing_else_is_allowed(broker: TestBroker, first: bytes) -> None:
    async with calm(broker), await Peer.open(broker.port) as bad:
        await bad.send(first)
        assert (await bad.rest())[-1][0] == Type.GOODBYE


async def test_random_octets_end_in_order_or_wait_for_more(broker: TestBroker) -> None:
    chance = random.Random(7)
    async with calm(broker):
        for _ in range(60):
            async with await Peer.connect(broker.port) as bad:
                octets = chance.randbytes(chance.randrange(1, 3_000))
                if chance.random() < 0.7:  # as the body of a frame, of a type that is known
                    octets = framed(bytes([0x90 | chance.randrange(1, 16), chance.randrange(1, 15)]) + octets)
                await bad.send(octets)
                bad.socket.shutdown(1)
                await bad.ended()
    assert not logged(broker, "internal_error")


async def test_a_truncated_frame_is_waited_for_and_forgotten_with_its_connection(broker: TestBroker) -> None:
    whole = publish("calm.x", bytes(900 * KIB))
    async with calm(broker):
        before = (await stats(broker))["inbox_bytes"]
        async with Peers() as peers:
            for cut in (1, 3, 4, 5, 6, 100, 100_000, len(whole) - 1):
                peers.append(await Peer.connect(broker.port))
                await peers[-1].send(whole[:cut])
            await eventually(broker, lambda now: now["inbox_bytes"] > before + 900 * KIB)
        await eventually(broker, lambda now: now["inbox_bytes"] < before + 100 * KIB and now["connections"] == 2)


async def test_an_http_request_to_the_native_port_is_answered_in_http(broker: TestBroker) -> None:
    async with calm(broker), await Peer.open(broker.port) as lost:
        await lost.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while octets := await lost._receive():
            answer += octets
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"this is HTTP; the broker speaks it on port" in answer


async def test_native_frames_to_the_http_port_are_answered_in_the_native_protocol(broker: TestBroker) -> None:
    reader, writer = await asyncio.open_connection(*broker.addresses["http"])
    async with calm(broker):
        writer.write(hello() + publish("a", bytes(100_000)))
        async with asyncio.timeout(WAIT_SECONDS):
            answer = await reader.read()
        writer.close()
    assert b"protocol_error" in answer
    assert b"this is Fanlight's native protocol; the broker speaks it on port %d" % broker.port in answer


async def test_a_slow_loris_is_gone_when_its_handshake_time_is_over(broker: TestBroker) -> None:
    async with calm(broker), Peers() as loris:
        for _ in range(20):
            loris.append(await Peer.open(broker.port))
        trickle = iter(hello(client="slow"))
        gone: set[int] = set()

        async def drip(index: int) -> None:
            goodbye = await loris[index].rest()
            assert [each[:2] for each in goodbye] == [[Type.GOODBYE, "handshake_timeout"]]
            gone.add(index)

        waiting = asyncio.gather(*map(drip, range(20)))
        while not waiting.done():
            octet = next(trickle, None)
            if octet is not None:
                for index in set(range(20)) - gone:
                    await loris[index].send(bytes([octet]))
            await asyncio.wait({waiting}, timeout=0.1)  # one byte an interval is what a slow loris is
        await waiting


async def test_half_open_connections_are_pinged_and_closed(start_broker: StartBroker) -> None:
    broker = start_broker(idle_seconds_max=5)  # half of it is what the others here have to answer, on any machine
    async with calm(broker), await Peer.connect(broker.port) as dead, await Peer.connect(broker.port) as alive:
        frames = asyncio.create_task(dead.rest())
        pongs = 0
        while not frames.done():
            got = await alive.expect(Type.PING)
            await alive.send(frame(Type.PONG, got[1]))
            pongs += 1
        kinds = [each[0] for each in await frames]
        assert kinds == [Type.PING, Type.GOODBYE]
        assert (await frames)[-1][1] == "idle_timeout"
        assert pongs >= 1
        await alive.settle()


async def test_a_flood_of_subscribes_stops_at_the_limit(broker: TestBroker) -> None:
    count, most = 3_000, 1_000
    async with calm(broker), await Peer.connect(broker.port) as greedy:
        sending = asyncio.create_task(
            greedy.send(*(subscribe(n + 1, n, f"greed.{n % 97}.*.{n}.#") for n in range(count)), ping(1))
        )
        *answers, _ = await greedy.until(Type.PONG, 1)
        await sending
        assert [each[1] for each in answers] == list(range(1, count + 1))
        assert [each[0] for each in answers] == [Type.OK] * most + [Type.ERROR] * (count - most)
        assert {each[2] for each in answers[most:]} == {"limit_exceeded"}
        assert answers[-1][4] == {"limit": "subscriptions_per_client_max", "value": most}
        await greedy.send(unsubscribe(None, 7))
        await greedy.subscribe(7_000, "room.again")
        assert len(logged(broker, "request_refused")) <= 5  # once a connection, not 2,000 times
    await eventually(broker, lambda now: now["subscriptions"] == 0)


@pytest.mark.parametrize(
    "question",
    [publish("nobody", b"", 1), ping(1), unsubscribe(1, 99), frame(99), subscribe(1, 1, "a/#/b", syntax=1)],
    ids=["receipts", "pings", "errors", "unknown types", "invalid filters"],
)
async def test_who_asks_and_never_reads_is_not_read_from_and_then_cut_off(
    start_broker: StartBroker, question: bytes
) -> None:
    # Refusals have a rate of their own, at which they take long to fill an outbox; and it is cut off after a second.
    broker = start_broker(refusals_per_second_max=0, pause_seconds_max=1)
    before = resident(broker)
    bad = await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER)
    async with calm(broker), bad:
        most = 0

        asking = asyncio.create_task(send_for_ever(bad, question * 20_000))
        while not asking.done():
            most = max(most, (await stats(broker))["outbox_bytes"])
            await asyncio.sleep(0.05)  # that looking costs less than what is looked at
        assert isinstance(asking.exception(), ConnectionError)
        assert most < 2 * MIB
    number = bad.welcome["connection"]
    await logged_once_it_is(broker, "slow_consumer_disconnected", connection=number)
    assert resident(broker) - before < 32 * MIB


async def test_many_connects_and_disconnects_leave_nothing_behind(broker: TestBroker) -> None:
    async def visit(number: int) -> None:
        async with await Peer.connect(broker.port, client=f"visitor-{number}") as peer:
            await peer.subscribe(1, f"visit.{number}.#")
            await peer.subscribe(2, f"visit.{number % 10}.*", group="visitors")
            await peer.send(publish(f"visit.{number}.x.y"))
            if number % 3 == 0:
                await peer.send(frame(Type.GOODBYE, "normal"))
                await peer.ended()
            elif number % 3 == 1:
                peer.reset()

    async def wave() -> None:
        for start in range(0, 600, 50):
            await asyncio.gather(*(visit(n) for n in range(start, start + 50)))
        await eventually(broker, lambda now: now["connections"] == 2 and now["subscriptions"] == 1)

    async with calm(broker):
        await wave()
        before = resident(broker)
        for _ in range(2):
            await wave()
        seen = await stats(broker)
        assert seen["subscribes"] - seen["unsubscribes"] == seen["subscriptions"]
        assert seen["connections_accepted"] - seen["connections_closed"] == 2
        assert seen["outbox_bytes"] < 64 * KIB
        assert resident(broker) - before < 4 * MIB


async def test_strangers_that_come_and_go_without_a_word_are_forgotten_at_once(start_broker: StartBroker) -> None:
    """With a limit, most would be closed to when they are accepted, and so would the requests of this test."""
    broker = start_broker(handshake_seconds_max=300, connections_without_login_per_second_max=0)
    for _ in range(500):
        (await Peer.open(broker.port)).close()
    await eventually(broker, lambda now: now["connections_closed"] >= 500)
    before = resident(broker)
    for _ in range(6):
        for _ in range(1_000):
            (await Peer.open(broker.port)).close()
        await eventually(broker, lambda now: now["connections_closed"] == now["connections_accepted"])
    assert resident(broker) - before < 6 * MIB


async def test_subscribers_that_vanish_in_the_middle_of_a_fan_out_are_skipped(broker: TestBroker) -> None:
    count = 4_000
    async with calm(broker), Peers() as vanishing, await Peer.connect(broker.port) as publisher:
        for _ in range(30):
            vanishing.append(await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER, slow_policy="drop_newest"))
            await vanishing[-1].subscribe(1, "fan")
        async with await Peer.connect(broker.port) as reader:
            await reader.subscribe(1, "fan")
            sending = asyncio.create_task(
                publisher.send(*(publish("fan", payload) for payload in numbered(range(count), 1_000)))
            )
            for number in range(count):
                assert number_of((await reader.message()).payload) == number
                if number % 100 == 0 and vanishing:
                    victim = vanishing.pop()
                    victim.reset() if number % 200 else victim.close()
            await sending


async def test_too_many_connections_are_told_so(start_broker: StartBroker) -> None:
    broker = start_broker(connections_max=20, linger_seconds_max=0.5)
    async with calm(broker), Peers() as peers:
        for _ in range(18):
            peers.append(await Peer.connect(broker.port))
        for _ in range(200):
            async with await Peer.open(broker.port) as refused:
                await refused.send(hello())
                got = await refused.remains()
                assert [each[:2] for each in got] == [[Type.GOODBYE, "too_many_connections"]]
        assert (await stats(broker))["connections_refused"] == 200
        peers.pop().close()
        await eventually(broker, lambda now: now["connections"] == 19)
        peers.append(await Peer.connect(broker.port))
        for peer in peers:
            await peer.settle()
    assert len(await logged_once_it_is(broker, "connection_refused")) == 1


async def test_one_address_cannot_take_all_connections(start_broker: StartBroker) -> None:
    broker = start_broker(connections_per_address_max=5)
    async with Peers() as peers:
        for _ in range(5):
            peers.append(await Peer.connect(broker.port))
        async with await Peer.open(broker.port) as refused:
            assert (await refused.rest())[-1][:2] == [Type.GOODBYE, "too_many_connections"]
        async with await Peer.open(broker.port, source="127.0.0.2") as other:
            await other.send(hello())
            await other.expect(Type.WELCOME)


async def test_an_address_that_never_logs_in_is_closed_to_and_nobody_else(start_broker: StartBroker) -> None:
    broker = start_broker(connections_without_login_per_second_max=1)  # 30 s are owed: this takes less
    here = "127.0.0.2"
    async with calm(broker), await Peer.open(broker.port, source=here) as inside:
        await inside.send(hello())
        await inside.expect(Type.WELCOME)
        strangers = [await Peer.open(broker.port, source=here) for _ in range(40)]
        await eventually(broker, lambda now: now["connections_accepted"] >= 40)
        for stranger in strangers:
            stranger.close()
        await eventually(broker, lambda now: now["handshakes_failed"] == 40)
        for port in (broker.port, broker.port, broker.mqtt_port, broker.addresses["http"][1]):
            async with await Peer.open(port, source=here) as refused:
                assert await refused.remains() == []
        await inside.settle()
        assert (await stats(broker))["connections_refused_strangers"] == 4
        async with await Peer.open(broker.port, source="127.0.0.3") as other:
            await other.send(hello())
            await other.expect(Type.WELCOME)
    assert len(await logged_once_it_is(broker, "strangers_refused", address=here)) == 1


async def test_a_flood_of_wrong_passwords_keeps_nobody_out_that_is_in(start_broker: StartBroker) -> None:
    broker = start_broker(environment={"FANLIGHT_PASSWORD": "sesame"}, password_threads=1, password_queue_max=20)
    async with await Peer.connect(broker.port, password="sesame") as reader, await Peer.connect(
        broker.port, password="sesame"
    ) as publisher:
        await reader.subscribe(1, "calm")

        async def guess(number: int) -> str:
            async with await Peer.open(broker.port) as bad:
                await bad.send(hello(user="root", password=f"{number}{os.getpid()}"))
                got = await bad.remains()
                assert [each[0] for each in got] == [Type.ERROR, Type.GOODBYE]
                return str(got[0][2])

        guessing = asyncio.gather(*map(guess, range(100)))
        done = 0
        while not guessing.done() or done < 100:
            assert await publisher.publish("calm", done.to_bytes(8, "big")) == 1
            assert number_of((await reader.message()).payload) == done
            done += 1
        assert set(await guessing) == {"authentication_failed"}
        # Somebody who knows it comes in again at once: a right password is remembered.
        async with await Peer.connect(broker.port, password="sesame"):
            pass
