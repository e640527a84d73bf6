"""AMQP logins on a real broker: each mechanism, over TCP and TLS, and new secrets."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from websockets.asyncio.client import connect as websocket_connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.field_table import encode_table
from fanlight_broker.protocols.amqp.frames import PROTOCOL_HEADER, FrameDecoder, FrameType
from fanlight_broker.protocols.amqp.methods import decode_method, method_frame
from tests.broker.auth.scram_client import ScramClient
from tests.broker.protocols.amqp.world import published
from tests.certificates import Certificates
from tests.conftest import StartBroker, TestBroker
from tests.system.test_tokens import KEY as TOKEN_KEY
from tests.system.test_tokens import OTHER, token, write
from tests.system.test_users import user
from tests.system.wire import WAIT_SECONDS

PERMISSIONS = """
[[allow]]
group = "readers"
queue = "$queue.#"
subscribe = "$queue.#"

[[allow]]
group = "writers"
publish = "$exchange.#"
queue = "$queue.#"

[[allow]]
user = "dev"
publish = "$exchange.#"
"""


@pytest.fixture(scope="module")
def broker(
    start_module_broker: StartBroker, signed: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> TestBroker:
    folder = tmp_path_factory.mktemp("broker")
    users, keys, permissions = folder / "users.toml", folder / "keys.pem", folder / "permissions.toml"
    assert user("add", users, "alice", "--group", "writers", password="wonder").returncode == 0
    write(keys, TOKEN_KEY)
    permissions.write_text(PERMISSIONS)
    broker = start_module_broker(
        amqp=True, users_file=users, token_keys_file=keys, token_audience="broker", permissions=permissions,
        tls_certificate=signed.server, tls_client_ca=signed.ca, tls_client_certificates="optional",
        amqp_websocket=True, amqp_websocket_port=0, amqp_websocket_tls_port=0,
    )
    listeners = {"amqp_tls", "amqp_websocket", "amqp_websocket_tls"}
    broker.wait_for(lambda: listeners <= broker.addresses.keys(), WAIT_SECONDS)
    return broker


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._decoder = FrameDecoder(131_072)
        self._methods: list[Any] = []

    def say(self, method: object, channel: int = 0) -> None:
        self._writer.write(method_frame(channel, method))

    def send(self, octets: bytes) -> None:
        self._writer.write(octets)

    async def method(self) -> Any:
        """The next one; None at the end."""
        while not self._methods:
            octets = await asyncio.wait_for(self._reader.read(65_536), WAIT_SECONDS)
            if not octets:
                return None
            self._methods += [
                decode_method(frame.payload) for frame in self._decoder.feed(octets) if frame.type is FrameType.METHOD
            ]
        return self._methods.pop(0)

    async def ask(self, method: object, channel: int = 0) -> Any:
        self.say(method, channel)
        return await self.method()

    async def log_in(self, mechanism: str, response: bytes, *, announced: bool = True) -> Any:
        """What start-ok is answered with."""
        capabilities = {"authentication_failure_close": announced}
        return await self.ask(first.ConnectionStartOk({"capabilities": capabilities}, mechanism, response))

    async def open(self) -> None:
        self.say(first.ConnectionTuneOk(10, 131_072, 0))
        assert await self.ask(first.ConnectionOpen("/")) == first.ConnectionOpenOk()
        assert await self.ask(first.ChannelOpen(), 1) == first.ChannelOpenOk()


@asynccontextmanager
async def connect(
    broker: TestBroker, context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Client, list[str]]]:
    """A client that has connection.start, and the mechanisms in that."""
    port = broker.addresses["amqp" if context is None else "amqp_tls"][1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        client = Client(reader, writer)
        client.send(PROTOCOL_HEADER)
        start = await client.method()
        yield client, start.mechanisms.decode().split()
    finally:
        writer.close()
        with suppress(OSError):  # the broker has closed it first
            await writer.wait_closed()  # by TLS that is a message each way


def plain(name: str, password: str) -> bytes:
    return f"\0{name}\0{password}".encode()


async def test_what_is_offered_can_be_used(broker: TestBroker, signed: Certificates) -> None:
    async with connect(broker) as (client, offered):
        assert offered == ["PLAIN", "AMQPLAIN", "SCRAM-SHA-256"]
        assert isinstance(await client.log_in("PLAIN", plain("alice", "wonder")), first.ConnectionTune)
    async with connect(broker, signed.context()) as (client, offered):
        assert offered == ["PLAIN", "AMQPLAIN", "SCRAM-SHA-256"]
        response = encode_table({"LOGIN": "alice", "PASSWORD": "wonder"})[4:]
        assert isinstance(await client.log_in("AMQPLAIN", response), first.ConnectionTune)
    async with connect(broker) as (client, _):
        closed = await client.log_in("ANONYMOUS", b"")
        assert (closed.reply_code, closed.reply_text) == (403, "ACCESS_REFUSED - Login was refused")


async def test_a_certificate_is_the_user(broker: TestBroker, signed: Certificates) -> None:
    context = signed.context(signed.sign("dev", common_name="dev"))
    async with connect(broker, context) as (client, offered):
        assert offered[0] == "EXTERNAL"
        assert isinstance(await client.log_in("EXTERNAL", b""), first.ConnectionTune)
        await client.open()
        assert await client.ask(entity.ConfirmSelect(), 1) == entity.ConfirmSelectOk()
        client.send(published("nowhere", b"x", user_id="dev"))
        assert await client.method() == basic.BasicAck(1)
        client.send(published("nowhere", b"x", user_id="other"))
        closed = await client.method()
        assert (closed.reply_code, closed.reply_text) == (
            406, "PRECONDITION_FAILED - user_id property set to 'other' but authenticated user was 'dev'"
        )


async def test_scram_shows_each_side_the_other(broker: TestBroker) -> None:
    scram = ScramClient("alice", "wonder")
    async with connect(broker) as (client, _):
        challenge = await client.log_in("SCRAM-SHA-256", scram.first())
        final = await client.ask(first.ConnectionSecureOk(scram.final(challenge.challenge)))
        assert scram.knows_server(final.challenge)
        assert isinstance(await client.ask(first.ConnectionSecureOk(b"")), first.ConnectionTune)
        await client.open()
        assert await client.ask(entity.QueueDeclare(queue="s"), 1) == entity.QueueDeclareOk("s", 0, 0)


@pytest.mark.parametrize("announced", [True, False])
async def test_a_wrong_scram_proof_is_refused(broker: TestBroker, announced: bool) -> None:
    scram = ScramClient("alice", "wrong")
    async with connect(broker) as (client, _):
        challenge = await client.log_in("SCRAM-SHA-256", scram.first(), announced=announced)
        answer = await client.ask(first.ConnectionSecureOk(scram.final(challenge.challenge)))
        if announced:
            assert answer == first.ConnectionClose(403, "ACCESS_REFUSED - Login was refused")
        else:
            assert answer is None


async def test_nothing_else_may_come_in_the_middle_of_scram(broker: TestBroker) -> None:
    async with connect(broker) as (client, _):
        await client.log_in("SCRAM-SHA-256", ScramClient("alice", "wonder").first())
        closed = await client.ask(first.ConnectionTuneOk(1, 4_096, 0))
        assert (closed.reply_code, closed.class_id, closed.method_id) == (503, 10, 31)


async def test_a_new_token_has_other_permissions(broker: TestBroker) -> None:
    async with connect(broker) as (client, _):
        tune = await client.log_in("PLAIN", plain("alice", token(groups=["readers"])))
        assert isinstance(tune, first.ConnectionTune)
        await client.open()
        assert await client.ask(entity.QueueDeclare(queue="t"), 1) == entity.QueueDeclareOk("t", 0, 0)
        consumed = await client.ask(basic.BasicConsume(queue="t", consumer_tag="c"), 1)
        assert consumed == basic.BasicConsumeOk("c")
        ok = await client.ask(first.ConnectionUpdateSecret(token(groups=["writers"]).encode(), "it expires"))
        assert ok == first.ConnectionUpdateSecretOk()
        assert await client.ask(entity.QueueDeclare(queue="t", passive=True), 1) == entity.QueueDeclareOk("t", 0, 0)
        assert await client.ask(entity.ConfirmSelect(), 1) == entity.ConfirmSelectOk()
        client.send(published("t", b"x"))
        assert await client.method() == basic.BasicAck(1)
        closed = await client.ask(basic.BasicConsume(queue="t"), 1)
        assert (closed.reply_code, closed.class_id, closed.method_id) == (403, 60, 20)


@pytest.mark.parametrize("secret", ["of another user", "of another key", "expired", "no token", "no text"])
async def test_a_wrong_secret_closes_the_connection(broker: TestBroker, secret: str) -> None:
    wrong = {
        "of another user": token(sub="bob").encode(), "of another key": token(OTHER).encode(),
        "expired": token(exp=time.time() - 60).encode(), "no token": b"x", "no text": b"\xff",
    }[secret]
    async with connect(broker) as (client, _):
        await client.log_in("PLAIN", plain("alice", token(groups=["readers"])))
        await client.open()
        closed = await client.ask(first.ConnectionUpdateSecret(wrong, ""))
        assert closed == first.ConnectionClose(
            530, "NOT_ALLOWED - New secret was refused by one of the backends", 10, 70
        )
        assert await client.method() is None


@pytest.mark.parametrize("tls", [False, True])
async def test_amqp_goes_through_a_websocket(broker: TestBroker, signed: Certificates, tls: bool) -> None:
    port = broker.addresses["amqp_websocket" + "_tls" * tls][1]
    url = f"ws{'s' * tls}://127.0.0.1:{port}/ws"
    context = signed.context(signed.sign("dev", common_name="dev")) if tls else None
    async with websocket_connect(url, ssl=context, subprotocols=[Subprotocol("amqp")], proxy=None) as websocket:
        decoder, came = FrameDecoder(131_072), []

        async def method() -> Any:
            while not came:
                octets = await asyncio.wait_for(websocket.recv(), WAIT_SECONDS)
                assert isinstance(octets, bytes)
                came.extend(decode_method(frame.payload) for frame in decoder.feed(octets))
            return came.pop(0)

        await websocket.send(PROTOCOL_HEADER)
        assert ("EXTERNAL" in (await method()).mechanisms.decode().split()) == tls
        octets = method_frame(0, first.ConnectionStartOk({}, "PLAIN", plain("alice", "wonder")))
        for at in range(0, len(octets), 7):  # messages and frames have nothing to do with each other
            await websocket.send(octets[at : at + 7])
        assert isinstance(await method(), first.ConnectionTune)
        open_all = [first.ConnectionTuneOk(10, 131_072, 0), first.ConnectionOpen("/")]
        await websocket.send(b"".join(method_frame(0, each) for each in open_all))
        assert await method() == first.ConnectionOpenOk()
    with pytest.raises(InvalidStatus):
        await websocket_connect(url, ssl=context, subprotocols=[Subprotocol("mqtt")], proxy=None)
