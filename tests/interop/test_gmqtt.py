"""gmqtt, in both versions."""

from tests.interop.conversation import Conversation, Conversation5
from tests.interop.gmqtt_peer import GmqttPeer


class TestGmqtt3(Conversation):
    kind, version = GmqttPeer, 3


class TestGmqtt5(Conversation5):
    kind = GmqttPeer
