"""What one subscriber cannot be given is nobody else's trouble, over real sockets."""

from tests.conftest import StartBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.wire import Peer

WORDS = 200


async def test_a_topic_of_200_words_reaches_mqtt_where_the_operator_allows_512(start_broker: StartBroker) -> None:
    """It used to end the publisher's connection, each time that it tried."""
    broker = start_broker(topic_words_max=512)
    words = [f"w{n}" for n in range(WORDS)]
    async with (
        await MqttPeer.connect(broker.mqtt_port, "all") as mqtt,
        await Peer.connect(broker.port) as native,
        await Peer.connect(broker.port) as publisher,
    ):
        await mqtt.subscribe("#")
        await native.subscribe(1, "#")
        for _ in range(2):
            assert await publisher.publish(".".join(words), b"187") == 2
            assert (await mqtt.message()).topic == "/".join(words)
            assert (await native.message()).topic == ".".join(words)
        await publisher.settle()
