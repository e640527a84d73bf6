"""WebSocket under the same protocol connection, with and without TLS: RFC 6455, by `websockets` and in bytes.

It is the native protocol that goes through here; none of this knows it. A subprotocol's name is the listener's to
choose: here "native".
"""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Self

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as websocket_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.listener import Listener
from fanlight_broker.net.tls import Tls, TlsFiles
from fanlight_broker.net.websocket import WebSocket
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from tests.certificates import Certificates
from tests.system.test_transports import Loop, both_loops, conversation, give_up, run, soon
from tests.system.wire import (
    SMALL_BUFFER,
    Closed,
    Peer,
    Type,
    frame,
    hello,
    number_of,
    numbered,
    ping,
    publish,
    subscribe,
)

KIB = 1024
ORIGIN = "https://dashboard.example.com"
REQUEST = (
    b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)
SUBPROTOCOL = b"Sec-WebSocket-Protocol: native\r\n"


class WebSocketPeer(Peer):
    """A native client whose frames go through WebSocket messages, one for each `send`."""

    context: ClassVar[ssl.SSLContext | None] = None
    websocket: ClientConnection

    @classmethod
    async def open(
        cls, port: int, *, host: str = "127.0.0.1", receive_buffer: int | None = None, source: str | None = None
    ) -> Self:
        peer = await super().open(port, host=host, receive_buffer=receive_buffer, source=source)
        secure: dict[str, Any] = {} if cls.context is None else {"ssl": cls.context, "server_hostname": "localhost"}
        peer.websocket = await websocket_connect(
            f"{'ws' if cls.context is None else 'wss'}://localhost:{port}/", sock=peer.socket, compression=None,
            subprotocols=[Subprotocol("native")], max_size=None, max_queue=1, ping_interval=None, proxy=None, **secure,
        )
        return peer

    async def _transmit(self, octets: bytes) -> None:
        await self.websocket.send(octets)

    async def _receive(self) -> bytes:
        try:
            message = await self.websocket.recv()
        except ConnectionClosed:
            return b""
        assert isinstance(message, bytes)
        return message

    def close(self) -> None:
        self.websocket.transport.abort()


@asynccontextmanager
async def listener(
    tls: Tls | None = None, credentials: Credentials | None = None, *, options: WebSocket | None = None, **limits: Any
) -> AsyncIterator[tuple[int, Broker, Listener]]:
    loop = asyncio.get_running_loop()
    broker = Broker(Limits(**limits), lambda: loop.call_soon(flusher.flush), loop.call_soon)
    flusher = Flusher(broker.ledger, give_up)
    authenticator = PasswordAuthenticator(credentials or Credentials())
    serving = Listener("native", broker, NativeConnection, authenticator, clock=monotonic, shared=ReceiveBuffer())
    options = options or WebSocket(["native"], [ORIGIN])
    _, port = await serving.start("127.0.0.1", 0, tls=tls, upgrade=options)
    try:
        yield port, broker, serving
    finally:
        assert await serving.drain(20, "the test is over") == 0
        await authenticator.close()
    assert broker.ledger.used == 0
    assert serving.counters()["connections_accepted"] == serving.counters()["connections_closed"]


def masked(opcode: int, payload: bytes, *, fin: bool = True, length: int | None = None) -> bytes:
    """A client's frame; `length` lies about what follows."""
    size = len(payload) if length is None else length
    mask = b"\x12\x34\x56\x78"
    first = bytes([(0x80 if fin else 0) | opcode])
    if size < 126:
        head = bytes([0x80 | size])
    else:
        head = struct.pack(">BH", 0x80 | 126, size) if size < 1 << 16 else struct.pack(">BQ", 0x80 | 127, size)
    return first + head + mask + bytes(octet ^ mask[i % 4] for i, octet in enumerate(payload))


