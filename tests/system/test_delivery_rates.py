"""A rate of what is delivered, in a broker process: each protocol gets all of it, later, over each kind of socket."""

from pathlib import Path

import pytest

from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.certificates import Certificates
from tests.conftest import StartBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.secure_wire import TlsPeer
from tests.system.views import stats
from tests.system.wire import Peer, publish

COUNT = 60
QUOTA = "[[quota]]\ndeliver_messages = 200\nburst_seconds = 0.05\n"  # ten at once
WANTED = [b"%d" % number for number in range(COUNT)]


@pytest.fixture
def quotas(tmp_path: Path) -> Path:
    path = tmp_path / "quotas.toml"
    path.write_text(QUOTA)
    return path


async def test_natively_all_messages_come_in_order_and_the_publisher_does_not_wait(
    start_broker: StartBroker, quotas: Path
) -> None:
    broker = start_broker(quotas=quotas)
    async with await Peer.connect(broker.port) as subscriber, await Peer.connect(broker.port) as publisher:
        await subscriber.subscribe(1, "#")
        await publisher.send(b"".join(publish("a", payload) for payload in WANTED))
        await publisher.settle()
        assert publisher.notices == []
        assert await subscriber.payloads(COUNT) == WANTED
        assert (await stats(broker))["quota_delivery_holds"] >= 1


async def test_over_tls_it_is_the_same(start_broker: StartBroker, quotas: Path, signed: Certificates) -> None:
    class Client(TlsPeer):
        context = signed.context()

    broker = start_broker(quotas=quotas, tls_certificate=signed.server, native_tls_port=0)
    broker.wait_for(lambda: "native_tls" in broker.addresses, 60)
    port = broker.addresses["native_tls"][1]
    async with await Client.connect(port) as subscriber, await Peer.connect(broker.port) as publisher:
        await subscriber.subscribe(1, "#")
        await publisher.send(b"".join(publish("a", payload) for payload in WANTED))
        assert await subscriber.payloads(COUNT) == WANTED
        assert (await stats(broker))["quota_delivery_holds"] >= 1


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("qos", [0, 1])
async def test_in_mqtt_all_messages_come_in_order(
    start_broker: StartBroker, quotas: Path, version: Version, qos: int
) -> None:
    broker = start_broker(quotas=quotas)
    async with (
        await MqttPeer.connect(broker.mqtt_port, "s", version=version) as subscriber,
        await MqttPeer.connect(broker.mqtt_port, "p", version=version) as publisher,
    ):
        await subscriber.subscribe("#", qos=qos)
        await publisher.send(*(
            Publish("a", payload, qos=qos, packet_id=number if qos else None)
            for number, payload in enumerate(WANTED, 1)
        ))
        got = []
        for _ in range(COUNT):
            message = await subscriber.message()
            got.append(message.payload)
            if message.packet_id is not None:
                await subscriber.send(PubAck(message.packet_id))
        assert got == WANTED
        assert (await stats(broker))["quota_delivery_holds"] >= 1
