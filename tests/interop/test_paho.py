"""paho-mqtt, in both versions; over WebSocket what differs there is the transport alone, so 5.0 stands for both."""

from tests.interop.conversation import Conversation, Conversation5
from tests.interop.paho_peer import PahoPeer


class TestPaho3(Conversation):
    kind, version = PahoPeer, 3


class TestPaho5(Conversation5):
    kind = PahoPeer


class TestPaho5OverWebSocket(Conversation5):
    kind, websocket = PahoPeer, True
