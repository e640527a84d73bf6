"""Credentials that expire end their connection, by the wall clock and with the protocol's own code."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import time
from unittest.mock import patch

import jwt

from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.auth.tokens import TokenRules
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.listener import Listener, ProtocolFactory
from fanlight_broker.protocols.amqp import connection_methods as amqp
from fanlight_broker.protocols.amqp.connection import AmqpConnection
from fanlight_broker.protocols.amqp.frames import PROTOCOL_HEADER
from fanlight_broker.protocols.amqp.options import AmqpCounts, AmqpOptions
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.vhost import Vhosts
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from tests.broker.protocols.mqtt.world import connect
from tests.system.test_amqp_logins import Client as AmqpClient
from tests.system.test_amqp_logins import plain
from tests.system.test_transports import give_up
from tests.system.wire import WAIT_SECONDS, Peer, Type, hello

# Of `bench`, at the lowest costs.
HASH = "$argon2id$v=19$m=8,t=1,p=1$gDnodGgh1O8$OaW326IhCPEmFlsDPWltcg"
SECRET = b"0123456789abcdef0123456789abcdef"
MQTT: ProtocolFactory = partial(MqttConnection, MqttOptions(), Counts())


class Wall:
    def __init__(self) -> None:
        self.now = time()

    def __call__(self) -> float:
        return self.now

    def token(self, seconds: float) -> str:
        return jwt.encode({"sub": "alice", "exp": self.now + seconds}, SECRET, "HS256")


@asynccontextmanager
async def listening(folder: Path, protocol: ProtocolFactory) -> AsyncIterator[tuple[Listener, Wall, int]]:
    (folder / "secret").write_bytes(SECRET)
    loop, wall = asyncio.get_running_loop(), Wall()
    broker = Broker(Limits(), lambda: loop.call_soon(flusher.flush), loop.call_soon, clock=monotonic)
    flusher = Flusher(broker.ledger, give_up)
    (folder / "passwords").write_text(f"alice:{HASH}\n")
    authenticator = PasswordAuthenticator(
        Credentials(tokens=TokenRules(folder / "secret"), password_file=folder / "passwords")
    )
    listener = Listener(
        "any", broker, protocol, authenticator, clock=monotonic, shared=ReceiveBuffer(), wall_clock=wall
    )
    try:
        yield listener, wall, (await listener.start("127.0.0.1", 0))[1]
    finally:
        await listener.stop()
        await authenticator.close()


async def test_a_native_connection_ends_when_its_token_does_and_no_other_does(tmp_path: Path) -> None:
    async with listening(tmp_path, NativeConnection) as (listener, wall, port):
        async with await Peer.open(port) as one, await Peer.open(port) as other:
            for peer, seconds in ((one, 1000), (other, 5000)):
                await peer.send(hello(password=wall.token(seconds)))
                assert (await peer.frame())[0] == Type.WELCOME
            wall.now += 1009
            await other.settle()
            assert listener.expired == 0
            wall.now += 2  # the leeway is over
            assert (await one.frame())[:2] == [Type.GOODBYE, "credentials_expired"]
            await other.settle()
        assert listener.counters()["connections_expired"] == 1


async def test_many_that_expire_together_end_some_in_a_turn_and_wait_for_no_tick(tmp_path: Path) -> None:
    async with (
        listening(tmp_path, NativeConnection) as (listener, wall, port),
        await Peer.open(port) as one, await Peer.open(port) as other,
    ):
        for peer in (one, other):
            await peer.send(hello(password=wall.token(1000)))
            assert (await peer.frame())[0] == Type.WELCOME
        with patch("fanlight_broker.net.listener.EXPIRED_PER_TURN", 1):
            wall.now += 2000
            listener._end_the_expired()
            assert listener.expired == 1
            for _ in range(3):
                await asyncio.sleep(0)
            assert listener.expired == 2


async def mqtt_ends(tmp_path: Path, version: Version) -> bytes:
    async with listening(tmp_path, MQTT) as (_, wall, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        packet = connect("c", version, user_name="alice", password=wall.token(1000).encode())
        writer.write(encode(packet, version))
        head = await asyncio.wait_for(reader.readexactly(2), WAIT_SECONDS)
        assert (await reader.readexactly(head[1]))[1] == 0
        wall.now += 2000
        rest = await asyncio.wait_for(reader.read(), WAIT_SECONDS)
        writer.close()
        return rest


async def test_an_mqtt_connection_ends_with_the_code_for_it(tmp_path: Path) -> None:
    assert (await mqtt_ends(tmp_path, V5))[:3:2] == bytes((0xE0, ReasonCode.MAXIMUM_CONNECT_TIME))
    assert await mqtt_ends(tmp_path, V3) == b""  # 3.1.1 has no packet for it


async def test_an_amqp_connection_ends_with_the_token_that_it_has_got_last(tmp_path: Path) -> None:
    protocol = partial(AmqpConnection, AmqpOptions(1_000, 60), AmqpCounts(), Vhosts())
    async with listening(tmp_path, protocol) as (listener, wall, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        client = AmqpClient(reader, writer)
        client.send(PROTOCOL_HEADER)
        assert isinstance(await client.method(), amqp.ConnectionStart)
        await client.log_in("PLAIN", plain("alice", wall.token(1000)))
        await client.open()
        secret = wall.token(5000).encode()
        assert await client.ask(amqp.ConnectionUpdateSecret(secret, "")) == amqp.ConnectionUpdateSecretOk()
        wall.now += 2000
        listener._end_the_expired()
        assert listener.expired == 0
        assert await client.ask(amqp.ConnectionUpdateSecret(b"bench", "")) == amqp.ConnectionUpdateSecretOk()
        wall.now += 50_000
        listener._end_the_expired()
        assert listener.expired == 0  # a password does not expire
        secret = wall.token(1000).encode()
        assert await client.ask(amqp.ConnectionUpdateSecret(secret, "")) == amqp.ConnectionUpdateSecretOk()
        wall.now += 5000
        listener._end_the_expired()
        assert (await client.method()).reply_code == ReplyCode.CONNECTION_FORCED
        writer.close()
        await writer.wait_closed()
