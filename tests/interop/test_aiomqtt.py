"""aiomqtt, in both versions."""

from tests.interop.aiomqtt_peer import AiomqttPeer
from tests.interop.conversation import Conversation, Conversation5


class TestAiomqtt3(Conversation):
    kind, version = AiomqttPeer, 3


class TestAiomqtt5(Conversation5):
    kind = AiomqttPeer
