"""A session moves to another client identifier by /api/v1: its subscriptions and all that waits, over a restart."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, PubAck, Publish, PubRec
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5
from tests.broker.protocols.mqtt.world import connect
from tests.conftest import StartBroker, TestBroker
from tests.system.http_api import ApiClient
from tests.system.mqtt_peer import MqttPeer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("moves")


@pytest.fixture(scope="module")
def broker(folder: Path, start_module_broker: StartBroker) -> TestBroker:
    return start_module_broker(data=str(folder / "data"), audit_log=str(folder / "audit.log"))


@pytest.fixture
def api(broker: TestBroker) -> ApiClient:
    return ApiClient(broker.http_url)


async def kept(broker: TestBroker, name: str, filter: str) -> None:
    async with await MqttPeer.connect(broker.mqtt_port, name, session_expiry_interval=3_600) as peer:
        await peer.subscribe(filter, qos=2)
    api = ApiClient(broker.http_url)
    # Until its end was read: what is published before is sent to it.
    await eventual(lambda: not api.ok("GET", f"/sessions/{name}")["connected"])


async def eventual(look: Callable[[], Any]) -> Any:
    """What `look` finds, once it finds something."""
    while True:
        if found := await asyncio.to_thread(look):
            return found
        await asyncio.sleep(0.01)


def publish(api: ApiClient, topic: str, *payloads: str) -> None:
    for payload in payloads:
        api.ok("POST", "/messages", {"topic": topic, "payload": payload, "qos": 1})


async def back(broker: TestBroker, name: str) -> tuple[MqttPeer, bool]:
    """A client that wants the session of its name; and whether there was one."""
    peer = MqttPeer(*await asyncio.open_connection("127.0.0.1", broker.mqtt_port), V5)
    await peer.send(connect(name, V5, clean_start=False, session_expiry_interval=3_600))
    answer = await peer.packet()
    assert isinstance(answer, ConnAck)
    return peer, answer.session_present


async def acknowledged(peer: MqttPeer, count: int) -> list[tuple[bytes, bool]]:
    """Payload and DUP of the next messages."""
    found = []
    for _ in range(count):
        message = await peer.packet()
        assert isinstance(message, Publish)
        assert message.packet_id is not None
        found.append((bytes(message.payload), message.dup))
        await peer.send(PubAck(message.packet_id))
    return found


async def test_what_waits_and_what_is_in_flight_is_for_the_other_client(broker: TestBroker, api: ApiClient) -> None:
    old, present = await back(broker, "old")
    assert not present
    await old.subscribe("move/a/#", qos=1)
    await asyncio.to_thread(publish, api, "move.a.1", "one", "two")
    for _ in range(2):  # in flight; and not acknowledged
        assert isinstance(await old.packet(), Publish)
    await old.send(Publish("elsewhere", b"x", qos=2, packet_id=9))
    assert isinstance(await old.packet(), PubRec)
    assert (await asyncio.to_thread(api.ok, "GET", "/sessions/old"))["unreleased"] == 1
    moved = await asyncio.to_thread(api.ok, "POST", "/sessions/old/move", {"to": "new/7"})
    assert moved == {"client": "new/7", "moved": True, "messages": 0, "in_flight": 2, "subscriptions": 1, "lost": 0}
    goodbye = await old.packet()
    assert isinstance(goodbye, Disconnect)
    assert goodbye.reason_code == ReasonCode.ADMINISTRATIVE_ACTION
    await old.close()
    await asyncio.to_thread(publish, api, "move.a.2", "three")
    await asyncio.to_thread(api.refused, 404, "GET", "/sessions/old")
    shown = await asyncio.to_thread(api.ok, "GET", "/sessions/new%2F7")
    assert (shown["queued"], shown["unreleased"]) == (1, 0)  # its own packet identifiers are other messages
    again, present = await back(broker, "old")
    assert not present
    await again.close()
    new, present = await back(broker, "new/7")
    assert present
    assert await acknowledged(new, 3) == [(b"one", True), (b"two", True), (b"three", False)]
    await new.close()


async def test_another_session_is_in_the_way_unless_it_is_to_end(broker: TestBroker, api: ApiClient) -> None:
    await kept(broker, "from", "move/b")
    await kept(broker, "to", "move/c")
    await asyncio.to_thread(publish, api, "move.b", "mine")
    await asyncio.to_thread(publish, api, "move.c", "lost")
    refused = await asyncio.to_thread(api, "POST", "/sessions/from/move", {"to": "to"})
    assert (refused.status, refused.body["messages"], refused.body["connected"]) == (409, 1, False)
    assert "already" in await asyncio.to_thread(api.refused, 409, "POST", "/sessions/from/move", {"to": "from"})
    assert "control" in await asyncio.to_thread(api.refused, 400, "POST", "/sessions/from/move", {"to": "a\0"})
    await asyncio.to_thread(api.refused, 404, "POST", "/sessions/nobody/move", {"to": "x"})
    waiting, _ = await back(broker, "to")  # the new device, which is there already
    moved = await asyncio.to_thread(api.ok, "POST", "/sessions/from/move", {"to": "to", "replace": True})
    assert (moved["messages"], moved["lost"]) == (1, 1)
    peer, present = await back(broker, "to")
    assert present
    assert await acknowledged(peer, 1) == [(b"mine", False)]
    await asyncio.to_thread(publish, api, "move.b", "more")
    assert await acknowledged(peer, 1) == [(b"more", False)]
    await peer.close()
    await waiting.close()


async def test_a_session_that_ends_with_its_connection_stays(broker: TestBroker, api: ApiClient) -> None:
    async with await MqttPeer.connect(broker.mqtt_port, "brief"):
        said = await asyncio.to_thread(api.refused, 409, "POST", "/sessions/brief/move", {"to": "other"})
        assert "ends with its connection" in said
        assert (await asyncio.to_thread(api.ok, "GET", "/sessions/brief"))["connected"] is True


async def test_a_restart_finds_it_under_its_new_name(
    broker: TestBroker, api: ApiClient, folder: Path, start_broker: StartBroker
) -> None:
    await kept(broker, "before", "move/d")
    await asyncio.to_thread(publish, api, "move.d", "kept")
    await asyncio.to_thread(api.ok, "POST", "/sessions/before/move", {"to": "after"})

    def noted() -> list[str]:
        lines = (folder / "audit.log").read_text().splitlines()
        return [line for line in lines if "/move" in line and '"after"' in line]

    (line,) = await eventual(noted)  # a thread writes it
    assert '"in_flight"' in line
    broker.process.kill()
    await asyncio.to_thread(broker.process.wait)
    broker.may_complain = True
    again = await asyncio.to_thread(start_broker, data=str(folder / "data"))
    api = ApiClient(again.http_url)
    await asyncio.to_thread(api.refused, 404, "GET", "/sessions/before")
    peer, present = await back(again, "after")
    assert present
    assert await acknowledged(peer, 1) == [(b"kept", False)]
    await peer.close()
