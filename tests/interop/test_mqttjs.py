"""MQTT.js in Node, in both versions, over TCP and WebSocket."""

from collections.abc import Iterator

import pytest

from tests.interop.conversation import Conversation, Conversation5
from tests.interop.mqttjs_peer import MqttjsPeer, Node


@pytest.fixture(scope="module", autouse=True)
def node() -> Iterator[Node]:
    node = Node()
    MqttjsPeer.node = node
    yield node
    node.close()


class TestMqttjs3(Conversation):
    kind, version = MqttjsPeer, 3


class TestMqttjs5(Conversation5):
    kind = MqttjsPeer


class TestMqttjs3OverWebSocket(Conversation):
    kind, version, websocket = MqttjsPeer, 3, True


class TestMqttjs5OverWebSocket(Conversation5):
    kind, websocket = MqttjsPeer, True
