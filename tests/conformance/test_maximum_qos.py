"""A broker without QoS 1 or 2 (Maximum QoS, 3.2.2.3.4), and one without retained messages (3.2.2.3.5)."""

import pytest

from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import ConnAck, PubAck, Publish, WillFields
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import Peer, World, connect
from tests.conformance.clients import assert_closed, versions

pytestmark = pytest.mark.usefixtures("either_lane")

R = ReasonCode
maxima = pytest.mark.parametrize("maximum", [0, 1])
without = pytest.mark.parametrize("limits", [{"retained_messages_max": 0}, {"retained_bytes_max": 0}], ids=str)


def refused(world: World, version: Version, will: WillFields, reason: ReasonCode) -> None:
    """A CONNECT with this will is refused; 3.1.1 has no code for it, and closes."""
    peer: Peer = world.open(version)
    peer.say(connect("mortal", version, will=will))
    assert peer.gone
    answers = peer.packets()
    if version is V5:
        (connack,) = answers
        assert isinstance(connack, ConnAck)
        assert connack.reason_code == reason
    else:
        assert answers == []
    assert len(world.broker.sessions) == 0


@pytest.mark.mqtt("MQTT-3.2.2-9", version=5)
@maxima
def test_a_broker_without_qos_1_or_2_says_its_maximum_qos(maximum: int) -> None:
    peer = World(options=MqttOptions(maximum_qos=maximum)).connect("s")
    assert peer.connack is not None
    assert peer.connack.properties.maximum_qos == maximum


@versions
@pytest.mark.mqtt("MQTT-3.2.2-10", version=5)
@maxima
def test_a_subscription_is_granted_the_maximum_qos_at_most(version: Version, maximum: int) -> None:
    world = World(options=MqttOptions(maximum_qos=maximum))
    peer, publisher = world.connect("s", version), world.connect("p", version)
    assert peer.subscribe("a/0", qos=0) + peer.subscribe("a/1", qos=1) + peer.subscribe("a/2", "b", qos=2) == (
        0, min(1, maximum), maximum, maximum,
    )  # fmt: skip
    for topic in ("a/0", "a/1", "a/2"):
        publisher.publish(topic, b"x", maximum)
    assert [message.qos for message in peer.messages()] == [0, min(1, maximum), maximum]


@versions
@pytest.mark.mqtt("MQTT-3.2.2-11", version=5)
@maxima
def test_a_publish_above_the_maximum_qos_closes_the_connection(version: Version, maximum: int) -> None:
    world = World(options=MqttOptions(maximum_qos=maximum))
    listener, peer = world.connect("l", version), world.connect("p", version)
    listener.subscribe("a")
    peer.say(Publish("a", b"in order", maximum, packet_id=1 if maximum else None))
    assert len(peer.packets()) == maximum
    peer.say(Publish("a", b"above", maximum + 1, packet_id=2))
    assert_closed(peer, R.QOS_NOT_SUPPORTED)
    assert [message.payload for message in listener.messages()] == [b"in order"]


@versions
@pytest.mark.mqtt("MQTT-3.2.2-12", version=5)
@maxima
def test_a_will_above_the_maximum_qos_is_refused_with_its_connect(version: Version, maximum: int) -> None:
    world = World(options=MqttOptions(maximum_qos=maximum))
    refused(world, version, WillFields("a", b"gone", maximum + 1), R.QOS_NOT_SUPPORTED)
    world.connect("mortal", version, will=WillFields("a", b"gone", maximum))


@without
def test_a_broker_that_retains_nothing_says_so(limits: dict[str, int]) -> None:
    peer = World(**limits).connect("s")
    assert peer.connack is not None
    assert peer.connack.properties.retain_available is False


@pytest.mark.mqtt("MQTT-3.2.2-14", version=5)
@without
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_retain_closes_the_connection_of_a_client_that_was_told(limits: dict[str, int], qos: int) -> None:
    world = World(**limits)
    peer = world.connect("p")
    peer.say(Publish("a", b"x", qos, retain=True, packet_id=1 if qos else None))
    assert_closed(peer, R.RETAIN_NOT_SUPPORTED)


@pytest.mark.mqtt("MQTT-3.3.1-7", version=3)
@without
def test_a_3_1_1_client_cannot_be_told_so_its_message_is_delivered_and_not_retained(limits: dict[str, int]) -> None:
    world = World(**limits)
    listener, peer = world.connect("l", V3), world.connect("p", V3, will=WillFields("a", b"gone", 1, retain=True))
    listener.subscribe("a")
    assert peer.publish("a", b"x", 1, retain=True) == [PubAck(1)]
    peer.vanish()
    assert [message.payload for message in listener.messages()] == [b"x", b"gone"]
    late = world.connect("late", V3)
    late.subscribe("a")
    assert late.messages() == []
    assert world.broker.retained.refused == 2


@pytest.mark.mqtt("MQTT-3.2.2-13", version=5)
@without
def test_a_retained_will_is_refused_by_a_broker_that_retains_nothing(limits: dict[str, int]) -> None:
    world = World(**limits)
    refused(world, V5, WillFields("a", b"gone", retain=True), R.RETAIN_NOT_SUPPORTED)
    world.connect("mortal", will=WillFields("a", b"gone"))


@versions
@pytest.mark.parametrize(
    ("topic", "limits"),
    [("a/b/c", {"topic_words_max": 2}), ("abcdef", {"topic_bytes_max": 5}), ("$SYS", {}), ("$SYS/x", {})],
    ids=str,
)
def test_a_will_on_a_topic_beyond_the_limits_is_refused_with_its_connect(
    version: Version, topic: str, limits: dict[str, int]
) -> None:
    refused(World(**limits), version, WillFields(topic, b"gone"), R.TOPIC_NAME_INVALID)


def test_a_will_with_a_wildcard_in_its_topic_is_refused_with_its_connect() -> None:
    world, octets = World(), bytes.fromhex("10 18 0004 4d515454 05 06 0000 00 0001 73 00 0003 61 2f 23 0003 627965")
    peer = world.open()
    peer.send(octets)
    (connack,) = peer.packets()
    assert isinstance(connack, ConnAck)
    assert connack.reason_code == R.TOPIC_NAME_INVALID
    assert peer.gone
