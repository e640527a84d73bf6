"""Who is let in: by address, password file, one password, or nobody; over the native port and HTTP alike."""

import subprocess
from pathlib import Path

import pytest

from fanlight_bench.launch import fanlightd
from tests.conftest import StartBroker
from tests.system.views import ask, stats
from tests.system.wire import Peer, Type, hello, publish, subscribe

WRONG = [{}, {"user": "alice"}, {"user": "alice", "password": "wrong"}, {"user": "mallory", "password": "wonder"}]


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A password file with one user, made by the command that users make it with."""
    file = tmp_path / "users"
    command = [fanlightd(), "passwd", str(file), "alice", "--stdin"]
    subprocess.run(command, input="wonder\n", text=True, check=True, timeout=30, capture_output=True)
    return file


async def refused(port: int, **credentials: object) -> str:
    """The text with which these credentials are refused."""
    async with await Peer.open(port) as peer:
        await peer.send(hello(**credentials))
        error, goodbye = await peer.rest()
        assert error[:3] == [Type.ERROR, None, "authentication_failed"]
        assert goodbye[:2] == [Type.GOODBYE, "authentication_failed"]
        return str(error[3])


async def test_on_a_loopback_address_anybody_may_come_in(start_broker: StartBroker) -> None:
    broker = start_broker()
    async with await Peer.connect(broker.port) as peer:
        assert await peer.publish("a") == 0
    async with await Peer.connect(broker.port, user="alice", password="wonder") as peer:
        assert await peer.publish("a") == 0
    assert (await stats(broker))["logins_anonymous"] == 2


async def test_a_password_file_lets_in_who_is_in_it(start_broker: StartBroker, users: Path) -> None:
    broker = start_broker(password_file=users)
    async with await Peer.connect(broker.port, user="alice", password="wonder") as alice:
        assert await alice.publish("a") == 0
    texts = [await refused(broker.port, **credentials) for credentials in WRONG]
    # A wrong password and an unknown user are told the same.
    assert texts[2] == texts[3]
    assert not any("wonder" in line for line in broker.lines)
    assert ask(f"{broker.http_url}/connections")[0] == 401
    assert ask(f"{broker.http_url}/connections", user="alice", password="wonder")[0] == 200


async def test_one_password_for_everybody_comes_from_the_environment(start_broker: StartBroker) -> None:
    broker = start_broker(environment={"FANLIGHT_PASSWORD": "sesame"})
    for user in (None, "anybody"):  # nil is as good as left out
        async with await Peer.connect(broker.port, password="sesame", user=user) as peer:
            assert await peer.publish("a") == 0
    for credentials in ({}, {"password": "Sesame"}, {"user": "x", "password": ""}):
        await refused(broker.port, **credentials)


async def test_frames_behind_a_refused_hello_are_not_processed(start_broker: StartBroker) -> None:
    broker = start_broker(environment={"FANLIGHT_PASSWORD": "sesame"})
    async with await Peer.open(broker.port) as peer:
        await peer.send(hello(password="wrong"), subscribe(1, 1, "#"), publish("a", b"in"), publish("a", b"", 2))
        assert [each[0] for each in await peer.rest()] == [Type.ERROR, Type.GOODBYE]
    status, text = ask(f"{broker.http_url}/stats", user="x", password="sesame")
    assert status == 200
    assert '"messages_in": 0' in text
    assert '"subscribes": 0' in text


@pytest.mark.parametrize("flag", ["--native-host", "--http-host"])
def test_every_address_without_a_password_is_refused_with_advice(flag: str) -> None:
    ran = subprocess.run(
        [fanlightd(), "serve", flag, "0.0.0.0", "--native-port", "0", "--http-port", "0"],
        capture_output=True, text=True, timeout=30, check=False,
    )
    assert ran.returncode == 2
    for advice in ("fanlightd user add", "--users-file", "FANLIGHT_PASSWORD", "--allow-anonymous"):
        assert advice in ran.stderr


async def test_off_loopback_http_asks_for_credentials_but_for_its_health(
    start_broker: StartBroker, users: Path
) -> None:
    broker = start_broker(native_host="0.0.0.0", http_host="0.0.0.0", password_file=users)
    url = broker.http_url
    assert ask(f"{url}/healthz")[0] == ask(f"{url}/readyz")[0] == 200
    for path in ("/", "/metrics", "/stats", "/connections", "/subscriptions", "/topics", "/explain?topic=a"):
        assert ask(url + path)[0] == 401
        assert ask(url + path, user="alice", password="wrong")[0] == 401
        assert ask(url + path, user="alice", password="wonder")[0] == 200
    async with await Peer.connect(broker.port, user="alice", password="wonder") as alice:
        await alice.settle()
    await refused(broker.port)


async def test_allow_anonymous_opens_every_address_on_request(start_broker: StartBroker) -> None:
    broker = start_broker(native_host="0.0.0.0", http_host="0.0.0.0", allow_anonymous=True)
    async with await Peer.connect(broker.port) as peer:
        await peer.settle()
    assert ask(f"{broker.http_url}/stats")[0] == 200
