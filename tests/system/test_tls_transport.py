"""TLS under the same protocol connection: the same bytes as by plain TCP, the same limits, the same ends.

A listener is run in the test's own process, by the poller and by the transports of both event loops, which are its
oracle; the peers read only when they are asked to.
"""

import asyncio
import ctypes
import os
import select
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest

from fanlight_bench.load import openssl
from fanlight_bench.load.carrier import Carrier
from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.listener import Listener
from fanlight_broker.net.poller import Poller
from fanlight_broker.net.tls import Tls, TlsFiles
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from tests.certificates import Certificates
from tests.system.secure_wire import TlsPeer
from tests.system.test_transports import LOOPS, Loop, conversation, give_up, readers_are_reset, run, soon
from tests.system.wire import (
    SMALL_BUFFER,
    WAIT_SECONDS,
    Closed,
    Peer,
    Peers,
    Type,
    hello,
    number_of,
    numbered,
    ping,
    publish,
)

KIB = 1024
Way = tuple[int, Broker, Listener, type[TlsPeer]]
WAYS = (("asyncio", "transport"), ("uvloop", "transport"), ("uvloop", "poller"))
all_ways = pytest.mark.parametrize(
    ("loop", "way"), [(LOOPS[loop], way) for loop, way in WAYS], ids=["-".join(each) for each in WAYS]
)


@asynccontextmanager
async def listener(signed: Certificates, way: str, **limits: Any) -> AsyncIterator[Way]:
    """A broker behind a listener with TLS: its port, and the peers for it."""
    loop = asyncio.get_running_loop()
    broker = Broker(Limits(**limits), lambda: flusher.schedule(loop), loop.call_soon)
    flusher = Flusher(broker.ledger, give_up)
    poller = Poller(loop, flusher) if way == "poller" else None
    authenticator = PasswordAuthenticator(Credentials())
    serving = Listener(
        "native", broker, NativeConnection, authenticator, clock=monotonic, shared=ReceiveBuffer(), poller=poller
    )
    _, port = await serving.start("127.0.0.1", 0, tls=Tls(TlsFiles(signed.server)))

    class Client(TlsPeer):
        context = signed.context()

    try:
        yield port, broker, serving, Client
    finally:
        assert await serving.drain(20, "the test is over") == 0
        await authenticator.close()
        if poller is not None:
            assert poller.count == 0
            poller.close()
    pots = broker.ledger
    assert (pots.used, pots.secured.used, pots.inboxes.used, pots.handshakes.used) == (0, 0, 0, 0)
    assert broker.ledger.pausing == 0
    assert serving.counters()["connections_accepted"] == serving.counters()["connections_closed"]


@all_ways
def test_a_conversation_is_the_same_by_tls_and_by_plain_tcp(loop: Loop, way: str, signed: Certificates) -> None:
    async def main(receive_buffer: int | None, *, tls: bool) -> str:
        async with listener(signed, way) as (port, _, serving, client):
            _, plain = await serving.start("127.0.0.1", 0)
            return await conversation(port if tls else plain, receive_buffer, client if tls else Peer)

    digests = {run(loop, main(size, tls=tls)) for size in (None, SMALL_BUFFER) for tls in (True, False)}
    assert len(digests) == 1


@all_ways
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(loop: Loop, way: str, version: ssl.TLSVersion, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed, way) as (port, _, _, client):
            client.context = signed.context(version=version)
            async with await client.connect(port) as peer:
                await peer.subscribe(1, "a")
                await peer.send(publish("a", b"hello"))
                assert (await peer.message()).payload == b"hello"

    run(loop, main())


