"""Between the native SDK and MQTT clients: topics, properties, answers (docs/decisions/0008-mqtt.md has the table)."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

import fanlight
from tests.conftest import TestBroker
from tests.interop.mosquitto import Sub, pub
from tests.interop.paho_peer import PahoPeer
from tests.interop.peer import Endpoint, Message, Peer, Said, Wanted, numbered, numbers, soon

COUNT = 100


@pytest_asyncio.fixture(params=[3, 5])
async def peer(module_broker: TestBroker, request: pytest.FixtureRequest) -> AsyncIterator[Peer]:
    peer = PahoPeer(Endpoint(module_broker.mqtt_port), request.param)
    await peer.connect(Wanted("peer"))
    yield peer
    await peer.disconnect()


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_what_mqtt_publishes_the_sdk_receives(module_broker: TestBroker, peer: Peer, qos: int) -> None:
    async with (
        fanlight.connect(module_broker.url) as client,
        client.subscribe("to.*.native") as sub,
        client.subscribe("to/+/native", syntax="mqtt") as other,
    ):
        await peer.publish(*numbered("to/the/native", COUNT, qos))
        for each in (sub, other):
            came = [await soon(anext(each)) for _ in range(COUNT)]
            assert [int(message.payload) for message in came] == list(range(COUNT))
            assert {message.words for message in came} == {("to", "the", "native")}


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_what_the_sdk_publishes_mqtt_receives(module_broker: TestBroker, peer: Peer, qos: int) -> None:
    async with fanlight.connect(module_broker.url) as client:
        await peer.subscribe("stock/+/AAPL", qos)
        for number in range(COUNT):
            await client.publish("stock.nasdaq.AAPL", str(number).encode())
        came = await peer.messages(COUNT)
        assert numbers(came) == list(range(COUNT))
        assert {message.topic for message in came} == {"stock/nasdaq/AAPL"}
        await client.publish("stock/nyse/AAPL", b"x", syntax="mqtt")
        assert (await peer.message()).topic == "stock/nyse/AAPL"


async def test_properties_and_headers_are_carried_across(module_broker: TestBroker) -> None:
    peer = PahoPeer(Endpoint(module_broker.mqtt_port), 5)
    await peer.connect(Wanted("five"))
    async with fanlight.connect(module_broker.url) as client, client.subscribe("to.native") as sub:
        said = Said(user=(("a", "1"), ("b", "ü")), content_type="text/plain", correlation=b"key", response_topic="r/t")
        await peer.publish(Message("to/native", b"x", 1, said=said))
        came = await soon(anext(sub))
        assert dict(came.headers) == {"a": "1", "b": "ü", "content-type": "text/plain", "correlation-id": "key"}
        assert came.reply == ("r/t" if came.syntax == "mqtt" else "r.t")

        await peer.subscribe("to/mqtt", 1)
        headers = {"a": "1", "n": 2, "content-type": "text/plain", "correlation-id": b"key"}
        await client.publish("to.mqtt", b"x", headers=headers, reply="r.t")
        there = (await peer.message()).said
        assert there.user == (("a", "1"), ("n", "2"))
        assert (there.content_type, there.correlation, there.response_topic) == ("text/plain", b"key", "r/t")
    await peer.disconnect()


async def test_a_request_of_the_sdk_is_answered_by_mqtt(module_broker: TestBroker) -> None:
    peer = PahoPeer(Endpoint(module_broker.mqtt_port), 5)
    await peer.connect(Wanted("server"))
    await peer.subscribe("ask/mqtt", 1)
    async with fanlight.connect(module_broker.url) as client:
        for number in range(3):
            asking = asyncio.create_task(client.request("ask.mqtt", b"%d" % number, timeout=20))
            request = await peer.message()
            assert request.said.response_topic is not None
            await peer.publish(Message(request.said.response_topic, request.payload + b"!", 1))
            assert (await soon(asking)).payload == b"%d!" % number
    await peer.disconnect()


async def test_a_request_of_mqtt_is_answered_by_the_sdk(module_broker: TestBroker) -> None:
    peer = PahoPeer(Endpoint(module_broker.mqtt_port), 5)
    await peer.connect(Wanted("asker"))
    await peer.subscribe("answers/to/me", 1)
    async with fanlight.connect(module_broker.url) as client, client.subscribe("ask.native") as sub:
        await peer.publish(Message("ask/native", b"?", 1, said=Said(response_topic="answers/to/me", correlation=b"7")))
        request = await soon(anext(sub))
        await request.respond(b"!")
        answer = await peer.message()
        assert (answer.payload, answer.said.correlation) == (b"!", b"7")
    await peer.disconnect()


async def test_the_issues_own_example_works(module_broker: TestBroker) -> None:
    port = module_broker.mqtt_port
    with Sub(port, "-t", "stock/+/AAPL") as sub:
        pub(port, "-t", "stock/nasdaq/AAPL", "-m", "1", version=3)
        async with fanlight.connect(module_broker.url) as client:
            await client.publish("stock.nasdaq.AAPL", b"2", receipt=True)
        assert [message.payload for message in sub.messages(2)] == [b"1", b"2"]