class RawPeer(Peer):
    """Speaks bytes, and reads frames of a server."""

    @classmethod
    async def upgraded(cls, port: int) -> Self:
        peer = await cls.open(port)
        await peer.send(REQUEST + SUBPROTOCOL + b"\r\n")
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += await asyncio.get_running_loop().sock_recv(peer.socket, 1)
        assert answer.startswith(b"HTTP/1.1 101 ")
        return peer

    async def octets(self, size: int) -> bytes:
        got = b""
        async with asyncio.timeout(30):
            while len(got) < size:
                more = await asyncio.get_running_loop().sock_recv(self.socket, size - len(got))
                if not more:
                    raise Closed(repr(got))
                got += more
        return got

    async def websocket_frame(self) -> tuple[int, bytes]:
        first, size = await self.octets(2)
        if size == 126:
            (size,) = struct.unpack(">H", await self.octets(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", await self.octets(8))
        return first, await self.octets(size)

    async def all(self) -> bytes:
        got = b""
        async with asyncio.timeout(30):
            while more := await asyncio.get_running_loop().sock_recv(self.socket, 64 * KIB):
                got += more
        return got


@both_loops
def test_a_conversation_is_the_same_by_websocket_and_by_plain_tcp(loop: Loop, signed: Certificates) -> None:
    class Secure(WebSocketPeer):
        context = signed.context()

    async def main(kind: type[Peer], receive_buffer: int | None) -> str:
        tls = Tls(TlsFiles(signed.server)) if kind is Secure else None
        async with listener(tls) as (port, _, serving):
            _, plain = await serving.start("127.0.0.1", 0)
            return await conversation(plain if kind is Peer else port, receive_buffer, kind)

    sizes = (None, SMALL_BUFFER)
    digests = {run(loop, main(kind, size)) for kind in (Peer, WebSocketPeer, Secure) for size in sizes}
    assert len(digests) == 1


async def test_a_message_may_hold_many_frames_and_a_frame_may_span_many_messages() -> None:
    async with listener() as (port, _, _), await WebSocketPeer.open(port) as peer:
        octets = hello() + subscribe(1, 1, "a") + b"".join(publish("a", bytes([n]) * 300) for n in range(40))
        for start in range(0, len(octets), 7):
            await peer.websocket.send(octets[start : start + 7])
        await peer.expect(Type.WELCOME)
        await peer.expect(Type.OK, 1)
        assert await peer.payloads(40) == [bytes([n]) * 300 for n in range(40)]
        await peer.websocket.send(b"".join(ping(n) for n in range(100)))
        assert [(await peer.frame())[1] for _ in range(100)] == list(range(100))
        # One message in fragments, an empty one among them, and a message of nothing.
        await peer.websocket.send([ping(7)[:3], b"", ping(7)[3:]])
        await peer.websocket.send(b"")
        await peer.expect(Type.PONG, 7)


async def test_a_ping_is_answered_between_the_fragments_of_a_message() -> None:
    async with listener() as (port, _, _), await RawPeer.upgraded(port) as peer:
        await peer.send(masked(2, hello()[:5], fin=False), masked(9, b"are you there"), masked(0, hello()[5:]))
        assert await peer.websocket_frame() == (0x8A, b"are you there")
        opcode, welcome = await peer.websocket_frame()
        assert opcode == 0x82
        assert welcome[5] == Type.WELCOME


async def test_the_first_subprotocol_that_is_ours_is_chosen_and_none_is_refused_with_400() -> None:
    async with listener(options=WebSocket(["native", "other"])) as (port, _, serving):
        offered = [Subprotocol(each) for each in ("chat", "other", "native")]
        async with websocket_connect(f"ws://127.0.0.1:{port}", subprotocols=offered, proxy=None) as client:
            assert client.subprotocol == "other"
            assert client.protocol.extensions == []  # permessage-deflate was offered
        for subprotocols in (None, [Subprotocol("chat")]):
            with pytest.raises(InvalidStatus) as caught:
                await websocket_connect(f"ws://127.0.0.1:{port}", subprotocols=subprotocols, proxy=None)
            assert caught.value.response.status_code == 400
            assert b"subprotocols: native, other" in caught.value.response.body
        await soon(lambda: serving.counters()["websocket_handshakes_failed"] == 2)
        assert serving.counters()["handshakes_failed"] == 3  # the first said nothing


@pytest.mark.parametrize(
    ("origins", "origin", "welcome"),
    [
        ([], None, True), ([], ORIGIN, False), ([ORIGIN], ORIGIN, True), ([ORIGIN], "https://evil.example.com", False),
        ([ORIGIN], "null", False), (["*"], "https://evil.example.com", True), ([ORIGIN], None, True),
    ],
)  # fmt: skip
async def test_a_page_connects_only_if_its_origin_is_listed(
    origins: Sequence[str], origin: str | None, welcome: bool
) -> None:
    async with listener(options=WebSocket(["native"], origins)) as (port, _, _):
        connecting = websocket_connect(
            f"ws://127.0.0.1:{port}", subprotocols=[Subprotocol("native")], origin=origin and Origin(origin), proxy=None
        )
        if welcome:
            await (await connecting).close()
            return
        with pytest.raises(InvalidStatus) as caught:
            await connecting
        assert caught.value.response.status_code == 403


async def test_a_page_that_has_led_its_name_to_this_machine_is_refused_too() -> None:
    async with listener() as (port, _, _), await RawPeer.open(port) as peer:
        request = REQUEST.replace(b"localhost", b"evil.example.com")
        await peer.send(request + SUBPROTOCOL + b"Origin: http://evil.example.com\r\n\r\n")
        assert (await peer.all()).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "request_",
    [
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        REQUEST.replace(b"13", b"12") + SUBPROTOCOL + b"\r\n",
        REQUEST.replace(b"Sec-WebSocket-Key", b"X") + SUBPROTOCOL + b"\r\n",
        REQUEST + b"Sec-WebSocket-Protocol: \xff\xff\r\n\r\n",
        REQUEST.replace(b"localhost", b"\xff") + SUBPROTOCOL + b"\r\n",
        REQUEST + b"X: " + b"x" * 20_000 + b"\r\n\r\n",
        b"".join([REQUEST, *(b"X-%d: y\r\n" % n for n in range(2_000)), b"\r\n"]),
        b"\x00\x01\x02\r\n\r\n",
    ],
    ids=["method", "no upgrade", "version", "no key", "subprotocol", "host", "long header", "many headers", "no HTTP"],
)
async def test_what_is_no_handshake_is_answered_as_http_and_closed(request_: bytes) -> None:
    async with listener() as (port, _, serving), await RawPeer.open(port) as peer:
        await peer.send(request_)
        assert (await peer.all()).startswith(b"HTTP/1.1 4")
        peer.close()
        await soon(lambda: serving.counters()["websocket_handshakes_failed"] == 1)


async def test_text_is_closed_with_1003() -> None:
    async with listener() as (port, _, serving), await WebSocketPeer.connect(port) as peer:
        await peer.websocket.send("text")
        with pytest.raises(ConnectionClosed) as caught:
            await peer.websocket.recv()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1003
        await soon(lambda: serving.counters()["protocol_errors"] == 1)


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (b"\x82\x01x", 1002),  # not masked (5.1)
        (b"\xc2" + masked(2, b"x")[1:], 1002),  # a reserved bit, of an extension that was not agreed on (5.2)
        (masked(3, b""), 1002),  # an opcode that is none
        (masked(0, b"x"), 1002),  # a continuation of nothing (5.4)
        (masked(2, b"x", fin=False) + masked(2, b"x"), 1002),  # a new message in the middle of one
        (masked(9, b"", fin=False), 1002),  # a fragmented ping (5.5)
        (masked(9, b"x" * 126), 1002),
        (masked(8, b"\x03"), 1002),  # a Close with half a code (5.5.1)
    ],
)
async def test_a_frame_that_breaks_the_rules_is_closed_with_1002(octets: bytes, code: int) -> None:
    async with listener() as (port, _, serving), await RawPeer.upgraded(port) as peer:
        await peer.send(masked(2, hello()))
        assert (await peer.websocket_frame())[1][5] == Type.WELCOME
        await peer.send(octets)
        opcode, payload = await peer.websocket_frame()
        assert opcode == 0x88
        assert int.from_bytes(payload[:2], "big") == code
        await soon(lambda: serving.counters()["protocol_errors"] == 1)


