"""PUBLISH (3.3): what is forwarded, to whom, and how."""

import pytest

from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import (
    PubAck,
    PubComp,
    Publish,
    PubRec,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import World, connect
from tests.conformance.clients import back, lasting, payloads, qualities, versions

pytestmark = pytest.mark.usefixtures("either_lane")

REQUESTED = {
    "payload_format_indicator": 0, "content_type": "a/\ufeffb", "response_topic": "reply/é",
    "correlation_data": bytes(range(256)), "user_properties": (("k", "1"), ("", ""), ("k", "2"), ("a", "k")),
}  # fmt: skip


@versions
@pytest.mark.mqtt("MQTT-3.3.4-1")
@pytest.mark.mqtt("MQTT-2.3.1-6", version=3)
@pytest.mark.mqtt("MQTT-2.2.1-5", version=5)
@pytest.mark.parametrize("heard", [False, True])
def test_a_publish_is_answered_as_its_qos_demands(version: Version, heard: bool) -> None:
    world = World()
    if heard:
        world.connect("s", version).subscribe("a")
    peer = world.connect("p", version)
    # In 5.0 an acknowledgement may say that nobody was there to get it (0x10).
    silent = b"\x02\x12\x34" if heard or version is V3 else b"\x03\x12\x34\x10"
    peer.send(encode(Publish("a"), version))
    assert peer.received == b""
    peer.send(encode(Publish("a", qos=1, packet_id=0x1234), version))
    assert peer.received == b"\x40" + silent
    peer.received = b""
    peer.send(encode(Publish("a", qos=2, packet_id=0x1234), version))
    assert peer.received == b"\x50" + silent
    peer.received = b""
    peer.send(bytes.fromhex("62021234"))
    assert peer.received == bytes.fromhex("70021234")


@versions
@pytest.mark.mqtt("MQTT-3.3.1-3")
@qualities
def test_dup_is_not_forwarded(version: Version, qos: int) -> None:
    world = World()
    subscriber, publisher = world.connect("s", version), world.connect("p", version)
    subscriber.subscribe("a", qos=2)
    publisher.publish("a", b"x", qos, dup=qos > 0)
    (message,) = subscriber.messages()
    assert not message.dup


@versions
@pytest.mark.mqtt("MQTT-3.3.2-3")
def test_the_topic_name_is_forwarded_as_it_is_to_every_filter_that_matches(version: Version) -> None:
    world = World()
    subscriber, publisher = world.connect("s", version), world.connect("p", version)
    subscriber.subscribe("a/+/c", "/x", "é/#")
    for topic in ("a/b/c", "a//c", "a/b/d", "/x", "x", "é", "É", "é/ /\ufeff"):
        publisher.publish(topic)
    assert [message.topic for message in subscriber.messages()] == ["a/b/c", "a//c", "/x", "é", "é/ /\ufeff"]


@qualities
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.mqtt("MQTT-3.3.2-4", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-15", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-16", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-17", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-18", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-20", version=5)
def test_the_properties_of_a_message_are_forwarded_as_they_are(qos: int, known: bool) -> None:
    world = World()
    subscriber, publisher = world.connect("s"), world.connect("p")
    subscriber.subscribe("a", qos=2)
    if known:  # the lane then has a route, and does not ask
        publisher.publish("a")
        subscriber.messages()
    publisher.publish("a", b"x", qos, **REQUESTED)
    (message,) = subscriber.messages()
    assert message.properties == Properties(**REQUESTED)


@pytest.mark.mqtt("MQTT-3.3.2-4", version=5)
def test_the_properties_of_a_message_that_waited_or_was_retained_are_the_same() -> None:
    world = World()
    away = world.connect("away", **lasting(V5))
    away.subscribe("a", qos=1)
    away.vanish()
    world.connect("p").publish("a", b"x", 1, retain=True, **REQUESTED)
    _, packets = back(world, "away", V5)
    late = world.connect("late")
    late.subscribe("#")
    for message in (*packets, *late.packets()):
        assert isinstance(message, Publish)
        assert message.properties == Properties(**REQUESTED)


# -- who may -----------------------------------------------------------------------------------------------------------


@pytest.mark.mqtt("MQTT-3.3.5-2", version=3)
@qualities
def test_a_3_1_1_publish_that_is_not_authorized_is_acknowledged_and_dropped(qos: int) -> None:
    world = World()
    listener, peer = world.connect("l", V3), world.connect("p", V3)
    listener.subscribe("$SYS/mine")
    answers = peer.publish("$SYS/mine", b"x", qos)
    assert [type(answer) for answer in answers] == [[], [PubAck], [PubRec, PubComp]][qos]
    assert not peer.gone
    assert listener.messages() == []


@pytest.mark.mqtt("MQTT-4.3.3-9", version=5)
@pytest.mark.parametrize(("qos", "answer"), [(1, PubAck), (2, PubRec)])
def test_a_5_publish_that_is_not_authorized_is_told_so(qos: int, answer: type[PubAck] | type[PubRec]) -> None:
    world = World()
    listener, peer = world.connect("l"), world.connect("p")
    listener.subscribe("$SYS/mine", "a", qos=2)
    (refused,) = peer.publish("$SYS/mine", b"x", qos, packet_id=7)
    assert isinstance(refused, answer)
    assert (refused.packet_id, refused.reason_code) == (7, ReasonCode.NOT_AUTHORIZED)
    # The identifier is free: what comes with it now is a new message.
    peer.publish("a", b"new", qos, packet_id=7)
    assert [message.payload for message in listener.messages()] == [b"new"]


# -- message expiry ----------------------------------------------------------------------------------------------------


@pytest.mark.mqtt("MQTT-3.3.2-5", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-6", version=5)
@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_that_waits_grows_older_and_is_deleted_when_it_is_too_old(qos: int) -> None:
    world = World()
    away = world.connect("away", **lasting(V5))
    away.subscribe("a", qos=2)
    away.vanish()
    publisher = world.connect("p")
    publisher.publish("a", b"10", qos, message_expiry_interval=10)
    publisher.publish("a", b"30", qos, message_expiry_interval=30, content_type="x")
    publisher.publish("a", b"none", qos)
    world.pass_time(10)
    _, packets = back(world, "away", V5)
    assert payloads(packets) == [b"30", b"none"]
    left = [packet.properties.message_expiry_interval for packet in packets if isinstance(packet, Publish)]
    assert left == [20, None]


@pytest.mark.mqtt("MQTT-3.3.2-5", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-6", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-7", version=5)
@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_grows_older_while_the_receive_maximum_holds_it_back_too(qos: int) -> None:
    world = World()
    peer, publisher = world.connect("s", receive_maximum=1, **lasting(V5)), world.connect("p")
    peer.subscribe("a", qos=2)
    for payload in (b"first", b"short", b"long"):
        publisher.publish("a", payload, qos, message_expiry_interval=100 if payload == b"long" else 10)
    (first,) = peer.packets()
    assert isinstance(first, Publish)
    world.pass_time(40)
    identifier = first.packet_id or 0
    peer.say(PubAck(identifier)) if qos == 1 else peer.say(PubRec(identifier), PubComp(identifier))
    (last,) = [packet for packet in peer.packets() if isinstance(packet, Publish)]
    assert (last.payload, last.properties.message_expiry_interval) == (b"long", 60)
    # What has been sent does not expire: it is sent again.
    world.pass_time(1_000)
    peer.vanish()
    assert payloads(back(world, "s", V5, receive_maximum=1)[1]) == [b"long"]


@pytest.mark.mqtt("MQTT-3.3.2-5", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-6", version=5)
def test_a_retained_message_grows_older_too() -> None:
    world = World()
    world.connect("p").publish("a", b"x", retain=True, message_expiry_interval=10)
    world.pass_time(4)
    early = world.connect("early")
    early.subscribe("a")
    (message,) = early.messages()
    assert message.properties.message_expiry_interval == 6
    world.pass_time(6)
    late = world.connect("late")
    late.subscribe("a")
    assert late.messages() == []


@pytest.mark.mqtt("MQTT-3.3.2-6", version=5)
@qualities
def test_a_message_that_is_forwarded_at_once_keeps_its_expiry(qos: int) -> None:
    world = World()
    subscriber = world.connect("s")
    subscriber.subscribe("a", qos=2)
    world.connect("p").publish("a", b"x", qos, message_expiry_interval=4_294_967_295)
    (message,) = subscriber.messages()
    assert message.properties.message_expiry_interval == 4_294_967_295


@pytest.mark.mqtt("MQTT-3.3.2-5", version=5)
@qualities
def test_an_expiry_of_0_reaches_who_is_there_and_nobody_else(qos: int) -> None:
    world = World()
    away = world.connect("away", **lasting(V5))
    away.subscribe("a", qos=2)
    away.vanish()
    world.connect("p").publish("a", b"x", qos, retain=True, message_expiry_interval=0)
    world.pass_time(0.5)
    assert back(world, "away", V5)[1] == []
    late = world.connect("late")
    late.subscribe("a")
    assert late.messages() == []


def test_a_publish_behind_a_connect_is_taken_too() -> None:
    world = World()
    listener, peer = world.connect("l"), world.open(V3)
    listener.subscribe("a")
    peer.say(connect("p", V3), Publish("a", b"x"))
    assert [message.payload for message in listener.messages()] == [b"x"]