@all_ways
@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "pause"])
def test_a_slow_reader_has_the_same_limits_as_by_plain_tcp(
    loop: Loop, way: str, policy: str, signed: Certificates
) -> None:
    count, size, limit = 6_000, 1_000, 64 * KIB

    async def main() -> None:
        async with (
            listener(
                signed, way, outbox_bytes_max=limit, frame_bytes_max=16 * KIB, burst_seconds_max=0, pause_allowed=True
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


@all_ways
def test_what_was_sent_last_is_read_before_the_close(loop: Loop, way: str, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed, way) as (port, _, _, client), await client.connect(port) as peer:
            await peer.subscribe(1, "x")
            await peer.send(*(publish("x", each) for each in numbered(range(50), 100_000)), hello())
            got = await peer.rest()
            assert [number_of(each[3]) for each in got if each[0] == Type.MESSAGE] == list(range(50))
            assert got[-1][0] == Type.GOODBYE

    run(loop, main())


@all_ways
def test_who_stalls_the_handshake_is_cut_off_and_counted(loop: Loop, way: str, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed, way, handshake_seconds_max=0.3) as (port, _, serving, _):
            for octets in (b"", b"\x16\x03\x01\x02\x00\x01"):  # nothing, and the beginning of a ClientHello
                async with await Peer.open(port) as staller:
                    await staller.send(octets)
                    await staller.ended()
            await soon(lambda: serving.counters()["tls_handshakes_failed"] == 2)
            assert serving.counters()["handshakes_failed"] == 2

    run(loop, main())


@all_ways
def test_who_is_through_with_tls_and_says_nothing_has_no_longer_than_others(
    loop: Loop, way: str, signed: Certificates
) -> None:
    async def main() -> None:
        async with listener(signed, way, handshake_seconds_max=0.3) as (port, _, serving, client):
            async with await client.open(port) as silent:
                (goodbye,) = await silent.rest()
            assert goodbye[:2] == [Type.GOODBYE, "handshake_timeout"]
            await soon(lambda: serving.counters()["handshakes_failed"] == 1)
            assert serving.counters()["tls_handshakes_failed"] == 0

    run(loop, main())


@all_ways
def test_what_is_no_tls_and_who_goes_away_in_the_handshake_is_counted_and_harms_nobody(
    loop: Loop, way: str, signed: Certificates
) -> None:
    async def main() -> None:
        troubles: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
        async with listener(signed, way) as (port, _, serving, client), await client.connect(port) as peer:
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


@all_ways
def test_a_handshake_takes_a_place_like_any_connection(loop: Loop, way: str, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed, way, connections_max=2) as (port, _, serving, client):
            async with await Peer.open(port), await client.connect(port):
                await soon(lambda: serving.counters()["connections_accepted"] == 2)
                with pytest.raises((Closed, ConnectionError)):
                    await client.open(port)
                assert serving.counters()["connections_refused"] == 1
            await soon(lambda: serving.counters()["connections_closed"] == 2)
            async with await client.connect(port) as peer:
                await peer.settle()

    run(loop, main())


@all_ways
def test_every_one_of_many_gets_all_messages_in_order(loop: Loop, way: str, signed: Certificates) -> None:
    async def main() -> None:
        sizes = [8, 200, 20_000, 8, 40_000] * 20
        async with (
            listener(signed, way, outbox_bytes_max=8 * KIB * KIB) as (port, _, _, client),
            Peers([await client.connect(port) for _ in range(20)]) as readers,
            await client.connect(port) as publisher,
        ):
            for reader in readers:
                await reader.subscribe(1, "x")
            frames = [publish("x", *numbered([number], size)) for number, size in enumerate(sizes)]
            await publisher.send(*frames[:50])
            await publisher.send(*frames[50:])
            for reader in readers:
                got = await reader.payloads(len(sizes))
                assert [(number_of(each), len(each)) for each in got] == list(enumerate(sizes))

    run(loop, main())


@all_ways
def test_readers_that_are_reset_while_they_are_written_to_harm_nobody(
    loop: Loop, way: str, signed: Certificates
) -> None:
    async def main() -> None:
        async with (
            listener(signed, way) as (port, broker, _, client),
            await client.connect(port) as publisher,
            await client.connect(port) as reader,
        ):
            await readers_are_reset(publisher, reader, partial(client.connect, port), 500)
            await soon(lambda: len(broker.clients) == 2)

    run(loop, main())


class OpenSSLPeer:
    """A native client with OpenSSL's own functions: Python's `ssl` has no key updates."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.ssl, *functions = openssl.connect(self.socket)
        self.carrier = Carrier(self.socket.fileno(), (self.ssl, *functions))
        self.socket.setblocking(False)

    def update_keys(self) -> None:
        """Change our keys with the next write, and ask the broker to change its own."""
        assert openssl.library().SSL_key_update(ctypes.c_void_p(self.ssl), 1) == 1

    def flush(self) -> bool:
        """Send a key update that has not been sent yet. False if the socket takes no more."""
        sent = openssl.library().SSL_do_handshake(ctypes.c_void_p(self.ssl)) == 1
        openssl.library().ERR_clear_error()  # this thread is the broker's, too
        return bool(sent)

    def ask(self, request: bytes, size: int) -> bytes:
        """Send a request; at least this many bytes of what comes."""
        assert self.carrier.send(request) == len(request)
        answer = b""
        while len(answer) < size:
            assert select.select([self.socket], [], [], WAIT_SECONDS)[0]
            with suppress(BlockingIOError):
                answer += self.carrier.recv(64 * KIB)
        return answer

    def close(self) -> None:
        del self.carrier
        self.socket.close()


@all_ways
def test_keys_are_changed_in_both_directions(loop: Loop, way: str, signed: Certificates) -> None:
    async def main() -> None:
        async with listener(signed, way) as (port, _, _, _):
            peer = await asyncio.to_thread(OpenSSLPeer, port)
            await asyncio.to_thread(peer.ask, hello(), 5)
            for number in range(1, 40):
                peer.update_keys()
                assert (await asyncio.to_thread(peer.ask, ping(number), 1))[-1] == number
            peer.close()

    run(loop, main())


def test_one_that_asks_for_new_keys_without_end_and_reads_nothing_is_closed(signed: Certificates) -> None:
    """Each is answered. What the socket does not take of the answers was kept, whatever it came to."""

    async def main() -> None:
        async with listener(signed, "poller") as (port, _, serving, _):
            peer = await asyncio.to_thread(OpenSSLPeer, port)
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            await soon(lambda: len(serving._connections) == 1)
            (connection,) = serving._connections
            transport: Any = connection._transport
            with socket.socket(fileno=os.dup(transport.fd)) as accepted:
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
            while not serving.counters()["connections_closed"]:
                for _ in range(100):
                    if not peer.flush():
                        break
                    peer.update_keys()
                await asyncio.sleep(0)
            peer.close()

    run(LOOPS["uvloop"], main())
