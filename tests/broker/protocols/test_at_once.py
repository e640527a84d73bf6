"""A client that needs no check is let in within the read that brought its first frame; all else is as with a check."""

import pytest

from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, Publish, SubAck, Subscribe, Subscription
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native

AT_ONCE = pytest.mark.parametrize("at_once", [False, True], ids=["checked", "at once"])


@AT_ONCE
@pytest.mark.parametrize("version", [V3, V5])
def test_mqtt_packets_behind_connect_in_the_same_read_follow_it(version: Version, at_once: bool) -> None:
    world = mqtt.World()
    peer = world.open(version)
    peer.at_once = at_once
    peer.say(
        mqtt.connect("c", version, user_name="label"), Subscribe(1, (Subscription("t", 1),)), Publish("t", b"payload")
    )
    assert [type(packet) for packet in peer.packets()] == [ConnAck, SubAck, Publish]
    client = peer.protocol.client
    assert client is not None
    assert (client.subscriber.label, client.subscriber.user) == (("label", "") if at_once else ("", "label"))
    peer.say(Disconnect())
    assert peer.gone
    assert len(world.broker.clients) == 0


@AT_ONCE
def test_a_connect_that_is_refused_is_answered_and_closed(at_once: bool) -> None:
    world = mqtt.World(sessions_max=1)
    world.connect("one", V5)
    peer = world.open(V5)
    peer.at_once = at_once
    peer.send(encode(mqtt.connect("two", V5), V5) + encode(Publish("t", b"payload"), V5))
    connack = peer.next()
    assert isinstance(connack, ConnAck)
    assert connack.reason_code.name == "QUOTA_EXCEEDED"
    assert peer.gone
    assert world.broker.ledger.messages_in == 0


@AT_ONCE
def test_native_frames_behind_hello_in_the_same_read_follow_it(at_once: bool) -> None:
    world = native.World()
    peer = world.open()
    peer.at_once = at_once
    peer.send(native.frame(1, 1, {}) + native.frame(6, 4, 1, "t") + native.publish("t", b"payload"))
    assert [frame[0] for frame in peer.frames()] == [2, 7, 4]
