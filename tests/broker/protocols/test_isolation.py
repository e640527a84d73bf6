"""A client that a message cannot be written for is closed with its protocol's error, and nobody else notices.

What fails is the format of one subscriber, put in its place before it subscribes; all else is the real thing.
"""

import pytest

from fanlight_broker.core.content import Content
from fanlight_broker.protocols.mqtt.packets import Disconnect, PubAck, Publish, Subscribe, Subscription, WillFields
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.message import Message
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native
from tests.broker.wire.formats import LineFormat
from tests.captured_logs import capture_logs

POISON = b"poison"


class Faulty(LineFormat):
    def write(self, content: Content) -> Message | None:
        if content.payload == POISON:
            raise RuntimeError("cannot be written")
        return super().write(content)


def victim_of(world: mqtt.World, version: Version, *, qos: int = 0, subscribed: bool = True) -> mqtt.Peer:
    victim = world.connect("victim", version)
    assert victim.protocol.client is not None
    victim.protocol.client.subscriber.format = Faulty("lines")
    if subscribed:
        victim.subscribe("#", qos=qos)
    return victim


@pytest.mark.parametrize("plain", [False, True], ids=["compiled lane", "Python lane"])
def test_a_native_publisher_and_the_others_are_served_and_the_victim_is_told(plain: bool) -> None:
    world = native.World(plain=plain)
    publisher, before, victim, after = (world.connect() for _ in range(4))
    assert victim.protocol.client is not None
    victim.protocol.client.subscriber.format = Faulty("lines")
    for peer in (before, victim, after):
        peer.say(6, None, 1, "#", {})
    with capture_logs() as logs:
        publisher.send(native.publish("t", b"1") + native.publish("t", POISON, request=1) + native.publish("t", b"2"))
    assert publisher.next()[:3] == [5, 1, 2]
    for peer in (before, after):
        assert native.messages(peer.frames()) == [(1, b"1"), (1, POISON), (1, b"2")]
    goodbye = native.frame(14, "internal_error", "a message could not be written for this client")
    assert victim.received.endswith(goodbye)
    assert victim.gone
    assert not publisher.gone
    assert [each["event"] for each in logs if each["log_level"] == "error"] == ["delivery_failed"]
    assert world.broker.ledger.dropped_fault == 1


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("qos", [0, 1])
def test_an_mqtt_publisher_and_the_others_are_served_and_the_victim_is_told(version: Version, qos: int) -> None:
    world = mqtt.World()
    publisher, other = world.connect("publisher"), world.connect("other")
    victim = victim_of(world, version, qos=qos)
    other.subscribe("#", qos=qos)
    assert publisher.publish("t", POISON, qos=1) == [PubAck(publisher.packet_id)]
    assert [each.payload for each in other.messages()] == [POISON]
    assert victim.gone
    if version is V5:
        (farewell,) = victim.packets()
        assert isinstance(farewell, Disconnect)
        assert farewell.reason_code is ReasonCode.UNSPECIFIED_ERROR
    assert not publisher.gone
    assert [each.payload for each in other.messages()] == []


def test_a_will_reaches_the_others_though_one_cannot_be_given_it() -> None:
    world = mqtt.World()
    victim, other = victim_of(world, V5), world.connect("other")
    other.subscribe("#")
    dying = world.connect("dying", will=WillFields("last/words", POISON))
    dying.vanish()
    assert [each.payload for each in other.messages()] == [POISON]
    assert victim.gone
    assert not other.gone


def test_the_will_of_who_is_closed_for_a_fault_may_be_another_ones_fault() -> None:
    world = mqtt.World()
    first = world.connect("first", will=WillFields("last/words", POISON))
    assert first.protocol.client is not None
    first.protocol.client.subscriber.format = Faulty("lines")
    first.subscribe("a")
    second = world.connect("second")
    assert second.protocol.client is not None
    second.protocol.client.subscriber.format = Faulty("lines")
    second.subscribe("last/words")
    publisher = world.connect("publisher")
    publisher.publish("a", POISON)
    assert (first.gone, second.gone, publisher.gone) == (True, True, False)


def test_a_retained_message_that_cannot_be_written_closes_who_asks_for_it_and_nobody_else() -> None:
    world = mqtt.World()
    publisher = world.connect("publisher")
    publisher.publish("t", POISON, retain=True)
    victim, other = victim_of(world, V5, subscribed=False), world.connect("other")
    victim.say(Subscribe(1, (Subscription("#"),)))
    other.subscribe("#")
    assert [each.payload for each in other.packets() if isinstance(each, Publish)] == [POISON]
    world.pass_time(1)  # the tick's
    assert victim.gone
    assert not other.gone
    assert not publisher.gone
