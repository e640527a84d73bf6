"""An HTTP service that decides who a client is, asked by a running broker."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.conftest import StartBroker
from tests.system.test_credentials import ACCEPTED, REFUSED, mqtt, native_code, reload
from tests.system.test_users import user
from tests.system.views import ask


class Service:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.allowed = {"alice": "wonder"}
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        question = await request.json()
        self.asked.append(question)
        return web.json_response({"allow": self.allowed.get(question["user"]) == question["password"], "groups": ["a"]})


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service, app = Service(), web.Application()
    app.router.add_post("/auth", service.handle)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    service.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/auth"  # type: ignore[union-attr]
    yield service
    await runner.cleanup()


@pytest.mark.parametrize("version", [V3, V5])
async def test_the_service_decides_about_every_kind_of_client(
    start_broker: StartBroker, service: Service, tmp_path: Path, version: Version
) -> None:
    users = tmp_path / "users.toml"
    added = await asyncio.to_thread(user, "add", users, "admin", password="of admin")
    assert added.returncode == 0
    broker = await asyncio.to_thread(start_broker, auth_url=service.url, users_file=str(users))
    async with mqtt(broker, version, "c1", user_name="alice", password=b"wonder") as client:
        assert client.code == ACCEPTED
    async with mqtt(broker, version, "c1", user_name="alice", password=b"wrong") as client:
        assert client.code == REFUSED[version]
    assert service.asked[0] == {
        "user": "alice", "password": "wonder", "client_id": "c1", "address": "127.0.0.1", "protocol": "mqtt",
        "listener": "mqtt", "certificate": "",
    }
    assert await native_code(broker, user="alice", password="wonder") == ACCEPTED
    assert service.asked[-1]["protocol"] == "native"
    asked = len(service.asked)
    assert await native_code(broker, user="admin", password="of admin") == ACCEPTED
    assert await native_code(broker, user="admin", password="wrong") == "authentication_failed"
    assert await native_code(broker) == "authentication_failed"
    assert len(service.asked) == asked
    status, _ = await asyncio.to_thread(ask, broker.http_url + "/connections", user="alice", password="wonder")
    assert status == 200
    assert not any("wonder" in line for line in broker.lines)


async def test_a_broker_goes_on_while_the_service_is_gone_and_forgets_at_reload(
    start_broker: StartBroker, service: Service
) -> None:
    broker = await asyncio.to_thread(start_broker, auth_url=service.url)
    async with mqtt(broker, V5, "c1", user_name="alice", password=b"wonder") as client:
        assert client.code == ACCEPTED
        service.allowed.clear()
        async with mqtt(broker, V5, "c1x", user_name="alice", password=b"wonder") as other:
            assert other.code == REFUSED[V5]
        async with mqtt(broker, V5, "c1", user_name="alice", password=b"wonder") as same:
            assert same.code == ACCEPTED  # remembered
        await asyncio.to_thread(reload, broker)
        async with mqtt(broker, V5, "c1", user_name="alice", password=b"wonder") as same:
            assert same.code == REFUSED[V5]
