"""Retained messages (3.3.1.3, 3.8.3.1), and subscriptions that overlap (3.3.4)."""

import pytest

from fanlight_broker.protocols.mqtt.packets import Publish, Subscription
from fanlight_broker.protocols.mqtt.version import V5, Version
from tests.broker.protocols.mqtt.world import World
from tests.conformance.clients import back, lasting, qualities, versions

pytestmark = pytest.mark.usefixtures("either_lane")


@versions
@pytest.mark.mqtt("MQTT-3.3.1-5")
@pytest.mark.mqtt("MQTT-3.3.1-6", version=3)
@pytest.mark.mqtt("MQTT-3.3.1-8", version=3)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_who_subscribes_later_gets_the_last_retained_message_of_each_topic(
    version: Version, qos: int, granted: int
) -> None:
    world = World()
    publisher = world.connect("p", version)
    for topic, payload in (("a/1", b"old"), ("a/2", b"two"), ("a/1", b"new"), ("b", b"other")):
        publisher.publish(topic, payload, qos, retain=True)
    late = world.connect("late", version)
    late.subscribe("a/+", qos=granted)
    got = sorted((m.topic, m.payload, m.qos, m.retain) for m in late.messages())
    least = min(qos, granted)
    assert got == [("a/1", b"new", least, True), ("a/2", b"two", least, True)]


@versions
@pytest.mark.mqtt("MQTT-3.3.1-7", version=3)
@pytest.mark.mqtt("MQTT-3.3.1-5", version=5)
def test_a_retained_qos_0_message_discards_the_one_before(version: Version) -> None:
    world = World()
    publisher = world.connect("p", version)
    publisher.publish("a", b"1", 2, retain=True)
    publisher.publish("a", b"2", 0, retain=True)
    late = world.connect("late", version)
    late.subscribe("a", qos=2)
    assert [(message.payload, message.qos) for message in late.messages()] == [(b"2", 0)]


@versions
@pytest.mark.mqtt("MQTT-3.3.1-9", version=3)
@pytest.mark.mqtt("MQTT-3.3.1-12", version=5)
@qualities
def test_retain_is_0_for_a_subscription_that_existed(version: Version, qos: int) -> None:
    world = World()
    subscriber = world.connect("s", version)
    subscriber.subscribe("a", qos=2)
    world.connect("p", version).publish("a", b"x", qos, retain=True)
    assert [message.retain for message in subscriber.messages()] == [False]


@versions
@qualities
@pytest.mark.mqtt("MQTT-3.3.1-10", version=3)
@pytest.mark.mqtt("MQTT-3.3.1-11", version=3)
@pytest.mark.mqtt("MQTT-3.3.1-6", version=5)
@pytest.mark.mqtt("MQTT-3.3.1-7", version=5)
def test_an_empty_retained_message_is_forwarded_and_clears_the_topic(version: Version, qos: int) -> None:
    world = World()
    subscriber, publisher = world.connect("s", version), world.connect("p", version)
    subscriber.subscribe("#", qos=2)
    publisher.publish("a", b"x", retain=True)
    publisher.publish("a", b"", qos, retain=True)
    publisher.publish("never", b"", qos, retain=True)
    assert [(message.topic, message.payload) for message in subscriber.messages()] == [
        ("a", b"x"), ("a", b""), ("never", b""),
    ]  # fmt: skip
    late = world.connect("late", version)
    late.subscribe("#")
    assert late.messages() == []


@versions
@qualities
@pytest.mark.mqtt("MQTT-3.3.1-12", version=3)
@pytest.mark.mqtt("MQTT-3.3.1-8", version=5)
def test_a_message_without_retain_changes_no_retained_one(version: Version, qos: int) -> None:
    world = World()
    publisher = world.connect("p", version)
    publisher.publish("a", b"kept", 1, retain=True)
    for payload in (b"passing", b""):
        publisher.publish("a", payload, qos)
    publisher.publish("b", b"passing", qos)
    late = world.connect("late", version)
    late.subscribe("#")
    assert [(message.topic, message.payload) for message in late.messages()] == [("a", b"kept")]


@versions
@pytest.mark.mqtt("MQTT-3.1.2-7", version=3)
def test_retained_messages_do_not_end_with_the_session(version: Version) -> None:
    world = World()
    publisher = world.connect("p", version)
    publisher.publish("a", b"kept", retain=True)
    publisher.vanish()
    world.connect("p", version).vanish()
    late = world.connect("late", version)
    late.subscribe("a")
    assert [message.payload for message in late.messages()] == [b"kept"]


@pytest.mark.mqtt("MQTT-3.3.1-12", version=5)
@pytest.mark.mqtt("MQTT-3.3.1-13", version=5)
@qualities
def test_retain_as_published_keeps_the_flag_and_without_it_it_is_0(qos: int) -> None:
    world = World()
    kept, plain, publisher = world.connect("kept"), world.connect("plain"), world.connect("p")
    kept.subscribe(Subscription("a", 2, retain_as_published=True))
    plain.subscribe(Subscription("a", 2))
    for retain in (True, False):
        publisher.publish("a", b"x", qos, retain=retain)
    assert [message.retain for message in kept.messages()] == [True, False]
    assert [message.retain for message in plain.messages()] == [False, False]


