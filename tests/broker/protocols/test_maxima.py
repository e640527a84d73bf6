"""Maxima of a quota: the largest message, the length of queues, topic aliases, Receive Maximum, in each protocol."""

from typing import Any

import pytest

from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, Publish, PubRec, WillFields
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native
from tests.broker.protocols.native.world import messages
from tests.broker.protocols.sinks import FREE, PACED, ByAddress


def native_world(**entries: Any) -> native.World:
    world = native.World(idle_seconds_max=0)
    world.broker.clients.quotas = ByAddress(PACED, **entries)
    return world


def connect_native(world: native.World, address: str = PACED) -> native.Peer:
    peer = world.open()
    peer.address = address
    peer.send(native.frame(1, 1, {}))
    assert peer.next()[0] == 2
    return peer


def mqtt_world(**entries: Any) -> mqtt.World:
    world = mqtt.World()
    world.broker.clients.quotas = ByAddress(PACED, **entries)
    return world


def connect_mqtt(world: mqtt.World, name: str, version: Version = V5, address: str = PACED, **fields: Any) -> mqtt.Peer:
    peer = world.open(version)
    peer.address = address
    peer.say(mqtt.connect(name, version, **fields))
    connack = peer.packets()[0]
    assert isinstance(connack, ConnAck)
    peer.connack = connack
    return peer


# -- the largest message ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
def test_a_native_message_above_the_quota_is_refused_and_the_connection_goes_on(known: bool) -> None:
    world = native_world(message_bytes=100)
    subscriber, publisher = connect_native(world, FREE), connect_native(world)
    subscriber.send(native.frame(6, 1, 1, "#"))
    subscriber.frames()
    if known:  # a lane publishes on a route that it knows without asking Python
        for _ in range(3):
            publisher.send(native.publish("a", b"x"))
        subscriber.frames()
    just = 100 - len(native.publish("a", bytes(50), request=1)) + 50 + 4
    publisher.send(native.publish("a", bytes(just), request=1), native.publish("a", bytes(just + 1), request=2))
    receipt, error = publisher.frames()
    assert receipt[:2] == [5, 1]
    assert error[:3] == [13, 2, "limit_exceeded"]
    assert error[4] == {"limit": "quota message_bytes", "value": 100}
    assert messages(subscriber.frames()) == [(1, bytes(just))]
    assert world.broker.everybody.too_large == 1
    publisher.send(native.publish("a", b"x", request=3))
    assert publisher.next()[:2] == [5, 3]


def test_mqtt_5_is_told_and_a_larger_packet_ends_the_connection() -> None:
    world = mqtt_world(message_bytes=200)
    client = connect_mqtt(world, "c")
    assert client.connack is not None
    assert client.connack.properties.maximum_packet_size == 200
    client.say(Publish("a", bytes(100)))
    assert client.packets() == []
    client.say(Publish("a", bytes(200)))
    goodbye = client.next()
    assert isinstance(goodbye, Disconnect)
    assert goodbye.reason_code == R.PACKET_TOO_LARGE


def test_mqtt_5_gets_quota_exceeded_for_a_quota_that_came_after_connack() -> None:
    world = mqtt_world(message_bytes=10_000)
    client = connect_mqtt(world, "c")
    world.broker.use_quotas(ByAddress(PACED, message_bytes=100))
    world.turn()
    assert [answer.reason_code for answer in client.publish("a", bytes(101), qos=1)] == [R.QUOTA_EXCEEDED]  # type: ignore[union-attr]
    refused = client.publish("a", bytes(101), qos=2)
    assert [(type(answer), answer.reason_code) for answer in refused] == [(PubRec, R.QUOTA_EXCEEDED)]  # type: ignore[union-attr]
    assert client.publish("a", bytes(101)) == []
    assert world.broker.everybody.too_large == 3
    assert not client.gone
    assert [answer.reason_code for answer in client.publish("a", bytes(10), qos=1)] == [R.NO_MATCHING_SUBSCRIBERS]  # type: ignore[union-attr]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_mqtt_3_1_1_closes_the_connection_and_only_for_a_publish(qos: int) -> None:
    world = mqtt_world(message_bytes=100)
    client = connect_mqtt(world, "c", V3)
    assert client.subscribe("a" * 200) == (0,)
    assert [type(answer) for answer in client.publish("a", bytes(50), qos=1)] != []
    client.publish("a", bytes(101), qos=qos)
    assert client.gone
    assert world.broker.everybody.too_large == 1


