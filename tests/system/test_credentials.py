"""Credentials while a broker runs: on one that has nothing to check them against, and when they change."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fanlight_bench.launch import Broker, fanlightd
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import Disconnect
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import connect, packets_of
from tests.conftest import StartBroker, TestBroker
from tests.interop.mosquitto import Sub, pub, run
from tests.system.views import ask, stats, view
from tests.system.wire import WAIT_SECONDS, Peer, Type, hello

ACCEPTED = 0
REFUSED = {V3: 4, V5: ReasonCode.BAD_USER_NAME_OR_PASSWORD}
versions = pytest.mark.parametrize("version", [V3, V5])


def set_password(file: Path, user: str, text: str) -> None:
    command = [fanlightd(), "passwd", str(file), user, "--stdin"]
    subprocess.run(command, input=f"{text}\n", text=True, check=True, timeout=60, capture_output=True)


def delete_user(file: Path, user: str) -> None:
    command = [fanlightd(), "passwd", str(file), user, "--delete"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users"
    set_password(file, "alice", "wonder")
    set_password(file, "bob", "builder")
    return file


def reload(broker: TestBroker) -> None:
    before = sum('"reloaded"' in line for line in broker.lines)
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for(lambda: sum('"reloaded"' in line for line in broker.lines) > before, WAIT_SECONDS)


class MqttClient:
    """A raw MQTT connection: CONNECT, CONNACK, and what comes until the end."""

    def __init__(self, version: Version, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.version, self.reader, self.writer = version, reader, writer
        self.code = -1  # of CONNACK

    async def connect(self, client_id: str, **fields: object) -> None:
        self.writer.write(encode(connect(client_id, self.version, **fields), self.version))
        head = await asyncio.wait_for(self.reader.readexactly(2), WAIT_SECONDS)
        assert head[0] == 0x20
        self.code = (await asyncio.wait_for(self.reader.readexactly(head[1]), WAIT_SECONDS))[1]

    async def answered(self, kind: int) -> bytes:
        """The body of the next packet, which is of this kind."""
        head = await asyncio.wait_for(self.reader.readexactly(2), WAIT_SECONDS)
        assert head[0] == kind
        return await asyncio.wait_for(self.reader.readexactly(head[1]), WAIT_SECONDS)

    async def rest(self) -> bytes:
        return await asyncio.wait_for(self.reader.read(), WAIT_SECONDS)


@asynccontextmanager
async def mqtt(broker: Broker, version: Version, client_id: str = "", **fields: object) -> AsyncIterator[MqttClient]:
    client = MqttClient(version, *await asyncio.open_connection("127.0.0.1", broker.mqtt_port))
    try:
        await client.connect(client_id, **fields)
        yield client
    finally:
        client.writer.close()


async def native_code(broker: Broker, **credentials: object) -> int | str:
    """0, or the error that these credentials are refused with."""
    async with await Peer.open(broker.port) as peer:
        await peer.send(hello(**credentials))
        answer = await peer.frame()
        return ACCEPTED if answer[0] == Type.WELCOME else str(answer[2])


# -- credentials that nothing is there to check against ----------------------------------------------------------------

NAMES: list[dict[str, object]] = [
    {"user_name": ""}, {"user_name": "", "password": b""}, {"user_name": "x"}, {"user_name": "x", "password": b""},
    {"user_name": "x", "password": b"y"}, {"user_name": "x", "password": b"\xff\xfe"},
]


@versions
async def test_an_open_broker_lets_mqtt_clients_in_with_any_credentials(
    start_broker: StartBroker, version: Version
) -> None:
    broker = start_broker()
    wanted = [*NAMES, {"password": b"y"}] if version is V5 else NAMES  # 3.1.1 has no password without a name
    for fields in wanted:
        async with mqtt(broker, version, "device", **fields) as client:
            assert client.code == ACCEPTED, fields
            (shown,) = (await view(broker, "/connections"))["connections"]
            assert (shown["user"], shown["verified"]) == ("", False)
            assert shown["unverified_user"] == fields.get("user_name", "")
    assert (await stats(broker))["logins_anonymous"] == len(wanted)


async def test_an_open_broker_lets_native_clients_in_with_any_credentials(start_broker: StartBroker) -> None:
    broker = start_broker()
    for credentials in ({"user": ""}, {"user": "x"}, {"password": "y"}, {"user": "x", "password": "y"}):
        assert await native_code(broker, **credentials) == ACCEPTED


@pytest.mark.parametrize("version", [3, 5])
def test_mosquitto_pub_with_a_user_name_and_a_password_publishes_to_an_open_broker(
    start_broker: StartBroker, version: int
) -> None:
    port = start_broker().mqtt_port
    with Sub(port, "-t", "a", "-u", "", version=version) as sub:
        pub(port, "-u", "x", "-P", "y", "-t", "a", "-m", "1", "-q", 1, version=version)
        pub(port, "-u", "x", "-t", "a", "-m", "2", "-q", 1, version=version)
        assert [message.payload for message in sub.messages(2)] == [b"1", b"2"]


@versions
async def test_a_label_is_no_user_and_takes_nobodys_session(
    start_broker: StartBroker, users: Path, version: Version
) -> None:
    broker = start_broker(password_file=users, allow_anonymous=True)
    async with (
        mqtt(broker, version, "hers", clean_start=False, user_name="alice", password=b"wonder") as alice,
        mqtt(broker, version, "hers", clean_start=False, user_name="alice") as label,
    ):
        assert alice.code == ACCEPTED
        assert label.code == (ReasonCode.NOT_AUTHORIZED if version is V5 else 5)
        (session,) = (await view(broker, "/sessions"))["sessions"]
        assert (session["user"], session["connected"]) == ("alice", True)


@versions
async def test_where_anonymous_is_allowed_a_password_is_checked_and_a_name_alone_is_not(
    start_broker: StartBroker, users: Path, version: Version
) -> None:
    broker = start_broker(password_file=users, allow_anonymous=True)
    for fields in ({}, {"user_name": ""}, {"user_name": "", "password": b""}, {"user_name": "alice"}):
        async with mqtt(broker, version, **fields) as client:
            assert client.code == ACCEPTED, fields
    for fields in ({"user_name": "alice", "password": b""}, {"user_name": "x", "password": b"y"}):
        async with mqtt(broker, version, **fields) as client:
            assert client.code == REFUSED[version], fields
    assert await native_code(broker, user="alice") == ACCEPTED
    assert await native_code(broker, user="alice", password="y") == "authentication_failed"


@versions
async def test_where_passwords_are_needed_nothing_less_is_enough(
    start_broker: StartBroker, users: Path, version: Version
) -> None:
    broker = start_broker(password_file=users)
    for fields in [{}, *NAMES, {"user_name": "alice"}, {"user_name": "alice", "password": b"builder"}]:
        async with mqtt(broker, version, **fields) as client:
            assert client.code == REFUSED[version], fields
    async with mqtt(broker, version, user_name="alice", password=b"wonder") as client:
        assert client.code == ACCEPTED
    assert run("mosquitto_pub", broker.mqtt_port, "-u", "x", "-P", "y", "-t", "a", "-m", "1")[0] != 0
    assert await native_code(broker, user="alice") == "authentication_failed"


# -- credentials that change -------------------------------------------------------------------------------------------


@versions
async def test_a_changed_password_ends_the_connections_of_its_user_and_of_nobody_else(
    start_broker: StartBroker, users: Path, version: Version
) -> None:
    broker = start_broker(password_file=users)
    async with (
        await Peer.connect(broker.port, user="alice", password="wonder") as native,
        await Peer.connect(broker.port, user="bob", password="builder") as bob,
        mqtt(broker, version, user_name="alice", password=b"wonder") as client,
        mqtt(broker, version, user_name="bob", password=b"builder") as other,
    ):
        set_password(users, "alice", "changed")
        reload(broker)
        goodbye = (await native.rest())[-1]
        assert goodbye[:2] == [Type.GOODBYE, "authentication_failed"]
        farewell = packets_of(await client.rest(), version)
        if version is V5:
            (disconnect,) = farewell
            assert isinstance(disconnect, Disconnect)
            assert disconnect.reason_code is ReasonCode.NOT_AUTHORIZED
        else:
            assert farewell == []  # 3.1.1 has no words for it
        assert await bob.publish("a") == 0
        other.writer.write(b"\xc0\0")
        assert await other.reader.readexactly(2) == b"\xd0\0"
    assert await native_code(broker, user="alice", password="wonder") == "authentication_failed"
    assert await native_code(broker, user="alice", password="changed") == ACCEPTED
    shown = ask(f"{broker.http_url}/stats", user="bob", password="builder")[1]
    assert '"connections_revoked": 2' in shown


async def test_a_deleted_user_is_out_and_a_reload_without_a_change_ends_nothing(
    start_broker: StartBroker, users: Path
) -> None:
    broker = start_broker(password_file=users)
    async with await Peer.connect(broker.port, user="alice", password="wonder") as alice:
        reload(broker)
        assert await alice.publish("a") == 0
        delete_user(users, "alice")
        reload(broker)
        assert (await alice.rest())[-1][:2] == [Type.GOODBYE, "authentication_failed"]


async def test_anonymous_clients_are_out_when_they_are_not_allowed_any_more(
    start_broker: StartBroker, users: Path, tmp_path: Path
) -> None:
    config = tmp_path / "fanlight.toml"
    config.write_text("")
    broker = start_broker(config=config)
    async with await Peer.connect(broker.port, user="label") as anonymous, mqtt(broker, V5, user_name="x") as client:
        assert client.code == ACCEPTED
        config.write_text(f'password_file = "{users}"\n')
        reload(broker)
        assert (await anonymous.rest())[-1][:2] == [Type.GOODBYE, "authentication_failed"]
        assert [type(packet) for packet in packets_of(await client.rest(), V5)] == [Disconnect]