@pytest.mark.mqtt("MQTT-3.8.3-3", version=5)
def test_a_no_local_subscription_does_not_get_what_its_client_retained() -> None:
    world = World()
    peer, other = world.connect("s", **lasting(V5)), world.connect("other")
    for publisher, topic in ((peer, "a/mine"), (other, "a/theirs"), (other, "a/was theirs"), (peer, "a/was theirs")):
        publisher.publish(topic, b"x", 1, retain=True)
    peer.subscribe(Subscription("a/+", no_local=True))
    assert [message.topic for message in peer.messages()] == ["a/theirs"]
    peer.vanish()
    again, _ = back(world, "s", V5)  # it is the identifier that counts, not the connection
    again.subscribe(Subscription("a/+", no_local=True))
    assert [message.topic for message in again.messages()] == ["a/theirs"]
    again.subscribe(Subscription("a/+"))
    assert len(again.messages()) == 3


@pytest.mark.mqtt("MQTT-3.3.1-9", version=5)
@pytest.mark.mqtt("MQTT-3.3.1-10", version=5)
@pytest.mark.mqtt("MQTT-3.3.1-11", version=5)
@pytest.mark.parametrize(
    ("handling", "first", "again"), [(0, [b"x"], [b"x"]), (1, [b"x"], []), (2, [], [])], ids=["0", "1", "2"]
)
def test_retain_handling_decides_whether_retained_messages_come(
    handling: int, first: list[bytes], again: list[bytes]
) -> None:
    world = World()
    world.connect("p").publish("a", b"x", retain=True)
    peer = world.connect("s", **lasting(V5))
    for expected in (first, again, again):
        peer.subscribe(Subscription("a", 1, retain_handling=handling))
        assert [message.payload for message in peer.messages()] == expected
    peer.vanish()
    resumed, packets = back(world, "s", V5)
    assert packets == []
    resumed.subscribe(Subscription("a", 1, retain_handling=handling))  # the session has it
    assert [message.payload for message in resumed.messages()] == again


# -- overlapping subscriptions -----------------------------------------------------------------------------------------


@versions
@qualities
@pytest.mark.mqtt("MQTT-3.3.5-1", version=3)
@pytest.mark.mqtt("MQTT-3.3.4-2", version=5)
def test_overlapping_subscriptions_get_a_message_at_their_highest_qos(version: Version, qos: int) -> None:
    world = World()
    peer, publisher = world.connect("s", version), world.connect("p", version)
    for number, filter in enumerate(("a/b", "a/#", "+/b")):
        peer.subscribe(filter, qos=number)
    publisher.publish("a/b", b"x", qos)
    assert [message.qos for message in peer.messages()] == [qos]  # all three match: 2
    publisher.publish("a/c", b"x", qos)
    assert [message.qos for message in peer.messages()] == [min(qos, 1)]  # a/# alone


@pytest.mark.mqtt("MQTT-3.3.4-3", version=5)
@pytest.mark.mqtt("MQTT-3.3.4-4", version=5)
@qualities
def test_one_copy_has_the_identifiers_of_all_subscriptions_that_match(qos: int) -> None:
    world = World()
    peer, publisher = world.connect("s"), world.connect("p")
    peer.subscribe("a/b", qos=2, subscription_identifiers=(1,))
    peer.subscribe("a/#", qos=1, subscription_identifiers=(268_435_455,))
    peer.subscribe("+/b", qos=0)
    peer.subscribe("c", qos=0, subscription_identifiers=(3,))
    publisher.publish("a/b", b"x", qos)
    (message,) = peer.messages()
    assert sorted(message.properties.subscription_identifiers) == [1, 268_435_455]
    publisher.publish("x/b", b"x", qos)
    (message,) = peer.messages()
    assert message.properties.subscription_identifiers == ()


@pytest.mark.mqtt("MQTT-3.3.4-3", version=5)
def test_a_retained_message_has_the_identifier_of_the_subscription_it_was_sent_for() -> None:
    world = World()
    peer = world.connect("s")
    world.connect("p").publish("a/b", b"x", retain=True)
    peer.subscribe("a/+", subscription_identifiers=(7,))
    peer.messages()
    peer.subscribe("a/#", subscription_identifiers=(8,))
    assert [message.properties.subscription_identifiers for message in peer.messages()] == [(8,)]


@pytest.mark.mqtt("MQTT-3.8.3-3", version=5)
@qualities
def test_a_no_local_subscription_that_overlaps_drops_out_of_ones_own_messages(qos: int) -> None:
    world = World()
    peer = world.connect("s")
    peer.subscribe(Subscription("a/#", 2, no_local=True, retain_as_published=True), subscription_identifiers=(1,))
    peer.subscribe(Subscription("a/b", 1), subscription_identifiers=(2,))
    peer.say(Publish("a/b", b"mine", qos, packet_id=9 if qos else None, retain=True))
    own = [packet for packet in peer.packets() if isinstance(packet, Publish)]
    assert [(m.qos, m.retain, m.properties.subscription_identifiers) for m in own] == [(min(qos, 1), False, (2,))]
    world.connect("p").publish("a/b", b"theirs", qos, retain=True)
    (message,) = [packet for packet in peer.packets() if isinstance(packet, Publish)]
    assert (message.qos, message.retain) == (qos, True)
    assert sorted(message.properties.subscription_identifiers) == [1, 2]