async def test_a_frame_is_nowhere_held_whole() -> None:
    async with listener() as (port, broker, _), await RawPeer.upgraded(port) as peer:
        await peer.send(masked(2, hello(), length=1 << 40))  # what has come of it is handed on
        assert (await peer.websocket_frame())[1][5] == Type.WELCOME
        assert broker.ledger.used < 64 * KIB


async def test_a_message_above_the_limit_is_closed_with_1009() -> None:
    async with (
        listener(options=WebSocket(["native"], message_bytes_max=100_000)) as (port, _, _),
        await WebSocketPeer.connect(port) as client,
    ):
        await client.websocket.send(ping(1) * (100_000 // len(ping(1))))
        await client.expect(Type.PONG)
        await client.websocket.send([ping(1) * 7_000, ping(1) * 7_000, ping(1) * 7_000])
        await client.rest()
        assert client.websocket.close_code == 1009


async def test_a_close_is_answered_and_what_was_sent_before_it_counts() -> None:
    async with listener() as (port, broker, _), await WebSocketPeer.connect(port) as other:
        await other.subscribe(1, "last")
        async with await WebSocketPeer.connect(port) as peer:
            await peer.websocket.send(publish("last", b"words"))
            await peer.websocket.close(code=1001, reason="gone")
            assert peer.websocket.close_code == 1001
        assert (await other.message()).payload == b"words"
        await soon(lambda: len(broker.clients) == 1)


@both_loops
def test_what_was_sent_last_is_read_before_the_close(loop: Loop) -> None:
    async def main() -> None:
        async with listener() as (port, _, _), await WebSocketPeer.connect(port) as peer:
            await peer.subscribe(1, "x")
            await peer.send(*(publish("x", each) for each in numbered(range(50), 100_000)), hello())
            got = await peer.rest()
            assert [number_of(each[3]) for each in got if each[0] == Type.MESSAGE] == list(range(50))
            assert got[-1][0] == Type.GOODBYE
            assert peer.websocket.close_code == 1000

    run(loop, main())


async def test_who_does_not_answer_our_close_is_cut_off() -> None:
    async with listener(linger_seconds_max=0.3) as (port, broker, _), await RawPeer.upgraded(port) as peer:
        await peer.send(masked(2, hello()), masked(2, frame(Type.GOODBYE, "normal")))
        assert (await peer.websocket_frame())[1][5] == Type.WELCOME
        assert (await peer.all()).endswith(b"\x88\x02\x03\xe8")
        await soon(lambda: not broker.clients)


@both_loops
@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "pause"])
def test_a_slow_reader_has_the_same_limits_as_by_plain_tcp(loop: Loop, policy: str) -> None:
    count, size, limit = 12_000, 1_000, 64 * KIB

    async def main() -> None:
        async with (
            listener(
                outbox_bytes_max=limit, frame_bytes_max=16 * KIB, burst_seconds_max=0, pause_allowed=True
            ) as (port, broker, _),
            await RawPeer.upgraded(port) as slow,
            await WebSocketPeer.connect(port) as publisher,
        ):
            await slow.send(masked(2, hello(slow_policy=policy)), masked(2, subscribe(1, 1, "flood")))
            await soon(lambda: len(broker.router) == 1)
            (behind,) = [each.outbox for each in broker.clients if each.subscriber.subscriptions]
            flood = b"".join(publish("flood", each) for each in numbered(range(count), size))
            sending = asyncio.create_task(publisher.send(flood))
            await soon(lambda: behind.pausing if policy == "pause" else behind.dropped > 0)
            assert behind.size <= limit + 16 * KIB
            assert behind.sink.unsent - behind.size <= 64 * KIB + 8 * KIB
            got = 0
            stream = b""
            while got + behind.dropped < count or not sending.done():
                _, payload = await slow.websocket_frame()
                stream += payload
                while len(stream) >= 4 and len(stream) >= 4 + int.from_bytes(stream[:4], "big"):
                    end = 4 + int.from_bytes(stream[:4], "big")
                    got += stream[5] == Type.MESSAGE
                    stream = stream[end:]
                await asyncio.sleep(0)
            await sending
            await soon(lambda: got + behind.dropped == count)
            assert (policy == "pause") == (behind.dropped == 0)

    run(loop, main())


