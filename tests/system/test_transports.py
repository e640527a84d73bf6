"""The three ways of a connection's bytes, on the two event loops, and the two families of addresses.

Plain TCP is read and written by the poller, or read by the loop's transport and written with sendmsg(2) past it; TLS
goes through the transport altogether (test_tls_transport.py). All must send the same bytes, to quick readers and to
slow ones, so a listener is run here in the test's own process, with each way forced.
"""

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import pytest
import uvloop

from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits, SlowPolicy
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.listener import Listener
from fanlight_broker.net.poller import Poller
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wire.outbox import Outbox
from tests.conftest import StartBroker
from tests.system.wire import (
    SMALL_BUFFER,
    WAIT_SECONDS,
    Peer,
    Type,
    frame,
    number_of,
    numbered,
    ping,
    publish,
    unsubscribe,
)

KIB = 1024
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
Loop = Callable[[], asyncio.AbstractEventLoop]
T = TypeVar("T")


def give_up(outbox: Outbox, error: Exception) -> None:
    raise error


@asynccontextmanager
async def listener(way: str, **limits: Any) -> AsyncIterator[tuple[int, Broker]]:
    """A broker behind one listener; its port."""
    loop = asyncio.get_running_loop()
    broker = Broker(Limits(**limits), lambda: flusher.schedule(loop), loop.call_soon)
    flusher = Flusher(broker.ledger, give_up)
    poller = Poller(loop, flusher) if way == "poller" else None
    authenticator = PasswordAuthenticator(Credentials())
    serving = Listener(
        "native", broker, NativeConnection, authenticator, clock=monotonic, shared=ReceiveBuffer(),
        direct=way != "transport", poller=poller,
    )
    _, port = await serving.start("127.0.0.1", 0)
    try:
        yield port, broker
    finally:
        assert await serving.drain(20, "the test is over") == 0
        await authenticator.close()
        if poller is not None:
            assert poller.count == 0
            poller.close()
    assert broker.ledger.used == 0
    assert broker.ledger.pausing == 0


def run(loop: Loop, main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main)


WAYS = ("poller", "sendmsg", "transport")
all_ways = pytest.mark.parametrize("way", WAYS)
both_loops = pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())