@pytest.mark.parametrize(("version", "code"), [(V3, 3), (V5, R.QUOTA_EXCEEDED)])
def test_a_will_above_the_quota_is_refused_at_connect(version: Version, code: int) -> None:
    world = mqtt_world(message_bytes=100)
    accepted = connect_mqtt(world, "a", version, will=WillFields("w", bytes(99), 0, False))
    assert accepted.connack is not None
    assert accepted.connack.reason_code == 0
    refused = connect_mqtt(world, "b", version, will=WillFields("w", bytes(100), 0, False))
    assert refused.connack is not None
    assert refused.connack.reason_code == (R.SERVER_UNAVAILABLE if version is V3 else code)
    assert world.broker.sessions.get("b") is None
    assert world.broker.everybody.too_large == 1


def test_other_quotas_reach_those_who_are_connected() -> None:
    world = native_world()
    publisher = connect_native(world)
    publisher.send(native.publish("a", bytes(100), request=1))
    assert publisher.next()[0] == 5
    world.broker.use_quotas(ByAddress(PACED, message_bytes=50))
    world.turn()
    publisher.send(native.publish("a", bytes(100), request=2))
    assert publisher.next()[0] == 13
    world.broker.use_quotas(ByAddress(FREE, message_bytes=50))
    world.turn()
    publisher.send(native.publish("a", bytes(100), request=3))
    assert publisher.next()[0] == 5


# -- queues ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [{"queue_messages": 3}, {"queue_bytes": 700}])
def test_the_queue_of_a_session_is_as_long_as_the_quota_says(entries: dict[str, int]) -> None:
    world = mqtt_world(**entries)
    client = connect_mqtt(world, "c", clean_start=False, session_expiry_interval=1_000)
    assert client.subscribe("#", qos=1) == (1,)
    client.vanish()
    publisher = connect_mqtt(world, "p", address=FREE)
    codes = [publisher.publish("a", bytes(20), qos=1)[0].reason_code for _ in range(6)]  # type: ignore[union-attr]
    session = world.broker.sessions.get("c")
    assert session is not None
    kept = len(session.window.queue)
    assert kept == 3 if "queue_messages" in entries else 0 < kept < 6
    assert codes == [R.SUCCESS] * kept + [R.QUOTA_EXCEEDED] * (6 - kept)
    world.broker.use_quotas(ByAddress(FREE, connections=9))
    connect_mqtt(world, "c", clean_start=False, session_expiry_interval=1_000)
    assert session.window.queue.messages_max == world.broker.limits.queue_messages_max
    assert session.window.queue.bytes_max == world.broker.limits.queue_bytes_max


def test_a_named_queue_is_no_longer_than_the_quota_of_its_declarer() -> None:
    world = native_world(queue_messages=3)
    client = connect_native(world)
    wanted = {"consumer": "q", "durable": True, "ack": True}
    client.say(6, 1, 7, "orders.#", {**wanted, "queue": {"messages_max": 4}})
    error = client.next()
    assert error[:3] == [13, 1, "limit_exceeded"]
    assert error[4] == {"limit": "quota queue_messages", "value": 3}
    client.say(6, 2, 7, "orders.#", wanted)
    assert client.next()[0] == 7
    client.vanish()
    publisher = connect_native(world, FREE)
    for number in range(5):
        publisher.send(native.publish("orders.a", b"x", request=number))
    answers = publisher.frames()
    assert [fields[0] for fields in answers] == [5, 5, 5, 13, 13]


# -- MQTT ------------------------------------------------------------------------------------------------------------


def test_topic_aliases_are_announced_and_no_more_are_taken() -> None:
    world = mqtt_world(topic_aliases=2)
    client = connect_mqtt(world, "c")
    assert client.connack is not None
    assert client.connack.properties.topic_alias_maximum == 2
    client.say(Publish("a", b"x", properties=Properties(topic_alias=2)))
    assert client.packets() == []
    client.say(Publish("a", b"x", properties=Properties(topic_alias=3)))
    goodbye = client.next()
    assert isinstance(goodbye, Disconnect)
    assert goodbye.reason_code == R.TOPIC_ALIAS_INVALID


def test_without_topic_aliases_none_is_announced() -> None:
    connack = connect_mqtt(mqtt_world(topic_aliases=0), "c").connack
    assert connack is not None
    assert connack.properties.topic_alias_maximum is None


@pytest.mark.parametrize("version", [V3, V5])
def test_receive_maximum_is_announced_and_held_to(version: Version) -> None:
    world = mqtt_world(receive_maximum=2)
    client = connect_mqtt(world, "c", version)
    assert client.connack is not None
    assert client.connack.properties.receive_maximum == (2 if version is V5 else None)
    for number in (1, 2):
        client.say(Publish("a", b"x", qos=2, packet_id=number))
        assert isinstance(client.next(), PubRec)
    client.say(Publish("a", b"x", qos=2, packet_id=3))
    if version is V5:
        goodbye = client.next()
        assert isinstance(goodbye, Disconnect)
        assert goodbye.reason_code == R.RECEIVE_MAXIMUM_EXCEEDED
    world.turn()
    assert client.gone
