"""What an operator does with bridges, by HTTP: pausing, resuming, connecting anew, and draining the broker."""

import asyncio
from pathlib import Path
from typing import Any

from tests.conftest import StartBroker, TestBroker
from tests.interop.bridged import bridge, free_port, gather_until, publish_many, route, up, write_bridges
from tests.system.http_api import ApiClient
from tests.system.mqtt_peer import MqttPeer
from tests.system.views import eventually


async def start_pair(tmp_path: Path, start_broker: StartBroker, **more: object) -> tuple[TestBroker, TestBroker]:
    """The far broker, and the near one, whose bridge `far` is up."""
    far = await asyncio.to_thread(start_broker)
    file = write_bridges(tmp_path / "b.toml", [
        bridge("far", far.mqtt_port, route("plant/#")),
        bridge("away", free_port(), route("plant/#"), backoff_seconds_min=3_000, backoff_seconds_max=3_000),
    ])
    near = await asyncio.to_thread(start_broker, bridges=file, **more)
    await asyncio.to_thread(up, near, "far")
    return far, near


async def test_a_paused_bridge_collects_and_sends_it_when_it_is_resumed(
    tmp_path: Path, start_broker: StartBroker
) -> None:
    far, near = await start_pair(tmp_path, start_broker, audit_log=tmp_path / "audit.log")
    api = ApiClient(near.http_url)

    async def ok(method: str, path: str) -> dict[str, Any]:
        return await asyncio.to_thread(api.ok, method, path)

    assert [each["name"] for each in (await ok("GET", "/bridges?sort=name"))["items"]] == ["away", "far"]
    paused = await ok("POST", "/bridges/far/pause")
    assert (paused["state"], paused["reason"]) == ("paused", "an operator has paused it")
    await publish_many(near.mqtt_port, ["plant/a"], 20)
    assert (await ok("GET", "/bridges/far"))["waiting"] == 20
    assert (await ok("POST", "/bridges/far/pause"))["state"] == "paused"
    assert "rests" in await asyncio.to_thread(api.refused, 409, "POST", "/bridges/far/reconnect")
    async with await MqttPeer.connect(far.mqtt_port) as there:
        await there.subscribe("#", qos=1)
        await ok("POST", "/bridges/far/resume")
        await gather_until(there, {b"%d" % number for number in range(20)})
    await ok("POST", "/bridges/far/reconnect")
    await asyncio.to_thread(up, near, "far", 3)
    assert (await ok("GET", "/bridges/far"))["connects"] == 3
    # The other one waits for 25 minutes or more; asked to, it tries at once.
    failures = (await ok("GET", "/bridges/away"))["failures"]
    await ok("POST", "/bridges/away/reconnect")
    await eventually(
        near, lambda seen: any(each["failures"] > failures for each in seen["bridges"] if each["name"] == "away"),
        "/bridges",
    )
    await asyncio.to_thread(api.refused, 404, "POST", "/bridges/none/pause")
    near.terminate()
    assert "POST /api/v1/bridges/{name}/pause" in (tmp_path / "audit.log").read_text()


async def test_bridges_rest_while_the_broker_is_drained(tmp_path: Path, start_broker: StartBroker) -> None:
    """Their near ends, which nobody refuses, do not come back before that is taken back."""
    _, near = await start_pair(tmp_path, start_broker)
    api = ApiClient(near.http_url)
    await publish_many(near.mqtt_port, ["plant/a"], 5)
    assert (await asyncio.to_thread(api, "POST", "/drain", {"seconds": 60})).status == 202

    def drained() -> dict[str, Any]:
        while (found := api.ok("GET", "/drain"))["state"] != "drained":
            pass
        return found

    async with asyncio.timeout(60):
        assert (await asyncio.to_thread(drained))["connections"] == 0
    links = (await asyncio.to_thread(api.ok, "GET", "/bridges"))["items"]
    assert {(each["state"], each["reason"]) for each in links} == {("stopped", "the broker is being drained")}
    assert "drained" in await asyncio.to_thread(api.refused, 409, "POST", "/bridges/far/reconnect")
    await asyncio.to_thread(api.ok, "DELETE", "/drain")
    await asyncio.to_thread(up, near, "far", 2)
    assert sum('"bridge_up"' in line for line in near.lines) == 2
