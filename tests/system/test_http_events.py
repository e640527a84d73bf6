"""/api/v1/events of a running broker: what it says as it happens, and what a listener misses."""

import asyncio

import pytest

import fanlight
import fanlight.sync
from tests.conftest import StartBroker, TestBroker
from tests.system.event_stream import EventStream
from tests.system.http_api import ApiClient
from tests.system.mqtt_peer import MqttPeer


@pytest.fixture
def api(module_broker: TestBroker) -> ApiClient:
    return ApiClient(module_broker.http_url)


async def test_who_comes_and_goes_and_what_an_operator_does(module_broker: TestBroker, api: ApiClient) -> None:
    stream = await asyncio.to_thread(EventStream, api, "?kinds=connect,disconnect,admin")
    async with await MqttPeer.connect(module_broker.mqtt_port, "seen"):
        came = await asyncio.to_thread(stream.next)
        assert (came.kind, came.data["client"]) == ("connect", "seen")
        await asyncio.to_thread(api.ok, "DELETE", f"/connections/{came.data['connection']}?at_once=true")
        events = {(each.kind, each.data["event"]) for each in [await asyncio.to_thread(stream.next) for _ in range(2)]}
        assert events == {("admin", "admin"), ("disconnect", "client_disconnected")}
    await asyncio.to_thread(stream.close)


def test_what_was_missed_is_sent_again_or_said(module_broker: TestBroker, api: ApiClient) -> None:
    with EventStream(api, "?kinds=admin") as stream:
        for number in range(3):
            api.ok("POST", "/messages", {"topic": f"missed.{number}"})
        first = stream.next()
    with EventStream(api, "?kinds=admin", after=first.id) as stream:
        assert [stream.next().data["asked"]["topic"] for _ in range(2)] == ["missed.1", "missed.2"]
    for number in range(300):
        api.ok("POST", "/messages", {"topic": f"more.{number}"})
    with EventStream(api, "?kinds=admin", after=first.id) as stream:
        lost = stream.next()
        assert lost.kind == "lost"
        assert lost.data["count"] == 302 - 256
        assert stream.next().data["asked"]["topic"] == "more.44"
    with EventStream(api, "?kinds=admin", after="ffffffff-7") as stream:  # of a process before
        assert stream.next().kind == "lost"


def test_limits_of_listeners(broker: TestBroker) -> None:
    api = ApiClient(broker.http_url)
    assert "none of" in api.refused(400, "GET", "/events?kinds=weather")
    assert api("GET", "/events?seconds=0.01").octets.startswith(b"retry: 1000\n\n")
    streams = [EventStream(api) for _ in range(4)]
    assert "too many" in api.refused(429, "GET", "/events")
    streams[0].close()
    api.until(200, "/events?seconds=0.01")
    for stream in streams[1:]:
        stream.close()


def test_a_limit_that_is_nearly_used_up(start_broker: StartBroker) -> None:
    broker = start_broker(queues_max="10")
    api = ApiClient(broker.http_url)
    with EventStream(api, "?kinds=limit,dead_letter") as stream, fanlight.sync.connect(broker.url) as client:
        for number in range(8):
            client.queues.add(f"q{number}", f"q.{number}")
        near = stream.next()
        assert (near.kind, near.data["limit"], near.data["event"]) == ("limit", "queues_max", "near")
        assert (near.data["used"], near.data["most"]) == (8, 10)
        api.ok("DELETE", "/queues/q1")
        api.ok("DELETE", "/queues/q2")
        assert stream.next().data["event"] == "below"


def test_a_stream_ends_when_the_broker_does(start_broker: StartBroker) -> None:
    broker = start_broker()
    with EventStream(ApiClient(broker.http_url), "?kinds=limit") as stream:
        broker.process.terminate()
        assert list(stream) == []
    broker.process.wait(60)
