"""Sessions of clients that others wrote, over a broker with a store that is killed and started again."""

from pathlib import Path

import pytest

from tests.conftest import StartBroker
from tests.interop.aiomqtt_peer import AiomqttPeer
from tests.interop.gmqtt_peer import GmqttPeer
from tests.interop.mosquitto import Sub, pub
from tests.interop.paho_peer import PahoPeer
from tests.interop.peer import Endpoint, Message, Peer, Wanted, numbered, numbers

COUNT = 50
READER = Wanted("reader", clean=False, expiry=3_600)


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("kind", [PahoPeer, AiomqttPeer, GmqttPeer])
async def test_a_session_is_there_after_a_kill(
    start_broker: StartBroker, tmp_path: Path, kind: type[Peer], version: int
) -> None:
    before = start_broker(data=tmp_path)
    endpoint = Endpoint(before.mqtt_port)
    reader, writer = kind(endpoint, version), kind(endpoint, version)
    assert await reader.connect(READER) in (False, None)
    await reader.subscribe("numbers", 2)
    await reader.disconnect()
    await writer.connect(Wanted("writer"))
    await writer.publish(*numbered("numbers", COUNT, 1), Message("value", b"last", 2, True))
    before.kill()
    await writer.closed

    after = start_broker(data=tmp_path, mqtt_port=endpoint.port)
    reader, writer = kind(endpoint, version), kind(endpoint, version)
    assert await reader.connect(READER) in (True, None)
    await writer.connect(Wanted("writer"))
    await writer.publish(Message("numbers", str(COUNT).encode(), 2))
    assert numbers(await reader.messages(COUNT + 1)) == list(range(COUNT + 1))
    await reader.subscribe("value", 1)
    kept = await reader.message()
    assert (kept.payload, kept.retain) == (b"last", True)
    await reader.disconnect()
    await writer.disconnect()
    assert after.terminate() == 0


@pytest.mark.parametrize("version", [3, 5])
def test_mosquitto_sub_gets_what_was_published_before_a_kill(
    start_broker: StartBroker, tmp_path: Path, version: int
) -> None:
    session = ("-c", "-i", "reader", "-q", 1, *(("-x", 3_600) if version == 5 else ()))
    before = start_broker(data=tmp_path)
    port = before.mqtt_port
    with Sub(port, "-t", "numbers", *session, version=version):
        pass
    for number in range(10):
        pub(port, "-t", "numbers", "-m", str(number), "-q", 1, version=version)
    before.kill()
    after = start_broker(data=tmp_path, mqtt_port=port)
    with Sub(port, "-t", "numbers", *session, version=version, ready="received PUBLISH") as reader:
        assert [int(message.payload) for message in reader.messages(10)] == list(range(10))
    assert after.terminate() == 0
