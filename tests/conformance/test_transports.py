"""Network connections (4.2; 3.1.1: 7.1.1) and WebSocket (6.0), over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as websocket_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish, SubAck, Subscribe, Subscription
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import Version
from tests.broker.protocols.mqtt.world import connect, packets_of
from tests.conformance.clients import versions
from tests.conftest import TestBroker

SECONDS = 60.0  # for anything that should come at once
COUNT = 200


def conversation(version: Version, topic: str) -> bytes:
    """A client that subscribes, and publishes to itself: large and small."""
    packets = [connect(topic, version), Subscribe(1, (Subscription(topic, 0),))]
    packets += [Publish(topic, payload(number), 1, packet_id=number + 1) for number in range(COUNT)]
    return b"".join(encode(packet, version) for packet in packets)


def payload(number: int) -> bytes:
    return bytes([number]) * (20_000 if number % 50 == 7 else number)


def expected_size(version: Version, topic: str) -> int:
    """Octets of the answers behind CONNACK."""
    packets = [SubAck(1, (ReasonCode.GRANTED_QOS_0,)), *(PubAck(number + 1) for number in range(COUNT))]
    packets += [Publish(topic, payload(number)) for number in range(COUNT)]
    return sum(len(encode(packet, version)) for packet in packets)


def check(octets: bytes, version: Version) -> None:
    """All of the conversation's answers, in their order."""
    packets = packets_of(octets, version)
    got = [packet.payload for packet in packets if isinstance(packet, Publish)]
    assert got == [payload(number) for number in range(COUNT)]
    answered = [packet.packet_id for packet in packets if isinstance(packet, PubAck)]
    assert answered == [number + 1 for number in range(COUNT)]


@versions
@pytest.mark.mqtt("MQTT-7.1.1-1", version=3)
@pytest.mark.mqtt("MQTT-4.2.0-1", version=5)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_tcp_keeps_all_bytes_and_their_order_however_they_are_cut(
    module_broker: TestBroker, version: Version, size: int
) -> None:
    topic = f"tcp/{size}/{version}"
    with socket.create_connection(("127.0.0.1", module_broker.mqtt_port), timeout=SECONDS) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        octets = conversation(version, topic)
        for start in range(0, min(len(octets), 3_000 * size), size):
            peer.sendall(octets[start : start + size])
        peer.sendall(octets[3_000 * size :])
        got, head = b"", 0
        while not head or len(got) < head + expected_size(version, topic):
            got += peer.recv(1 << 16)
            head = 2 + got[1] if len(got) > 1 else 0  # of CONNACK
        check(got, version)


@asynccontextmanager
async def websocket(broker: TestBroker) -> AsyncIterator[ClientConnection]:
    host, port = broker.addresses["mqtt_websocket"]
    async with asyncio.timeout(SECONDS):
        async with websocket_connect(
            f"ws://{host}:{port}/mqtt", subprotocols=[Subprotocol("mqtt")], proxy=None, compression=None, max_size=None
        ) as client:
            yield client


@versions
@pytest.mark.mqtt("MQTT-6.0.0-1")
@pytest.mark.mqtt("MQTT-6.0.0-2")
@pytest.mark.parametrize("size", [3, 1_000, 1 << 20])
async def test_packets_and_binary_messages_need_not_begin_and_end_together(
    module_broker: TestBroker, version: Version, size: int
) -> None:
    topic = f"websocket/{size}/{version}"
    octets = conversation(version, topic)
    async with websocket(module_broker) as client:

        async def speak() -> None:
            for start in range(0, len(octets), size):
                await client.send(octets[start : start + size])

        speaking = asyncio.create_task(speak())
        got, head = b"", 0
        while not head or len(got) < head + expected_size(version, topic):
            message = await client.recv()
            assert isinstance(message, bytes)
            got += message
            head = 2 + got[1] if len(got) > 1 else 0
        await speaking
        check(got, version)


@pytest.mark.mqtt("MQTT-6.0.0-1")
async def test_a_text_message_closes_the_connection(module_broker: TestBroker) -> None:
    async with websocket(module_broker) as client:
        await client.send("text")
        with pytest.raises(ConnectionClosed):
            await client.recv()


@pytest.mark.mqtt("MQTT-6.0.0-4")
@pytest.mark.mqtt("MQTT-6.0.0-3")
async def test_the_subprotocol_is_mqtt_and_without_it_nobody_gets_in(module_broker: TestBroker) -> None:
    async with websocket(module_broker) as client:
        assert client.subprotocol == "mqtt"
    host, port = module_broker.addresses["mqtt_websocket"]
    for offered in (None, [Subprotocol("native")]):
        with pytest.raises(InvalidStatus):
            await websocket_connect(f"ws://{host}:{port}/mqtt", subprotocols=offered, proxy=None)
