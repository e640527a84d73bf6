"""The poller beside its oracle: what is the same through uvloop's transports, and what may not happen in either.

The same bytes go in by the same pieces, the same ends are made of connections, and what comes out, at both ends and in
the broker's own view, must be equal. What the kernel decides by chance (how much of a stream a reset swallows) is not
asked: a script lets the broker come to rest first.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import ProtocolConnection
from fanlight_broker.core.limits import Limits, SlowPolicy
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.connection import Connection
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.listener import Listener
from fanlight_broker.net.poller import Poller
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wire.outbox import Outbox
from tests.system.wire import SMALL_BUFFER, WAIT_SECONDS, Peer, Type, frame, ping, publish, subscribe

KIB = 1024
WAYS = ("poller", "uvloop")


class Recorder(Listener):
    """A listener that remembers how connections ended, and whose sockets are soon full."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ends: list[tuple[str, str, str | None]] = []

    def opened(self, connection: Connection) -> ProtocolConnection | None:
        transport: Any = connection._transport
        plain = transport.get_extra_info("socket")
        with socket.socket(fileno=os.dup(transport.fd if plain is None else plain.fileno())) as opened:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
        return super().opened(connection)

    def closed(self, connection: Connection) -> None:
        client = connection.protocol.client
        name = client.subscriber.name if client else ""
        self.ends.append((name, connection.close_reason, connection.protocol.failed))
        super().closed(connection)


@asynccontextmanager
async def listening(way: str, **limits: Any) -> AsyncIterator[tuple[int, Recorder]]:
    """A broker in this process; its port and its listener."""
    loop = asyncio.get_running_loop()
    troubles: list[Any] = []
    loop.set_exception_handler(lambda _, context: troubles.append(context))

    def fault(outbox: Outbox, error: Exception) -> None:
        troubles.append(error)

    broker = Broker(Limits(**limits), lambda: flusher.schedule(loop), loop.call_soon)
    flusher = Flusher(broker.ledger, fault)
    poller = Poller(loop, flusher) if way == "poller" else None
    authenticator = PasswordAuthenticator(Credentials())
    listener = Recorder(
        "native", broker, NativeConnection, authenticator, clock=monotonic, shared=ReceiveBuffer(), poller=poller
    )
    _, port = await listener.start("127.0.0.1", 0)
    try:
        yield port, listener
    finally:
        await listener.drain(20, "the test is over")
        await authenticator.close()
        if poller is not None:
            assert poller.count == 0
            poller.close()
    assert (broker.ledger.used, broker.ledger.pausing, troubles) == (0, 0, [])


async def until(holds: Any) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110 - counters have no events
            await asyncio.sleep(0.0005)


class Script(NamedTuple):
    """What a publisher and a subscriber do."""

    sizes: list[int]  # of payloads
    cuts: list[int]  # bytes of each piece that is sent by itself, over and over
    deaf: bool  # the subscriber reads nothing until the publisher is held back, or through
    receipts: bool
    publisher_ends: str
    subscriber_ends: str


ENDS = ("goodbye", "half", "close", "reset", "garbage")
scripts = st.builds(
    Script,
    sizes=st.lists(st.sampled_from([0, 1, 64, 500, 5_000, 17_000, 70_000]), min_size=1, max_size=12),
    cuts=st.lists(st.sampled_from([1, 3, 17, 1_000, 65_536, 1_000_000]), min_size=1, max_size=4),
    deaf=st.booleans(),
    receipts=st.booleans(),
    publisher_ends=st.sampled_from(ENDS),
    subscriber_ends=st.sampled_from(ENDS),
)


def pieces(octets: bytes, cuts: list[int]) -> list[bytes]:
    """At most some 500, so that a large payload does not take for ever byte by byte."""
    found, at, least = [], 0, len(octets) // 500 + 1
    while at < len(octets):
        size = max(cuts[len(found) % len(cuts)], least)
        found.append(octets[at : at + size])
        at += size
    return found


async def end(peer: Peer, how: str) -> list[list[Any]]:
    """End a connection; what it still got."""
    if how == "goodbye":
        await peer.send(frame(Type.GOODBYE, "normal"))
        return await peer.remains()
    if how == "garbage":
        await peer.send(b"\0\0\0\2\xff\xff")
        return await peer.remains()
    if how == "half":
        peer.socket.shutdown(socket.SHUT_WR)
        return await peer.remains()
    if how == "reset":
        peer.reset()
    peer.close()
    return []


