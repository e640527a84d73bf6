"""Namespaces in a broker process: they are apart over a SIGKILL, and views are for the root alone."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fanlight
from fanlight_bench.launch import Broker, fanlightd
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from tests.conftest import StartBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.views import ask
from tests.system.wire import Peer, publish

FILE = """\
[[namespace]]
user = "boss"
name = ""

[[namespace]]
name = "%u"

[[allow]]
everything = "#"
admin = ["read", "write"]
"""
TENANTS = ("acme", "beta")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    for user in (*TENANTS, "boss"):
        command = [fanlightd(), "passwd", str(tmp_path / "users"), user, "--stdin"]
        subprocess.run(command, input="wonder\n", text=True, check=True, timeout=60, capture_output=True)
    (tmp_path / "permissions.toml").write_text(FILE)
    return {
        "password_file": tmp_path / "users", "permissions": tmp_path / "permissions.toml", "data": tmp_path / "data",
        "archive": tmp_path / "archive", "archive_receipts": True,
    }


async def mqtt(broker: Broker, user: str, name: str = "dev", **fields: Any) -> MqttPeer:
    return await MqttPeer.connect(
        broker.mqtt_port, name, user_name=user, password=b"wonder", session_expiry_interval=600, **fields
    )


def url(broker: Broker, user: str) -> str:
    return broker.url.replace("://", f"://{user}:wonder@")


def view(broker: Broker, path: str, user: str = "boss") -> tuple[int, Any]:
    code, body = ask(f"{broker.http_url}{path}", user=user, password="wonder")[:2]
    return code, json.loads(body)


async def test_a_kill_and_a_restart_keep_them_apart(start_broker: StartBroker, files: dict[str, Any]) -> None:
    broker = start_broker(**files)
    for user in TENANTS:
        async with await mqtt(broker, user, clean_start=True) as session:
            await session.subscribe("t/#", qos=1)
    for user in TENANTS:
        async with fanlight.connect(url(broker, user)) as client:
            assert await client.queues.add("q", "t.#")
        async with await mqtt(broker, user, "publisher", clean_start=True) as publisher:
            await publisher.send(Publish("t/a", user.encode(), 1, False, packet_id=1))
            assert isinstance(await publisher.packet(), PubAck)
    broker.kill()
    broker = start_broker(**files)
    for user in TENANTS:
        async with fanlight.connect(url(broker, user)) as client:
            assert [each.payload for each in await client.queues.peek("q", 10)] == [user.encode()]
            async with client.replay("#", past_only=True) as replay:
                assert [each.payload async for each in replay] == [user.encode()]
        async with await mqtt(broker, user, clean_start=False) as session:
            assert (await session.message()).payload == user.encode()
    code, sessions = view(broker, "/sessions")
    assert (code, sorted((each["client"], each["namespace"]) for each in sessions["sessions"])) == (
        200, [("dev", "acme"), ("dev", "beta"), ("publisher", "acme"), ("publisher", "beta")],
    )  # fmt: skip
    assert {each["namespace"] for each in view(broker, "/queues")[1]["queues"]} == set(TENANTS)
    found = view(broker, "/explain?topic=t.a&namespace=acme")[1]
    assert {each["filter"] for each in found["matches"]} == {"t/#", "t.#"}
    assert view(broker, "/explain?topic=t.a")[1]["total"] == 0
    assert view(broker, "/explain?topic=t.a&namespace=nobody")[0] == 400
    stats = view(broker, "/stats")[1]
    assert (stats["namespaces"], stats["sessions"], stats["queues"]) == (2, 4, 2)
    assert view(broker, "/sessions", "acme")[0] == 403
    async with await Peer.connect(broker.port, user="boss", password="wonder") as boss:
        await boss.subscribe(1, "#")
        async with fanlight.connect(url(broker, "acme")) as client:
            assert await client.publish("t.a", b"x", receipt=True) == 2
        await boss.send(publish("t.a", b"mine"))
        assert (await boss.message()).payload == b"mine"
