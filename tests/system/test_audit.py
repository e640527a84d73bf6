"""The audit log of a running broker: logins and refusals in each protocol, reloads, and connections that it ends."""

import asyncio
import json
from pathlib import Path
from typing import Any

from fanlight_broker.protocols.mqtt.packets import ConnAck
from fanlight_broker.protocols.mqtt.version import V5
from tests.broker.auth.scram_client import ScramClient
from tests.conftest import StartBroker
from tests.system.test_credentials import mqtt, native_code, reload
from tests.system.test_scram import client
from tests.system.test_users import user
from tests.system.views import ask


def notes(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_who_came_in_and_who_was_refused_is_noted(start_broker: StartBroker, tmp_path: Path) -> None:
    users, log = tmp_path / "users.toml", tmp_path / "audit.log"
    for name in ("alice", "bob"):
        await asyncio.to_thread(user, "add", users, name, "--group", "ops", password=f"of {name}")
    broker = await asyncio.to_thread(start_broker, users_file=str(users), audit_log=str(log))
    assert await native_code(broker, user="eve", password="secret") == "authentication_failed"
    status, _ = await asyncio.to_thread(ask, broker.http_url + "/stats", user="alice", password="secret")
    assert status == 401
    async with client(broker) as one:
        answer = await one.log_in(ScramClient("bob", "of bob"))
        assert isinstance(answer, ConnAck)
        assert answer.reason_code == 0
    async with client(broker) as one:
        await one.log_in(ScramClient("bob", "secret"))
    async with mqtt(broker, V5, "c1", user_name="alice", password=b"of alice") as alice:
        await asyncio.to_thread(user, "rm", users, "alice")
        await asyncio.to_thread(reload, broker)
        await alice.rest()
    broker.process.terminate()
    await asyncio.to_thread(broker.process.wait, 60)
    found = notes(log)
    assert [(each["kind"], each.get("user")) for each in found] == [
        ("started", None), ("login_refused", "eve"), ("login_refused", "alice"), ("login", "bob"),
        ("login_refused", "bob"), ("login", "alice"), ("connection_ended", "alice"), ("reloaded", None),
        ("stopped", None),
    ]
    assert found[5] | {"time": ""} == {
        "time": "", "kind": "login", "user": "alice", "unverified_user": "", "how": "credentials", "groups": ["ops"],
        "expires": None, "permissions": None, "client": "c1", "address": "127.0.0.1", "protocol": "mqtt",
        "listener": "mqtt", "certificate": "",
    }
    assert found[1]["reason"] == "wrong user name or password"
    assert [each["protocol"] for each in found[1:6]] == ["native", "http", "mqtt", "mqtt", "mqtt"]
    for secret in ("secret", "of alice", "of bob"):
        assert secret not in log.read_text()
