"""Topic aliases (3.3.2.3.4), in both directions."""

import pytest

from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5
from tests.broker.protocols.mqtt.world import World
from tests.conformance.clients import assert_closed, back, lasting, payloads, qualities

pytestmark = pytest.mark.usefixtures("either_lane")


@pytest.mark.mqtt("MQTT-3.3.2-12", version=5)
@qualities
def test_every_alias_up_to_the_maximum_is_accepted(qos: int) -> None:
    world = World(options=MqttOptions(topic_alias_max=10))
    subscriber, publisher = world.connect("s"), world.connect("p")
    assert publisher.connack is not None
    assert publisher.connack.properties.topic_alias_maximum == 10
    subscriber.subscribe("#")
    for alias in range(1, 11):
        publisher.publish(f"t/{alias}", b"first", qos, topic_alias=alias)
    for alias in range(10, 0, -1):
        publisher.publish("", b"again", qos, topic_alias=alias)
    got = [(message.topic, message.payload) for message in subscriber.messages()]
    assert got == [(f"t/{n}", b"first") for n in range(1, 11)] + [(f"t/{n}", b"again") for n in range(10, 0, -1)]


def test_an_alias_may_be_given_to_another_topic() -> None:
    world = World()
    subscriber, publisher = world.connect("s"), world.connect("p")
    subscriber.subscribe("#")
    for topic in ("a", "", "b", "", "a"):
        publisher.publish(topic, topic_alias=3)
    assert [message.topic for message in subscriber.messages()] == ["a", "a", "b", "b", "a"]


@pytest.mark.mqtt("MQTT-3.3.2-9", version=5)
@pytest.mark.mqtt("MQTT-3.2.2-17", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-8", version=5)
@pytest.mark.parametrize("alias", [0, 11, 65_535])
def test_an_alias_out_of_range_is_refused_with_0x94(alias: int) -> None:
    world = World(options=MqttOptions(topic_alias_max=10))
    peer = world.connect("p")
    peer.send(b"\x30\x08\x00\x01a\x03\x23" + alias.to_bytes(2, "big") + b"x")
    assert_closed(peer, ReasonCode.TOPIC_ALIAS_INVALID)


@pytest.mark.mqtt("MQTT-3.2.2-18", version=5)
def test_without_a_maximum_no_alias_is_accepted() -> None:
    world = World(options=MqttOptions(topic_alias_max=0))
    peer = world.connect("p")
    assert peer.connack is not None
    assert peer.connack.properties.topic_alias_maximum is None
    peer.send(b"\x30\x07\x00\x01a\x03\x23\x00\x01")
    assert_closed(peer, ReasonCode.TOPIC_ALIAS_INVALID)


@pytest.mark.mqtt("MQTT-3.3.2-7", version=5)
def test_aliases_end_with_their_connection() -> None:
    world = World()
    listener = world.connect("l")
    listener.subscribe("#")
    first = world.connect("p", **lasting(V5))
    first.publish("a", b"1", topic_alias=1)
    other = world.connect("other")
    other.publish("b", b"2", topic_alias=1)
    first.publish("", b"3", topic_alias=1)
    assert [message.topic for message in listener.messages()] == ["a", "b", "a"]
    first.vanish()
    again, _ = back(world, "p", V5)
    again.say(Publish("", b"4", properties=Properties(topic_alias=1)))
    assert_closed(again, ReasonCode.PROTOCOL_ERROR)
    assert listener.messages() == []


@pytest.mark.mqtt("MQTT-3.1.2-26", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-27", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-11", version=5)
@pytest.mark.parametrize("maximum", [None, 0, 1, 3])
def test_no_alias_above_the_clients_maximum_is_sent(maximum: int | None) -> None:
    world = World()
    subscriber = world.connect("s", **({} if maximum is None else {"topic_alias_maximum": maximum}))
    publisher = world.connect("p")
    subscriber.subscribe("#", qos=1)
    topics = [f"some/topic/{n % 6}" for n in range(60)]
    for number, topic in enumerate(topics):
        publisher.publish(topic, str(number).encode(), number % 2)
    known: dict[int, str] = {}
    seen = []
    for message in subscriber.messages():
        alias = message.properties.topic_alias
        if alias is not None:
            assert 1 <= alias <= (maximum or 0)
            if message.topic:
                known[alias] = message.topic
        seen.append(message.topic or known[alias or 0])
    assert seen == topics


@pytest.mark.mqtt("MQTT-3.3.2-7", version=5)
def test_aliases_towards_a_client_are_told_anew_on_its_next_connection() -> None:
    world = World()
    publisher = world.connect("p")
    peer = world.connect("s", topic_alias_maximum=5, **lasting(V5))
    peer.subscribe("some/topic", qos=1)
    for _ in range(3):
        publisher.publish("some/topic", b"x", 1)
    peer.packets()  # not acknowledged
    peer.vanish()
    _, packets = back(world, "s", V5, topic_alias_maximum=5)
    assert payloads(packets) == [b"x"] * 3
    first = packets[0]
    assert isinstance(first, Publish)
    assert first.topic == "some/topic"


@pytest.mark.mqtt("MQTT-3.1.2-26", version=5)
def test_a_client_that_takes_aliases_gets_them_instead_of_long_topics() -> None:
    world = World()
    subscriber, publisher = world.connect("s", topic_alias_maximum=2), world.connect("p")
    subscriber.subscribe("#")
    topics = ["a/rather/long/topic", "another/long/topic", "one/topic/too/many"]
    for topic in topics * 2:
        publisher.publish(topic, b"x")
    got = [(message.topic, message.properties.topic_alias) for message in subscriber.messages()]
    assert got[:3] == [(topics[0], 1), (topics[1], 2), (topics[2], None)]
    assert got[3:] == [("", 1), ("", 2), (topics[2], None)]


@pytest.mark.mqtt("MQTT-3.1.2-24", version=5)
@pytest.mark.parametrize("room", [0, 2, 3])
def test_an_alias_is_not_told_where_it_would_make_a_packet_too_large(room: int) -> None:
    world = World()
    topic = "a/rather/long/topic"
    size = len(encode(Publish(topic, b"x" * 30), V5))
    subscriber = world.connect("s", topic_alias_maximum=1, maximum_packet_size=size + room)
    subscriber.subscribe("#")
    publisher = world.connect("p")
    for _ in range(2):
        publisher.publish(topic, b"x" * 30)
    got = [(message.topic, message.properties.topic_alias) for message in subscriber.messages()]
    assert got == ([(topic, 1), ("", 1)] if room == 3 else [(topic, None)] * 2)


@pytest.mark.mqtt("MQTT-3.3.2-12", version=5)
def test_an_alias_holds_when_its_first_message_was_refused_or_came_twice() -> None:
    world = World()
    listener, peer = world.connect("l"), world.connect("p")
    listener.subscribe("a", qos=2)
    peer.say(Publish("a", b"1", 2, packet_id=1, properties=Properties(topic_alias=1)))
    peer.say(Publish("", b"1", 2, dup=True, packet_id=1, properties=Properties(topic_alias=1)))
    peer.say(Publish("$SYS/a", b"2", 1, packet_id=2, properties=Properties(topic_alias=2)))
    peer.say(Publish("", b"3", properties=Properties(topic_alias=1)))
    peer.say(Publish("", b"4", 1, packet_id=3, properties=Properties(topic_alias=2)))
    assert [type(packet).__name__ for packet in peer.packets()] == ["PubRec", "PubRec", "PubAck", "PubAck"]
    assert [message.payload for message in listener.messages()] == [b"1", b"3"]