async def test_a_flood_of_pings_that_reads_no_pong_takes_no_memory() -> None:
    async with listener() as (port, broker, _), await RawPeer.open(port, receive_buffer=SMALL_BUFFER) as peer:
        await peer.send(REQUEST + SUBPROTOCOL + b"\r\n")
        while (await peer.octets(1)) != b"\n" or (await peer.octets(2)) != b"\r\n":
            pass
        await peer.send(masked(2, hello()))
        await soon(lambda: len(broker.clients) == 1)
        (client,) = broker.clients
        for number in range(60):
            await peer.send(masked(9, b"%4d" % number * 25) * 1_000)
        assert client.outbox.sink.unsent <= 16 * KIB
        await peer.send(masked(9, b"the last"))
        while (await peer.websocket_frame()) != (0x8A, b"the last"):
            pass


async def test_a_flood_of_control_frames_leaves_others_their_turn() -> None:
    async with (
        listener() as (port, _, _), await RawPeer.upgraded(port) as busy, await WebSocketPeer.connect(port) as peer
    ):
        await busy.send(masked(2, hello()))
        await busy.websocket_frame()
        await busy.send(masked(10, b"") * 20_000 + masked(2, ping(1)))
        pong = asyncio.create_task(busy.websocket_frame())
        turns = 0
        while not pong.done():
            await peer.settle()
            turns += 1
        assert (await pong)[1][5] == Type.PONG
        assert turns > 5


