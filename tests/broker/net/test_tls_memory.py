"""What TLS keeps for its connections is counted, bounded, and given back."""

import asyncio
import socket
import ssl
from contextlib import ExitStack

from fanlight_broker.core.limits import KIB, MIB
from fanlight_broker.net.tls_memory import HANDSHAKE, LOOP, POLLER, TlsMemory
from fanlight_broker.wire.ledger import Pot
from tests.broker.net.test_handshake import listening
from tests.certificates import Certificates
from tests.system.test_transports import Loop, both_loops, run, soon
from tests.system.wire import WAIT_SECONDS, Type, frame, hello, publish

FULL = LOOP.state + 640 * KIB


@both_loops
def test_connections_by_tls_are_refused_where_their_buffers_have_no_room(loop: Loop, signed: Certificates) -> None:
    async def main() -> None:
        async with listening(signed, tls_bytes_max=MIB) as (listener, _, secure, plain):
            pot, most = listener.broker.ledger.secured, MIB // HANDSHAKE.state
            with ExitStack() as stack:
                for _ in range(most + 1):
                    stack.enter_context(socket.create_connection(("127.0.0.1", secure)))
                await soon(lambda: listener.accepted == most and listener.refused == 1)
                assert (pot.used, pot.refused) == (most * HANDSHAKE.state, 1)
                stack.enter_context(socket.create_connection(("127.0.0.1", plain)))
                await soon(lambda: listener.accepted == most + 1)
            await soon(lambda: listener.ended == most + 1)
            assert pot.used == 0
            with socket.create_connection(("127.0.0.1", secure)):
                await soon(lambda: listener.accepted == most + 2)

    run(loop, main())


def test_a_connection_is_charged_for_its_largest_read_and_while_it_is_not_read_from() -> None:
    pot = Pot("secured", 2 * MIB)
    memory = TlsMemory(pot)
    assert memory.begin()
    memory.settle(LOOP)
    assert memory.read(10 * KIB)
    assert memory.read(1 * KIB)
    assert pot.used == LOOP.state + 25 * KIB, "the largest read counts"
    assert memory.pause(True)
    assert memory.pause(True)
    assert pot.used == FULL
    assert memory.pause(False)
    assert memory.pause(False)
    assert pot.used == LOOP.state + 25 * KIB

    others = 2 * MIB - pot.used
    pot.add(others)
    assert memory.read(16 * KIB), "a record is no reason to end a connection"
    assert not memory.read(17 * KIB)
    assert not memory.pause(True)
    assert not TlsMemory(pot).begin()
    assert pot.refused == 3
    memory.end()
    assert pot.used == others, "all that it was charged for is given back"


def test_a_connection_is_charged_less_when_its_handshake_is_over() -> None:
    pot = Pot("secured", 2 * MIB)
    memory, early, closed = TlsMemory(pot), TlsMemory(pot), TlsMemory(pot)
    assert memory.begin()
    assert pot.used == HANDSHAKE.state
    memory.settle(POLLER)
    assert pot.used == POLLER.state
    assert early.begin()
    assert early.read(10 * KIB), "what came with the end of the handshake"
    assert early.pause(True)
    early.settle(LOOP)
    assert pot.used == POLLER.state + FULL
    assert early.pause(False)
    assert pot.used == POLLER.state + LOOP.state + 25 * KIB
    assert closed.begin()
    closed.end()
    closed.settle(LOOP)
    early.end()
    memory.end()
    assert pot.used == 0


def connect(signed: Certificates, port: int) -> ssl.SSLSocket:
    """A native client that is through its handshake."""
    plain = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
    try:
        peer = signed.context().wrap_socket(plain, server_hostname="localhost")
        peer.sendall(hello())
        assert peer.recv(64 * KIB)[5] == Type.WELCOME
    except BaseException:
        plain.close()
        raise
    return peer


@both_loops
def test_who_sends_much_at_once_gets_an_error_where_there_is_no_room_and_others_go_on(
    loop: Loop, signed: Certificates
) -> None:
    async def main() -> None:
        async with listening(signed) as (listener, _, secure, _):
            pot = listener.broker.ledger.secured
            quiet = await asyncio.to_thread(connect, signed, secure)
            loud = await asyncio.to_thread(connect, signed, secure)
            with quiet, loud:
                await soon(lambda: 2 * LOOP.state < pot.used < 2 * LOOP.state + 8 * KIB)  # nobody is at a login
                pot.limit = pot.used
                loud.sendall(frame(Type.PING, 1) + publish("a", bytes(40 * KIB)))  # read at once: the loop waits
                said = await asyncio.to_thread(read_all, loud)
                assert b"limit_exceeded" in said
                assert b"tls_bytes_max" in said
                await soon(lambda: pot.used < LOOP.state + 4 * KIB)
                quiet.sendall(frame(Type.PING, 7))
                assert await asyncio.to_thread(quiet.recv, KIB) == frame(Type.PONG, 7)

    run(loop, main())


def read_all(peer: ssl.SSLSocket) -> bytes:
    said = b""
    while part := peer.recv(64 * KIB):
        said += part
    return said
