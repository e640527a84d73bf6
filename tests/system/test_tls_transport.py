"""TLS under the same protocol connection: the same bytes as by plain TCP, the same limits, the same ends.

A listener is run in the test's own process, on both event loops; the peers read only when they are asked to.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.listener import Listener
from fanlight_broker.net.tls import Tls, TlsFiles
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from tests.certificates import Certificates
from tests.system.secure_wire import TlsPeer
from tests.system.test_transports import Loop, both_loops, conversation, give_up, run, soon
from tests.system.wire import SMALL_BUFFER, Closed, Peer, Type, hello, number_of, numbered, publish

KIB = 1024
Way = tuple[int, Broker, Listener, type[TlsPeer]]


@asynccontextmanager
async def listener(signed: Certificates, **limits: Any) -> AsyncIterator[Way]:
    """A broker behind a listener with TLS: its port, and the peers for it."""
    loop = asyncio.get_running_loop()
    broker = Broker(Limits(**limits), lambda: loop.call_soon(flusher.flush), loop.call_soon)
    flusher = Flusher(broker.ledger, give_up)
    authenticator = PasswordAuthenticator(Credentials())
    serving = Listener("native", broker, NativeConnection, authenticator, clock=monotonic, shared=ReceiveBuffer())
    _, port = await serving.start("127.0.0.1", 0, tls=Tls(TlsFiles(signed.server)))

    class Client(TlsPeer):
        context = signed.context()

    try:
        yield port, broker, serving, Client
    finally:
        assert await serving.drain(20, "the test is over") == 0
        await authenticator.close()
    assert broker.ledger.used == 0
    assert broker.ledger.pausing == 0
    assert serving.counters()["connections_accepted"] == serving.counters()["connections_closed"]


@both_loops
def test_a_conversation_is_the_same_by_tls_and_by_plain_tcp(loop: Loop, signed: Certificates) -> None:
    async def main(receive_buffer: int | None, *, tls: bool) -> str:
        async with listener(signed) as (port, _, serving, client):
            _, plain = await serving.start("127.0.0.1", 0)
            return await conversation(port if tls else plain, receive_buffer, client if tls else Peer)

    digests = {run(loop, main(size, tls=tls)) for size in (None, SMALL_BUFFER) for tls in (True, False)}
    assert len(digests) == 1


@both_loops
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(loop: Loop, version: ssl.TLSVersion, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed) as (port, _, _, client):
            client.context = signed.context(version=version)
            async with await client.connect(port) as peer:
                await peer.subscribe(1, "a")
                await peer.send(publish("a", b"hello"))
                assert (await peer.message()).payload == b"hello"

    run(loop, main())


@both_loops
@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "pause"])
def test_a_slow_reader_has_the_same_limits_as_by_plain_tcp(loop: Loop, policy: str, signed: Certificates) -> None:
    count, size, limit = 6_000, 1_000, 64 * KIB

    async def main() -> None:
        async with (
            listener(
                signed, outbox_bytes_max=limit, frame_bytes_max=16 * KIB, burst_seconds_max=0, pause_allowed=True
            ) as (port, broker, _, client),
            await client.connect(port, receive_buffer=SMALL_BUFFER, slow_policy=policy) as slow,
            await client.connect(port) as publisher,
        ):
            await slow.subscribe(1, "flood")
            (behind,) = [each.outbox for each in broker.clients if each.subscriber.subscriptions]
            flood = [publish("flood", each) for each in numbered(range(count), size)]
            sending = asyncio.create_task(publisher.send(*flood))
            await soon(lambda: behind.pausing if policy == "pause" else behind.dropped > 0)
            assert behind.size <= limit + 16 * KIB
            if policy != "pause":
                await sending
                await publisher.settle()
            # Nothing more is in the transport than what it was handed twice, and the kernel has.
            assert behind.sink.unsent - behind.size <= 2 * 64 * KIB + 8 * KIB
            got = 0
            last = -1
            while got < count - behind.dropped:
                number = number_of((await slow.message()).payload)
                assert number > last
                got, last = got + 1, number
            await sending
            await publisher.settle()
            assert got + behind.dropped == count
            assert (policy == "pause") == (behind.dropped == 0)

    run(loop, main())


@both_loops
def test_what_was_sent_last_is_read_before_the_close(loop: Loop, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed) as (port, _, _, client), await client.connect(port) as peer:
            await peer.subscribe(1, "x")
            await peer.send(*(publish("x", each) for each in numbered(range(50), 100_000)), hello())
            got = await peer.rest()
            assert [number_of(each[3]) for each in got if each[0] == Type.MESSAGE] == list(range(50))
            assert got[-1][0] == Type.GOODBYE

    run(loop, main())


@both_loops
def test_who_stalls_the_handshake_is_cut_off_and_counted(loop: Loop, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed, handshake_seconds_max=0.3) as (port, _, serving, _):
            for octets in (b"", b"\x16\x03\x01\x02\x00\x01"):  # nothing, and the beginning of a ClientHello
                async with await Peer.open(port) as staller:
                    await staller.send(octets)
                    await staller.ended()
            await soon(lambda: serving.counters()["tls_handshakes_failed"] == 2)
            assert serving.counters()["handshakes_failed"] == 2

    run(loop, main())


@both_loops
def test_who_is_through_with_tls_and_says_nothing_has_no_longer_than_others(loop: Loop, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed, handshake_seconds_max=0.3) as (port, _, serving, client):
            async with await client.open(port) as silent:
                (goodbye,) = await silent.rest()
            assert goodbye[:2] == [Type.GOODBYE, "handshake_timeout"]
            await soon(lambda: serving.counters()["handshakes_failed"] == 1)
            assert serving.counters()["tls_handshakes_failed"] == 0

    run(loop, main())


@both_loops
def test_what_is_no_tls_and_who_goes_away_in_the_handshake_is_counted_and_harms_nobody(
    loop: Loop, signed: Certificates
) -> None:
    async def main() -> None:
        troubles: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
        async with listener(signed) as (port, _, serving, client), await client.connect(port) as peer:
            for _ in range(20):
                stranger = await Peer.open(port)
                await stranger.send(b"GET / HTTP/1.1\r\n\r\n")
                await stranger.ended()
                resetting = await Peer.open(port)
                await resetting.send(b"\x16\x03\x01\x02\x00\x01")
                resetting.reset()
            await soon(lambda: serving.counters()["tls_handshakes_failed"] == 40)
            await peer.settle()
        assert not troubles

    run(loop, main())


@both_loops
def test_a_handshake_takes_a_place_like_any_connection(loop: Loop, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed, connections_max=2) as (port, _, serving, client):
            async with await Peer.open(port), await client.connect(port):
                await soon(lambda: serving.counters()["connections_accepted"] == 2)
                with pytest.raises((Closed, ConnectionError)):
                    await client.open(port)
                assert serving.counters()["connections_refused"] == 1
            await soon(lambda: serving.counters()["connections_closed"] == 2)
            async with await client.connect(port) as peer:
                await peer.settle()

    run(loop, main())