async def soon(holds: Callable[[], bool]) -> None:
    """Return once `holds` is true of the broker in this process."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110 - counters have no events
            await asyncio.sleep(0.001)


async def conversation(port: int, receive_buffer: int | None, kind: type[Peer] = Peer) -> str:
    """A session with frames of every size and kind; a digest of all that the broker sent."""
    digest = hashlib.sha256()
    async with await kind.connect(port, receive_buffer=receive_buffer, client="talker") as peer:
        await peer.subscribe(1, "all.#")
        await peer.subscribe(2, "all.*", credit=150)
        sizes = [0, 1, 100, 15_000, 16_384, 70_000, 3, 1_000_000, 20, 40_000] * 3
        frames = []
        for number, size in enumerate(sizes):
            frames.append(publish(f"all.{number % 4}", bytes([number]) * size, number + 10, {"n": number}))
            frames.append(ping(number))
            if number == 10:
                frames.append(frame(Type.SUBSCRIBE, 1_000, 1, "in use"))
        sending = asyncio.create_task(peer.send(*frames, unsubscribe(2_000, 1), unsubscribe(2_001, 2)))
        for got in await peer.until(Type.OK, 2_001):
            digest.update(repr(got).encode())
        await sending
        await peer.send(frame(Type.GOODBYE, "normal"))
        assert await peer.rest() == []
    return digest.hexdigest()


def test_all_ways_on_both_loops_send_the_same() -> None:
    async def main(way: str, receive_buffer: int | None) -> str:
        async with listener(way) as (port, _):
            return await conversation(port, receive_buffer)

    digests = {
        run(loop, main(way, receive_buffer))
        for loop in LOOPS.values() for way in WAYS for receive_buffer in (None, SMALL_BUFFER)
    }
    assert len(digests) == 1


@all_ways
@both_loops
@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "pause"])
def test_a_slow_reader_gets_whole_frames_and_the_counters_agree(loop: Loop, way: str, policy: str) -> None:
    count, size = 6_000, 1_000

    async def main() -> None:
        limits = {
            "outbox_bytes_max": 256 * KIB, "frame_bytes_max": 64 * KIB, "slow_policy": SlowPolicy(policy),
            "burst_seconds_max": 0, "pause_seconds_max": 3600,
        }
        async with (
            listener(way, **limits) as (port, broker),
            await Peer.connect(port, receive_buffer=SMALL_BUFFER) as slow,
            await Peer.connect(port) as publisher,
        ):
            await slow.subscribe(1, "flood")
            frames = [publish("flood", payload) for payload in numbered(range(count), size)]
            sending = asyncio.create_task(publisher.send(*frames, ping(1)))
            if policy != "pause":
                await sending
                await publisher.expect(Type.PONG, 1)
            else:
                await soon(lambda: broker.flow.publishers_paused > 0)
            await slow.send(unsubscribe(9, 1) if policy != "pause" else b"")
            dropped = broker.ledger.dropped_newest + broker.ledger.dropped_oldest
            got = [number_of(payload) for payload in await slow.payloads(count - dropped)]
            assert got == sorted(set(got))
            if policy == "pause":
                await sending
                await publisher.expect(Type.PONG, 1)
                assert got == list(range(count))
            else:
                assert dropped > 0
                answer = await slow.expect(Type.OK, 9)
                assert answer[2] == {"delivered": count - dropped, "dropped": dropped}

    run(loop, main())


@all_ways
@both_loops
def test_cut_off_in_the_middle_of_a_frame_the_reader_gets_its_end_and_a_goodbye(loop: Loop, way: str) -> None:
    async def main() -> None:
        limits = {"outbox_bytes_max": 256 * KIB, "frame_bytes_max": 128 * KIB, "slow_policy": SlowPolicy.DISCONNECT}
        async with (
            listener(way, **limits) as (port, _),
            await Peer.connect(port, receive_buffer=SMALL_BUFFER) as slow,
            await Peer.connect(port) as publisher,
        ):
            await slow.subscribe(1, "flood")
            await publisher.send(*(publish("flood", payload) for payload in numbered(range(80), 100_000)))
            await publisher.settle()
            *messages, goodbye = await slow.rest()
            assert goodbye[:2] == [Type.GOODBYE, "slow_consumer"]
            assert [number_of(each[3]) for each in messages] == list(range(len(messages)))
            assert {len(each[3]) for each in messages} == {100_000}

    run(loop, main())


async def readers_are_reset(
    publisher: Peer, reader: Peer, connect: Callable[..., Awaitable[Peer]], messages: int
) -> None:
    """While another reads all messages, some come and are reset in the middle of what is written to them."""
    await reader.subscribe(1, "x")
    for start in range(0, messages, 100):
        victim = await connect(receive_buffer=SMALL_BUFFER)
        await victim.subscribe(1, "x")
        await publisher.send(*(publish("x", each) for each in numbered(range(start, start + 50), 20_000)))
        victim.reset()
        await publisher.send(*(publish("x", each) for each in numbered(range(start + 50, start + 100))))
        assert [number_of(each) for each in await reader.payloads(100)] == list(range(start, start + 100))


@all_ways
@both_loops
def test_readers_that_are_reset_while_they_are_written_to_harm_nobody(loop: Loop, way: str) -> None:
    async def main() -> None:
        async with listener(way) as (port, broker), await Peer.connect(port) as publisher:
            async with await Peer.connect(port) as reader:
                await readers_are_reset(publisher, reader, partial(Peer.connect, port), 2_000)
            await soon(lambda: len(broker.clients) == 1)

    run(loop, main())


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@all_ways
@both_loops
def test_a_goodbye_and_a_reset_at_once_are_no_error_of_ours(loop: Loop, way: str) -> None:
    async def main() -> None:
        troubles: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
        async with listener(way) as (port, broker):
            for _ in range(100):
                peer = await Peer.connect(port)
                await peer.send(publish("nobody", b"", 1), frame(Type.GOODBYE, "normal"))
                peer.reset()
            await soon(lambda: not broker.clients)
        assert not troubles

    run(loop, main())


async def test_it_listens_on_ipv6(start_broker: StartBroker) -> None:
    if not has_ipv6():
        pytest.skip("needs IPv6 on the loopback interface (::1)")
    broker = start_broker(native_host="::1", http_host="::1")
    assert broker.addresses["native"][0] == "::1"
    async with await Peer.connect(broker.port, host="::1") as peer:
        await peer.subscribe(1, "a")
        await peer.send(publish("a", b"six"))
        assert (await peer.message()).payload == b"six"
        port = broker.addresses["http"][1]
        reader, writer = await asyncio.open_connection("::1", port)
        writer.write(b"GET /connections HTTP/1.0\r\nHost: [::1]\r\n\r\n")
        answer = (await reader.read()).decode()
        writer.close()
        assert " 200 " in answer.splitlines()[0]
        assert '"address": "::1"' in answer


@all_ways
async def test_an_address_that_never_logs_in_is_closed_to_however_its_sockets_are_read(way: str) -> None:
    async with listener(way, connections_without_login_per_second_max=1) as (port, _):

        async def come(number: int) -> list[Any]:
            async with await Peer.open(port) as stranger:
                await stranger.send(ping(number))
                return await stranger.remains()

        await asyncio.gather(*map(come, range(20)))  # 2 are free, and each second pays for one more
        async with asyncio.timeout(WAIT_SECONDS):
            while await come(0):  # its own close may be heard of before theirs
                pass