async def test_who_stalls_the_handshake_is_cut_off_and_counted(signed: Certificates) -> None:
    async with listener(handshake_seconds_max=0.3) as (port, _, serving):
        for octets in (b"", REQUEST):
            async with await Peer.open(port) as staller:
                await staller.send(octets)
                await staller.ended()
        await soon(lambda: serving.counters()["websocket_handshakes_failed"] == 2)
        assert serving.counters()["handshakes_failed"] == 2
    async with listener(Tls(TlsFiles(signed.server)), handshake_seconds_max=0.3) as (port, _, serving):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=signed.context(), server_hostname="localhost"
        )
        writer.write(REQUEST)
        assert await reader.read() == b""
        writer.close()
        await soon(lambda: serving.counters()["websocket_handshakes_failed"] == 1)
        assert serving.counters()["tls_handshakes_failed"] == 0


async def test_a_handshake_takes_a_place_like_any_connection() -> None:
    async with listener(connections_max=2) as (port, _, serving):
        async with await Peer.open(port), await WebSocketPeer.connect(port):
            await soon(lambda: serving.counters()["connections_accepted"] == 2)
            async with await Peer.open(port) as third:
                await third.ended()
            assert serving.counters()["connections_refused"] == 1
        await soon(lambda: serving.counters()["connections_closed"] == 2)


async def test_passwords_and_certificates_are_asked_for_as_without_it(certificates: Certificates) -> None:
    async with listener(credentials=Credentials(password="s3cret")) as (port, _, _):
        async with await WebSocketPeer.open(port) as stranger:
            await stranger.send(hello())
            assert (await stranger.expect(Type.ERROR))[2] == "authentication_failed"
        async with await WebSocketPeer.connect(port, user="bob", password="s3cret") as known:
            await known.settle()

    class Alice(WebSocketPeer):
        context = certificates.context(certificates.sign("alice", "alice", common_name="alice"))

    files = TlsFiles(certificates.server, client_ca=certificates.ca, client_certificates="required")
    async with (
        listener(Tls(files), Credentials(password="s3cret")) as (port, broker, _), await Alice.connect(port) as alice
    ):
        await alice.settle()
        assert [client.subscriber.user for client in broker.clients] == ["alice"]


async def test_readers_that_are_reset_while_they_are_written_to_harm_nobody() -> None:
    troubles: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
    async with listener() as (port, broker, _), await WebSocketPeer.connect(port) as publisher:
        for _ in range(20):
            victim = await RawPeer.upgraded(port)
            await victim.send(masked(2, hello()), masked(2, subscribe(1, 1, "x")))
            await soon(lambda: len(broker.router) == 1)
            await publisher.send(*(publish("x", each) for each in numbered(range(50), 20_000)))
            victim.reset()
            await publisher.settle()
            await soon(lambda: len(broker.clients) == 1)
    assert not troubles
