"""A broker with a file of permissions, as a process: what it decides, how it is reloaded, what it says of a fault."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path

import pytest

from fanlight_bench.launch import Broker, fanlightd
from tests.conftest import StartBroker
from tests.system.views import ask
from tests.system.wire import Peer, Type, publish, subscribe

FILE = """\
[[allow]]
user = "alice"
publish = "site/%u/#"
subscribe = "site/%u/#"
admin = ["read", "write"]

[[allow]]
user = "bob"
subscribe = "site/#"
admin = "read"
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A password file with two users, and a file of permissions."""
    for user in ("alice", "bob"):
        command = [fanlightd(), "passwd", str(tmp_path / "users"), user, "--stdin"]
        subprocess.run(command, input="wonder\n", text=True, check=True, timeout=60, capture_output=True)
    permissions = tmp_path / "permissions.toml"
    permissions.write_text(FILE)
    return tmp_path / "users", permissions


def post(broker: Broker, path: str, user: str) -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(broker.http_url + path, method="POST")
    request.add_header("Authorization", f"Basic {b64encode(f'{user}:wonder'.encode()).decode()}")
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def stats_of(broker: Broker) -> dict[str, int]:
    found: dict[str, int] = json.loads(ask(f"{broker.http_url}/stats", user="alice", password="wonder")[1])
    return found


async def test_who_may_do_what(start_broker: StartBroker, files: tuple[Path, Path]) -> None:
    users, permissions = files
    broker = start_broker(password_file=users, permissions=permissions)
    async with (
        await Peer.connect(broker.port, user="alice", password="wonder") as alice,
        await Peer.connect(broker.port, user="bob", password="wonder") as bob,
    ):
        await bob.subscribe(1, "site.#")
        assert await alice.publish("site.alice.temp", b"20") == 1
        assert (await bob.message()).payload == b"20"
        await alice.send(publish("site.bob.temp", b"x", 77), subscribe(78, 2, "#"))
        refused = await alice.expect(Type.ERROR), await alice.expect(Type.ERROR)
        assert [error[1:3] for error in refused] == [[77, "not_permitted"], [78, "not_permitted"]]
        assert ask(f"{broker.http_url}/connections", user="bob", password="wonder")[0] == 200
        assert post(broker, "/permissions/reload", "bob")[0] == 403
    counted = stats_of(broker)
    assert (counted["permissions_in_force"], counted["publish_denied"], counted["subscribe_denied"]) == (2, 1, 1)


async def test_a_reload_ends_what_is_not_allowed_any_more(start_broker: StartBroker, files: tuple[Path, Path]) -> None:
    users, permissions = files
    broker = start_broker(password_file=users, permissions=permissions)
    broker.may_complain = True
    async with await Peer.connect(broker.port, user="bob", password="wonder") as bob:
        await bob.subscribe(1, "site.#")
        permissions.write_text(FILE.replace('subscribe = "site/#"', 'subscribe = "other/#"'))
        assert post(broker, "/permissions/reload", "alice") == (200, {"rules": 2})
        ended = await bob.expect(Type.ENDED)
        assert ended[1] == 1
        permissions.write_text(FILE)
        os.kill(broker.pid, signal.SIGHUP)
        broker.wait_for_line('"reloaded"')
        await bob.subscribe(2, "site.#")
        permissions.write_text("[[allow]]\npublich = 'x'\n")
        status, said = post(broker, "/permissions/reload", "alice")
        assert status == 409
        assert "permissions.toml, line 1: there is no 'publich'" in str(said["error"])
        os.kill(broker.pid, signal.SIGHUP)
        broker.wait_for_line('"reload_failed"')
        async with await Peer.connect(broker.port, user="alice", password="wonder") as alice:
            assert await alice.publish("site.alice.temp") == 1
    counted = stats_of(broker)
    assert counted["permissions_reloads_failed"] == 2
    metrics = ask(f"{broker.http_url}/metrics", user="alice", password="wonder")[1]
    assert 'permission_decisions_total{rule="line 1"}' in metrics


def test_a_broker_does_not_start_with_a_wrong_file(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("[[allow]]\npublish = 'a/#/b'\n")
    done = subprocess.run(
        [fanlightd(), "serve", "--native-port", "0", "--permissions", str(tmp_path / "p.toml")], capture_output=True,
        text=True, timeout=120,
    )
    assert done.returncode == 2
    assert "permissions: " in done.stderr
    assert "p.toml, line 1: invalid mqtt filter 'a/#/b'" in done.stderr
