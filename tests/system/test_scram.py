"""SCRAM-SHA-256 as enhanced authentication of MQTT 5, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fanlight_bench.launch import Broker
from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.packets import Auth, ConnAck, Disconnect, Packet, PingReq, PingResp, PubAck, Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5
from tests.broker.auth.scram_client import ScramClient
from tests.broker.protocols.mqtt.world import connect
from tests.conftest import StartBroker, TestBroker
from tests.system.test_credentials import reload
from tests.system.test_users import user
from tests.system.views import stats, view
from tests.system.wire import WAIT_SECONDS

METHOD = "SCRAM-SHA-256"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users.toml"
    assert user("add", file, "alice", "--group", "ops", password="wönder").returncode == 0
    assert user("add", file, "bob", password="builder").returncode == 0
    assert user("add", file, "plain", "--no-scram", password="plain").returncode == 0
    return file


@pytest.fixture
def broker(start_broker: StartBroker, users: Path) -> TestBroker:
    return start_broker(users_file=str(users), allow_anonymous=True)  # for the HTTP views


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *packets: Packet) -> None:
        self.writer.write(b"".join(encode(packet, V5) for packet in packets))

    async def packet(self) -> Packet:
        first, size = await asyncio.wait_for(self.reader.readexactly(2), WAIT_SECONDS)
        if size & 0x80:
            size = (size & 0x7F) | (await self.reader.readexactly(1))[0] << 7
        return decode(first, await asyncio.wait_for(self.reader.readexactly(size), WAIT_SECONDS), V5, 100)

    async def ended(self) -> bool:
        return not await asyncio.wait_for(self.reader.read(), WAIT_SECONDS)

    async def challenge(self) -> bytes:
        packet = await self.packet()
        assert isinstance(packet, Auth), packet
        assert packet.reason_code is ReasonCode.CONTINUE_AUTHENTICATION
        assert packet.properties.authentication_method == METHOD
        return packet.properties.authentication_data or b""

    async def log_in(self, scram: ScramClient, **fields: object) -> ConnAck:
        self.send(connect("c", V5, authentication_method=METHOD, authentication_data=scram.first(), **fields))
        self.send(auth(scram.final(await self.challenge())))
        answer = await self.packet()
        assert isinstance(answer, ConnAck)
        return answer


def auth(data: bytes | None, reason: ReasonCode = ReasonCode.CONTINUE_AUTHENTICATION) -> Auth:
    return Auth(reason, Properties(authentication_method=METHOD, authentication_data=data))


@asynccontextmanager
async def client(broker: Broker) -> AsyncIterator[Client]:
    one = Client(*await asyncio.open_connection("127.0.0.1", broker.mqtt_port))
    try:
        yield one
    finally:
        one.writer.close()


async def test_a_client_and_the_broker_know_each_other(broker: TestBroker) -> None:
    scram = ScramClient("alice", "wönder")
    async with client(broker) as one:
        answer = await one.log_in(scram)
        assert answer.reason_code == 0
        assert answer.properties.authentication_method == METHOD
        assert scram.knows_server(answer.properties.authentication_data or b"")
        one.send(PingReq())
        assert isinstance(await one.packet(), PingResp)
        (shown,) = (await view(broker, "/connections"))["connections"]
        assert (shown["user"], shown["verified"]) == ("alice", True)


async def test_a_first_message_may_come_after_an_empty_challenge(broker: TestBroker) -> None:
    scram = ScramClient("alice", "wönder")
    async with client(broker) as one:
        one.send(connect("c", V5, authentication_method=METHOD))
        assert await one.challenge() == b""
        one.send(auth(scram.first()))
        one.send(auth(scram.final(await one.challenge())))
        answer = await one.packet()
        assert isinstance(answer, ConnAck)
        assert answer.reason_code == 0


@pytest.mark.parametrize(
    ("name", "password", "fields"),
    [
        ("alice", "builder", {}), ("eve", "wönder", {}), ("plain", "plain", {}),
        ("alice", "wönder", {"user_name": "bob"}),
    ],
)
async def test_who_cannot_prove_it_is_refused_with_the_same_words(
    broker: TestBroker, name: str, password: str, fields: dict[str, object]
) -> None:
    scram = ScramClient(name, password)
    async with client(broker) as one:
        one.send(connect("c", V5, authentication_method=METHOD, authentication_data=scram.first(), **fields))
        if not fields:
            one.send(auth(scram.final(await one.challenge())))
        answer = await one.packet()
        assert isinstance(answer, ConnAck)
        assert answer.reason_code is ReasonCode.BAD_USER_NAME_OR_PASSWORD
        if not fields:
            assert answer.properties.reason_string == "wrong user name or password"
        assert await one.ended()
    assert (await stats(broker))["logins_failed"] == 1


async def test_unknown_users_cannot_be_told_from_known_ones_also_after_a_restart(
    start_broker: StartBroker, users: Path
) -> None:
    seen: dict[str, set[tuple[bytes, int]]] = {}
    for _ in range(2):
        broker = start_broker(users_file=str(users))
        for name in ("alice", "eve", "plain", "alice", "eve", "plain"):
            scram = ScramClient(name, "x")
            async with client(broker) as one:
                one.send(connect("c", V5, authentication_method=METHOD, authentication_data=scram.first()))
                scram.final(await one.challenge())
            seen.setdefault(name, set()).add((scram.salt, scram.iterations))
    assert {len(each) for each in seen.values()} == {1}
    assert len({(len(salt), iterations) for each in seen.values() for salt, iterations in each}) == 1


async def test_a_client_shows_again_who_it_is_and_what_it_sent_behind_waits(broker: TestBroker) -> None:
    async with client(broker) as one:
        assert (await one.log_in(ScramClient("alice", "wönder"))).reason_code == 0
        scram = ScramClient("alice", "wönder")
        one.send(auth(scram.first(), ReasonCode.RE_AUTHENTICATE))
        final = auth(scram.final(await one.challenge()))
        one.send(final, Publish("a", b"x", qos=1, packet_id=7))
        answer = await one.packet()
        assert isinstance(answer, Auth)
        assert answer.reason_code is ReasonCode.SUCCESS
        assert scram.knows_server(answer.properties.authentication_data or b"")
        assert isinstance(await one.packet(), PubAck)


@pytest.mark.parametrize(("name", "password"), [("bob", "builder"), ("alice", "wrong")])
async def test_another_user_or_a_wrong_proof_ends_the_connection(broker: TestBroker, name: str, password: str) -> None:
    async with client(broker) as one:
        assert (await one.log_in(ScramClient("alice", "wönder"))).reason_code == 0
        scram = ScramClient(name, password)
        one.send(auth(scram.first(), ReasonCode.RE_AUTHENTICATE))
        one.send(auth(scram.final(await one.challenge())))
        answer = await one.packet()
        assert isinstance(answer, Disconnect)
        assert answer.reason_code is ReasonCode.NOT_AUTHORIZED
        assert await one.ended()


async def test_a_changed_password_ends_the_connection_at_reload(broker: TestBroker, users: Path) -> None:
    async with client(broker) as one:
        assert (await one.log_in(ScramClient("bob", "builder"))).reason_code == 0
        assert user("passwd", users, "bob", password="newer").returncode == 0
        reload(broker)
        answer = await one.packet()
        assert isinstance(answer, Disconnect)
        assert answer.reason_code is ReasonCode.NOT_AUTHORIZED
    async with client(broker) as one:
        assert (await one.log_in(ScramClient("bob", "newer"))).reason_code == 0


async def test_where_there_is_no_users_file_the_method_is_not_known(start_broker: StartBroker) -> None:
    async with client(start_broker()) as one:
        one.send(connect("c", V5, authentication_method=METHOD, authentication_data=b"n,,n=a,r=12345678"))
        answer = await one.packet()
        assert isinstance(answer, ConnAck)
        assert answer.reason_code is ReasonCode.BAD_AUTHENTICATION_METHOD
