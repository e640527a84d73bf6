"""Quotas of a broker process with users: whose they are, maxima, rates, in three protocols, over real sockets."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, PubAck, Publish, WillFields
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import connect
from tests.conftest import StartBroker, TestBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.views import eventually, stats
from tests.system.wire import Closed, Peer, Type, hello, publish


def started(start_broker: StartBroker, tmp_path: Path, text: str, **settings: Any) -> TestBroker:
    quotas = tmp_path / "quotas.toml"
    quotas.write_text(text)
    broker = start_broker(quotas=quotas, **settings)
    broker.may_complain = True  # clients that break a rule are logged
    return broker


def reload(broker: TestBroker, tmp_path: Path, text: str) -> None:
    (tmp_path / "quotas.toml").write_text(text)
    os.kill(broker.pid, signal.SIGHUP)
    broker.wait_for_line('"reloaded"')


async def greeting(port: int, client_id: str, version: Version, **fields: Any) -> ConnAck:
    """The CONNACK of a connection that ends with it."""
    peer = MqttPeer(*await asyncio.open_connection("127.0.0.1", port), version)
    async with peer:
        await peer.send(connect(client_id, version, **fields))
        answer = await peer.packet()
    assert isinstance(answer, ConnAck)
    return answer


async def test_natively_a_large_message_is_refused_and_a_reload_reaches_the_client(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = started(start_broker, tmp_path, "[[quota]]\nmessage_bytes = 100\n")
    async with await Peer.connect(broker.port) as peer:
        assert await peer.publish("a", bytes(50)) == 0
        await peer.send(publish("a", bytes(100), 9))
        error = await peer.expect(Type.ERROR, 9)
        assert error[2] == "limit_exceeded"
        reload(broker, tmp_path, "[[quota]]\nmessage_bytes = 1_000\n")
        assert await peer.publish("a", bytes(500)) == 0
        assert (await stats(broker))["quota_messages_too_large"] == 1


@pytest.mark.parametrize("qos", [0, 1])
async def test_mqtt_5_announces_the_largest_packet_and_disconnects(
    start_broker: StartBroker, tmp_path: Path, qos: int
) -> None:
    broker = started(start_broker, tmp_path, "[[quota]]\nmessage_bytes = 300\ntopic_aliases = 3\nreceive_maximum = 7\n")
    async with await MqttPeer.connect(broker.mqtt_port, "c") as peer:
        await peer.send(Publish("a", bytes(400), qos=qos, packet_id=1 if qos else None))
        goodbye = await peer.packet()
        assert isinstance(goodbye, Disconnect)
        assert goodbye.reason_code == R.PACKET_TOO_LARGE
    announced = (await greeting(broker.mqtt_port, "d", V5)).properties
    assert announced.maximum_packet_size == 300
    assert (announced.topic_alias_maximum, announced.receive_maximum) == (3, 7)


async def publish_on(peer: MqttPeer, message: Publish) -> None:
    while True:
        await peer.send(message)
        await peer.packet()


async def test_mqtt_5_gets_0x97_for_a_quota_of_a_later_reload_and_3_1_1_is_closed(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = started(start_broker, tmp_path, "[[quota]]\nmessage_bytes = 10_000\n")
    async with (
        await MqttPeer.connect(broker.mqtt_port, "new") as new,
        await MqttPeer.connect(broker.mqtt_port, "old", version=V3) as old,
    ):
        reload(broker, tmp_path, "[[quota]]\nmessage_bytes = 100\n")
        answer = None
        while answer is None or answer.reason_code < R.UNSPECIFIED_ERROR:  # a reload comes to some clients in a turn
            await new.send(Publish("a", bytes(200), qos=1, packet_id=1))
            answer = await new.packet()
            assert isinstance(answer, PubAck)
        assert answer.reason_code == R.QUOTA_EXCEEDED
        await new.ping()
        await new.packet()
        with pytest.raises(Closed):
            await publish_on(old, Publish("a", bytes(200), qos=1, packet_id=1))
        assert (await stats(broker))["quota_messages_too_large"] == 2


@pytest.mark.parametrize("version", [V3, V5])
async def test_a_large_will_is_refused(start_broker: StartBroker, tmp_path: Path, version: Version) -> None:
    broker = started(start_broker, tmp_path, "[[quota]]\nmessage_bytes = 1_000\n")
    refused = await greeting(broker.mqtt_port, "c", version, will=WillFields("w", bytes(1_000), 0, False))
    assert refused.reason_code == (R.SERVER_UNAVAILABLE if version is V3 else R.QUOTA_EXCEEDED)


@pytest.mark.parametrize("version", [V3, V5])
async def test_the_queue_of_a_session_that_is_away_is_as_long_as_the_quota(
    start_broker: StartBroker, tmp_path: Path, version: Version
) -> None:
    broker = started(start_broker, tmp_path, "[[quota]]\nqueue_messages = 3\n")
    fields: dict[str, Any] = {"clean_start": False}
    if version is V5:
        fields["session_expiry_interval"] = 1_000
    async with await MqttPeer.connect(broker.mqtt_port, "away", version=version, **fields) as peer:
        await peer.subscribe("#", qos=1)
    await eventually(broker, lambda seen: bool(seen["connections"] == 0))
    async with await MqttPeer.connect(broker.mqtt_port, "p") as publisher:
        codes = []
        for number in range(1, 6):
            await publisher.send(Publish("a", bytes([number]), qos=1, packet_id=number))
            answer = await publisher.packet()
            assert isinstance(answer, PubAck)
            codes.append(answer.reason_code)
        assert codes == [R.SUCCESS] * 3 + [R.QUOTA_EXCEEDED] * 2
    async with await MqttPeer.connect(broker.mqtt_port, "away", version=version, **fields) as peer:
        assert [(await peer.message()).payload for _ in range(3)] == [b"\1", b"\2", b"\3"]


async def test_the_connections_of_a_group_and_of_an_address_are_counted_together(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = started(
        start_broker, tmp_path,
        '[[quota]]\ngroup = "anonymous"\nper = "group"\nconnections = 3\n[[quota]]\nper = "address"\nconnections = 2\n',
    )
    async with await Peer.connect(broker.port), await MqttPeer.connect(broker.mqtt_port, "a", version=V3):
        assert (await greeting(broker.mqtt_port, "b", V5)).reason_code == R.QUOTA_EXCEEDED
        async with await Peer.open(broker.port, source="127.0.0.2") as third:
            await third.send(hello())
            await third.expect(Type.WELCOME)
            async with await Peer.open(broker.port, source="127.0.0.3") as fourth:
                await fourth.send(hello())
                error = await fourth.expect(Type.ERROR)
                assert "group anonymous has 3 connections" in error[3]
        assert (await stats(broker))["quota_connections_refused"] >= 2


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("over_rate", ["hold", "refuse"])
async def test_a_rate_of_publishing_per_client_holds_or_refuses(
    start_broker: StartBroker, tmp_path: Path, version: Version, over_rate: str
) -> None:
    rate = 50 if over_rate == "hold" or version is V3 else 0.001
    broker = started(
        start_broker, tmp_path,
        f'[[quota]]\nper = "client"\npublish_messages = {rate}\nburst_seconds = 0.1\nover_rate = "{over_rate}"\n',
    )
    async with (
        await MqttPeer.connect(broker.mqtt_port, "s") as subscriber,
        await MqttPeer.connect(broker.mqtt_port, "p", version=version) as publisher,
    ):
        await subscriber.subscribe("#")
        await publisher.send(*(Publish("a", bytes([n]), qos=1, packet_id=n) for n in range(1, 21)))
        answers = [await publisher.packet() for _ in range(20)]
        codes = [answer.reason_code for answer in answers if isinstance(answer, PubAck)]
        passed = codes.count(R.SUCCESS)
        assert passed + codes.count(R.QUOTA_EXCEEDED) == 20
        assert passed == 20 if over_rate == "hold" or version is V3 else passed == 1
        assert [(await subscriber.message()).payload[0] for _ in range(passed)] == list(range(1, passed + 1))
        seen = await stats(broker)
        assert seen["quota_refused"] > 0 if passed == 1 else seen["quota_holds"] > 0