async def play(way: str, script: Script) -> list[Any]:
    """All that is to be seen of a script."""
    seen: list[Any] = []
    limits = {
        "outbox_bytes_max": 128 * KIB, "frame_bytes_max": 96 * KIB, "slow_policy": SlowPolicy.PAUSE,
        "pause_seconds_max": 3600,
    }
    async with listening(way, **limits) as (port, listener):
        ledger, flow = listener.broker.ledger, listener.broker.flow
        subscriber = await Peer.connect(port, receive_buffer=SMALL_BUFFER, client="subscriber")
        publisher = await Peer.connect(port, client="publisher")
        publisher.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await subscriber.subscribe(1, "t.*")
        frames = [
            publish(f"t.{n % 3}", bytes([n]) * size, n if script.receipts else None)
            for n, size in enumerate(script.sizes)
        ]

        async def send() -> None:
            for piece in pieces(b"".join(frames) + ping(1), script.cuts):
                await publisher.send(piece)

        sending = asyncio.create_task(send())
        if script.deaf:
            await until(lambda: flow.publishers_paused or ledger.messages_in == len(frames))
        seen.append(await subscriber.payloads(len(frames)))
        seen.append(await publisher.until(Type.PONG, 1))
        await sending
        for peer, how in ((publisher, script.publisher_ends), (subscriber, script.subscriber_ends)):
            ended = len(listener.ends) + 1
            seen.append([got[:2] for got in await end(peer, how)])
            peer.close()
            await until(lambda ended=ended: len(listener.ends) == ended)
        seen += [listener.ends, ledger.messages_in, ledger.messages_out, ledger.bytes_in, ledger.receipts]
        seen.append(listener.counters())
    return seen


@given(scripts)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_poller_and_uvloop_give_the_same_bytes_and_events(script: Script) -> None:
    seen = []
    for way in WAYS:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            seen.append(runner.run(play(way, script)))
    assert seen[0] == seen[1]


def run(main: Any) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


@pytest.mark.parametrize("way", WAYS)
def test_who_is_reset_while_it_is_held_back_is_heard_of_when_it_is_read_from_again(way: str) -> None:
    async def main() -> None:
        limits = {
            "outbox_bytes_max": 64 * KIB, "frame_bytes_max": 32 * KIB, "slow_policy": SlowPolicy.PAUSE,
            "pause_seconds_max": 3600,
        }
        async with listening(way, **limits) as (port, listener):
            flow = listener.broker.flow
            deaf = await Peer.connect(port, receive_buffer=SMALL_BUFFER, client="deaf")
            await deaf.subscribe(1, "flood")
            publisher = await Peer.connect(port, client="publisher")
            flood = asyncio.create_task(publisher.send(*[publish("flood", bytes(16 * KIB))] * 2_000))
            await until(lambda: flow.publishers_paused)
            flood.cancel()
            await asyncio.wait({flood})
            publisher.reset()
            # The loop goes round, and the broker answers others, without an event of the socket that nobody reads from.
            async with await Peer.connect(port, client="other") as other:
                for _ in range(20):
                    await other.settle()
            assert [name for name, _, _ in listener.ends if name == "publisher"] == []
            deaf.reset()
            await until(lambda: len(listener.ends) == 3)
            assert {name for name, _, _ in listener.ends} == {"deaf", "publisher", "other"}

    run(main())


def test_who_is_reset_in_the_middle_of_a_frame_is_not_attended_to_any_more() -> None:
    """A socket that is over must not be ready for ever: the poller would go round until its turn is over."""

    async def main() -> None:
        limits = {
            "outbox_bytes_max": 512 * KIB, "frame_bytes_max": 96 * KIB, "slow_policy": SlowPolicy.DROP_NEWEST,
            "burst_seconds_max": 0,
        }
        async with listening("poller", **limits) as (port, listener):
            poller: Any = listener._poller
            async with await Peer.connect(port) as publisher:
                for _ in range(5):
                    deaf = await Peer.connect(port, receive_buffer=SMALL_BUFFER)
                    await deaf.subscribe(1, "flood")
                    await publisher.send(*[publish("flood", bytes(70_000))] * 20)
                    await publisher.settle()
                    before, ended = poller.rounds, len(listener.ends)
                    deaf.reset()
                    await until(lambda ended=ended: len(listener.ends) > ended)
                    assert poller.rounds - before < 20

    run(main())


@pytest.mark.parametrize("way", WAYS)
def test_among_many_that_get_little_each_none_is_forgotten(way: str) -> None:
    """More outboxes than are flushed at once when each has little to write."""

    async def main() -> None:
        async with listening(way) as (port, _):
            peers = [await Peer.connect(port) for _ in range(60)]
            for number, peer in enumerate(peers):
                await peer.send(subscribe(1, 1, f"to.{number}"))
                await peer.expect(Type.OK, 1)
            for turn in range(20):
                for number, peer in enumerate(peers):
                    await peer.send(publish(f"to.{(number + 1) % 60}", bytes([turn])))
                for peer in peers:
                    assert (await peer.message()).payload == bytes([turn])
            for peer in peers:
                peer.close()

    run(main())
