"""The users file while a broker runs: `fanlightd user`, groups, and what a reload ends."""

import subprocess
from pathlib import Path

import pytest

from fanlight_bench.launch import fanlightd
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5
from tests.conftest import StartBroker
from tests.require import command
from tests.system.test_credentials import ACCEPTED, mqtt, native_code, reload


def user(command: str, file: Path, *arguments: str, password: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [fanlightd(), "user", command, str(file), *arguments, *(["--stdin"] if password else [])],
        input=f"{password}\n", text=True, timeout=60, capture_output=True,
    )


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users.toml"
    for name in ("alice", "bob", "carol"):
        assert user("add", file, name, "--group", "ops", password=f"of {name}").returncode == 0
    return file


def change_groups(users: Path) -> None:
    users.write_text(users.read_text().replace('groups = ["ops"]', 'groups = ["dev"]', 1))


def make_theirs(file: Path) -> None:
    passwd = command("mosquitto_passwd", package="mosquitto")
    subprocess.run([passwd, "-b", "-c", str(file), "dave", "daves"], check=True, timeout=60, capture_output=True)


async def test_a_reload_ends_the_connections_of_changed_and_removed_users(
    start_broker: StartBroker, users: Path
) -> None:
    broker = start_broker(users_file=str(users))
    assert await native_code(broker, user="alice", password="of alice") == ACCEPTED
    assert await native_code(broker, user="alice", password="of bob") == "authentication_failed"
    fields = [{"user_name": each, "password": f"of {each}".encode()} for each in ("alice", "bob", "carol")]
    async with (
        mqtt(broker, V5, "a", **fields[0]) as alice, mqtt(broker, V5, "b", **fields[1]) as bob,
        mqtt(broker, V5, "c", **fields[2]) as carol,
    ):
        assert [each.code for each in (alice, bob, carol)] == [ACCEPTED] * 3
        change_groups(users)  # alice's
        assert user("rm", users, "bob").returncode == 0
        reload(broker)
        assert (await alice.rest())[0] == 0xE0
        assert (await bob.rest())[:3:2] == bytes((0xE0, ReasonCode.NOT_AUTHORIZED))
        carol.writer.write(b"\xc0\x00")  # PINGREQ
        await carol.answered(0xD0)
    assert await native_code(broker, user="alice", password="of alice") == ACCEPTED
    assert await native_code(broker, user="bob", password="of bob") == "authentication_failed"


async def test_users_of_mosquitto_are_taken_over_and_renewed(
    start_broker: StartBroker, users: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "passwd"
    make_theirs(theirs)
    assert user("import", users, str(theirs), "--group", "old").returncode == 0
    assert "dave  [old]  (mosquitto)" in user("ls", users).stdout
    broker = start_broker(users_file=str(users))
    assert await native_code(broker, user="dave", password="daves") == ACCEPTED
    assert await native_code(broker, user="dave", password="dave's") == "authentication_failed"
    assert user("passwd", users, "dave", password="newer").returncode == 0
    assert "dave  [old]  (argon2, scram)" in user("ls", users).stdout
    reload(broker)
    assert await native_code(broker, user="dave", password="newer") == ACCEPTED


def test_what_goes_wrong_changes_nothing(users: Path, tmp_path: Path) -> None:
    before = users.read_text()
    for arguments, said in [
        (("add", users, "alice"), "has a user 'alice' already"),
        (("add", users, "eve", "--group", "anonymous"), "of clients without a user"),
        (("add", users, "eve", "--limit", "connections=many"), "NAME=NUMBER"),
        (("add", users, "e:ve"), "must not contain"),
        (("passwd", users, "eve"), "has no user 'eve'"),
    ]:
        done = user(*arguments, password="secret")  # type: ignore[arg-type]
        assert (done.returncode, users.read_text()) == (1, before)
        assert said in done.stderr
    assert user("rm", users, "eve").returncode == 1
    assert "no such file" in user("ls", tmp_path / "none").stderr
