"""TLS handshakes that arrive together start some in each turn of the loop, and others are served between."""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace

import pytest

from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.handshake import HANDSHAKES_PER_TURN, RECORD_HEADER, HandshakeTurns, hello_size
from fanlight_broker.net.listener import Listener
from fanlight_broker.net.tls import Tls, TlsFiles
from fanlight_broker.net.websocket import WebSocket
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from tests.certificates import Certificates
from tests.system.test_transports import Loop, both_loops, give_up, run, soon
from tests.system.wire import Peer

MANY = 60


class Turns:
    """Counts the turns of the loop, and the handshakes in each: OpenSSL calls `begin` for each ClientHello."""

    def __init__(self, tls: Tls) -> None:
        self.now = 0
        self.begun: Counter[int] = Counter()
        tls.context.sni_callback = self.begin
        self._count()

    def _count(self) -> None:
        self.now += 1
        self._next = asyncio.get_running_loop().call_soon(self._count)

    def begin(self, connection: object, name: str, context: ssl.SSLContext) -> None:
        self.begun[self.now] += 1

    def stop(self) -> None:
        self._next.cancel()


@asynccontextmanager
async def listening(
    signed: Certificates, upgrade: WebSocket | None = None, **limits: int
) -> AsyncIterator[tuple[Listener, Turns, int, int]]:
    """A listener, its turns, its port with TLS and its plain one."""
    loop = asyncio.get_running_loop()
    broker = Broker(replace(Limits(), **limits), lambda: loop.call_soon(flusher.flush), loop.call_soon, clock=monotonic)
    flusher = Flusher(broker.ledger, give_up)
    authenticator = PasswordAuthenticator(Credentials())
    listener = Listener("native", broker, NativeConnection, authenticator, clock=monotonic, shared=ReceiveBuffer())
    tls = Tls(TlsFiles(signed.server))
    _, secure = await listener.start("127.0.0.1", 0, tls=tls, upgrade=upgrade)
    _, plain = await listener.start("127.0.0.1", 0)
    turns = Turns(tls)
    try:
        yield listener, turns, secure, plain
    finally:
        turns.stop()
        await listener.stop()
        await authenticator.close()


def client_hello(signed: Certificates) -> bytes:
    """The first bytes that a client sends, all of them."""
    outgoing = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        signed.context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


async def connect(stack: ExitStack, listener: Listener, port: int, count: int) -> list[socket.socket]:
    """So many connections that the listener has accepted, and that have sent nothing."""
    accepted = listener.accepted
    peers = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]
    await soon(lambda: listener.accepted == accepted + count)
    return peers


@both_loops
def test_client_hellos_that_arrive_together_are_answered_some_in_each_turn(loop: Loop, signed: Certificates) -> None:
    async def main() -> None:
        for upgrade in (None, WebSocket(subprotocols=("mqtt",))):
            async with listening(signed, upgrade) as (listener, turns, secure, plain):
                async with await Peer.connect(plain) as neighbour:
                    with ExitStack() as stack:
                        peers, hello = await connect(stack, listener, secure, MANY), client_hello(signed)
                        for peer in peers:
                            peer.sendall(hello)
                        sent = turns.now
                        await neighbour.settle()
                        answered = turns.now
                        await soon(lambda: turns.begun.total() == MANY)
                # The loop may read in one turn from sockets that were given to it in two.
                assert max(turns.begun.values()) <= 2 * HANDSHAKES_PER_TURN
                before = sum(count for turn, count in turns.begun.items() if sent <= turn <= answered)
                assert before < MANY / 2, "a neighbour's ping waited for most of the handshakes"

    run(loop, main())


@both_loops
def test_client_hellos_whose_rest_arrives_together_are_answered_some_in_each_turn(
    loop: Loop, signed: Certificates
) -> None:
    async def main() -> None:
        async with listening(signed) as (listener, turns, secure, _):
            with ExitStack() as stack:
                peers, hello = await connect(stack, listener, secure, MANY), client_hello(signed)
                for sent, upto in ((0, 1), (1, 7), (7, len(hello) - 1)):
                    for peer in peers:
                        peer.sendall(hello[sent:upto])
                    begun = turns.now
                    await soon(lambda begun=begun: turns.now > begun + MANY)
                    assert turns.begun.total() == 0, "a part of a ClientHello had its turn"
                for peer in peers:
                    peer.sendall(hello[-1:])
                await soon(lambda: turns.begun.total() == MANY)
                # The loop may read in one turn from sockets that were given to it in two.
                assert max(turns.begun.values()) <= 2 * HANDSHAKES_PER_TURN

    run(loop, main())


def records(message: bytes, size: int) -> bytes:
    """A handshake message in records of `size` bytes each."""
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in parts)


@pytest.mark.parametrize("size", [300, 64, 50])
def test_the_size_of_a_client_hello_is_that_of_its_records(size: int) -> None:
    message = b"\x01" + (296).to_bytes(3) + bytes(296)
    whole = records(message, size)
    assert hello_size(whole) == len(whole)
    assert hello_size(whole + b"more") == len(whole)
    for end in range(len(whole)):
        assert end < hello_size(whole[:end]) <= len(whole), "what is not there yet is asked for, and no more"


def test_what_is_no_client_hello_is_not_waited_for() -> None:
    assert hello_size(b"GET / HTTP/1.1") == 0
    assert hello_size(b"") == RECORD_HEADER
    for long in (records(b"\x01\0\1\0" + bytes(256), 8), b"\x16\x03\x01\xff\xff" + bytes(8)):
        with pytest.raises(OSError, match="ClientHello of over"):
            hello_size(long)


@both_loops
def test_a_client_hello_in_several_records_is_answered(loop: Loop, signed: Certificates) -> None:
    async def main() -> None:
        async with listening(signed) as (listener, turns, secure, _):
            with ExitStack() as stack:
                (peer,) = await connect(stack, listener, secure, 1)
                peer.sendall(records(client_hello(signed)[RECORD_HEADER:], 100))
                await soon(lambda: turns.begun.total() == 1)

    run(loop, main())


@both_loops
def test_those_who_send_nothing_keep_nobody_waiting(loop: Loop, signed: Certificates) -> None:
    async def main() -> None:
        async with listening(signed) as (listener, turns, secure, _):
            with ExitStack() as stack:
                await connect(stack, listener, secure, MANY)
                (last,) = await connect(stack, listener, secure, 1)
                last.sendall(client_hello(signed))
                await soon(lambda: turns.begun.total() == 1)

    run(loop, main())


async def test_those_who_are_given_up_take_nobody_s_turn() -> None:
    later: list[object] = []
    turns = HandshakeTurns(later.append)
    waiting = [asyncio.create_task(turns.wait()) for _ in range(4 * HANDSHAKES_PER_TURN)]
    await asyncio.sleep(0)
    assert (len(turns), len(later)) == (4 * HANDSHAKES_PER_TURN, 1)
    for task in waiting[:-1]:
        task.cancel()
    await asyncio.sleep(0)
    turns._start_some()
    await waiting[-1]
    assert (len(turns), len(later)) == (0, 1)
