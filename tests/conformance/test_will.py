"""Wills (3.1.2.5, 3.1.3.2): published when the connection ends otherwise than by a DISCONNECT with 0x00."""

from typing import Any

import pytest

from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, WillFields
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import Peer, World, connect
from tests.conformance.clients import back, lasting, versions


def will(qos: int = 0, *, retain: bool = False, topic: str = "will", **properties: Any) -> WillFields:
    return WillFields(topic, b"gone", qos, retain, Properties(**properties))


def listening(world: World, version: Version) -> Peer:
    """A client that is subscribed to the wills."""
    peer = world.connect("listener", version)
    peer.subscribe("will", qos=2)
    return peer


@versions
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.mqtt("MQTT-3.1.2-8", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-7", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-8", version=5)
def test_a_will_is_published_when_the_connection_is_lost(version: Version, qos: int) -> None:
    world = World()
    listener, mortal = listening(world, version), world.connect("mortal", version, will=will(qos))
    assert listener.messages() == []
    mortal.vanish()
    (message,) = listener.messages()
    assert (message.topic, message.payload, message.qos) == ("will", b"gone", qos)


@versions
@pytest.mark.mqtt("MQTT-3.1.2-8", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-8", version=5)
@pytest.mark.parametrize("octets", ["0000", "c101", "1000", "36020000", "82020001"])
def test_a_will_is_published_when_the_broker_closes_for_an_error(version: Version, octets: str) -> None:
    world = World()
    listener, mortal = listening(world, version), world.connect("mortal", version, will=will())
    mortal.send(bytes.fromhex(octets))
    assert mortal.gone
    assert [message.payload for message in listener.messages()] == [b"gone"]


@versions
@pytest.mark.mqtt("MQTT-3.1.2-24", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-22", version=5)
def test_a_will_is_published_when_the_client_was_silent_for_too_long(version: Version) -> None:
    world = World()
    listener, mortal = listening(world, version), world.connect("mortal", version, will=will(), keep_alive=10)
    world.pass_time(15)
    assert mortal.gone
    assert [message.payload for message in listener.messages()] == [b"gone"]


@versions
@pytest.mark.mqtt("MQTT-3.14.4-3")
@pytest.mark.mqtt("MQTT-3.1.2-10")
@pytest.mark.mqtt("MQTT-3.1.2-8", version=3)
def test_a_disconnect_discards_the_will(version: Version) -> None:
    world = World()
    listener = listening(world, version)
    mortal = world.connect("mortal", version, will=will(), **lasting(version))
    mortal.say(Disconnect())
    assert mortal.gone
    world.pass_time(1_000_000)
    assert listener.messages() == []


@pytest.mark.mqtt("MQTT-3.1.2-8", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-10", version=5)
@pytest.mark.mqtt("MQTT-4.13.2-1", version=5)
@pytest.mark.parametrize(
    "reason", [ReasonCode.DISCONNECT_WITH_WILL_MESSAGE, ReasonCode.UNSPECIFIED_ERROR, ReasonCode.PACKET_TOO_LARGE]
)
def test_a_disconnect_with_another_code_leaves_the_will(reason: ReasonCode) -> None:
    world = World()
    listener, mortal = listening(world, V5), world.connect("mortal", will=will())
    mortal.say(Disconnect(reason))
    assert mortal.gone
    assert mortal.received == b""
    assert [message.payload for message in listener.messages()] == [b"gone"]


@versions
@pytest.mark.mqtt("MQTT-3.1.2-10")
def test_a_will_is_published_once(version: Version) -> None:
    world = World()
    listener = listening(world, version)
    world.connect("mortal", version, will=will(), **lasting(version)).vanish()
    assert len(listener.messages()) == 1
    back(world, "mortal", version)[0].vanish()  # its CONNECT had no will
    world.pass_time(1_000_000)
    assert listener.messages() == []


@pytest.mark.mqtt("MQTT-3.1.2-12", version=3)
def test_without_the_flag_there_is_no_will() -> None:
    world = World()
    listener = listening(world, V3)
    world.connect("mortal", V3).vanish()
    assert listener.messages() == []


@versions
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.mqtt("MQTT-3.1.2-16", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-17", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-14", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-15", version=5)
def test_will_retain_decides_whether_it_is_retained(version: Version, retain: bool) -> None:
    world = World()
    world.connect("mortal", version, will=will(1, retain=retain)).vanish()
    late = listening(world, version)
    assert [(message.payload, message.retain) for message in late.messages()] == ([(b"gone", True)] if retain else [])


@versions
@pytest.mark.mqtt("MQTT-3.1.2-8", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-8", version=5)
@pytest.mark.parametrize("clean", [False, True])
def test_a_takeover_publishes_the_will_of_the_connection_it_ends(version: Version, clean: bool) -> None:
    world = World()
    listener = listening(world, version)
    world.connect("mortal", version, will=will(), **lasting(version))
    successor = world.connect("mortal", version, **(lasting(version) | {"clean_start": clean}))
    assert [message.payload for message in listener.messages()] == [b"gone"]
    assert not successor.gone


@pytest.mark.mqtt("MQTT-3.1.3-9", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-8", version=5)
def test_who_is_back_within_the_will_delay_has_no_will_sent() -> None:
    world = World()
    listener = listening(world, V5)
    world.connect("mortal", will=will(will_delay_interval=30), **lasting(V5)).vanish()
    world.pass_time(29)
    assert listener.messages() == []
    back(world, "mortal", V5)
    world.pass_time(60)
    assert listener.messages() == []


@pytest.mark.mqtt("MQTT-3.1.3-9", version=5)
def test_a_takeover_within_the_will_delay_has_no_will_sent() -> None:
    world = World()
    listener = listening(world, V5)
    world.connect("mortal", will=will(will_delay_interval=30), **lasting(V5))
    back(world, "mortal", V5)
    world.pass_time(60)
    assert listener.messages() == []


@pytest.mark.mqtt("MQTT-3.1.2-8", version=5)
@pytest.mark.parametrize(
    ("delay", "expiry", "after"), [(30, 600, 30), (600, 30, 30), (30, 0, 0), (0, 30, 0), (30, 0xFFFFFFFF, 30)]
)
def test_a_will_waits_for_its_delay_or_the_end_of_the_session(delay: int, expiry: int, after: int) -> None:
    world = World()
    listener = listening(world, V5)
    fields = {} if expiry == 0 else lasting(V5, expiry)
    world.connect("mortal", will=will(will_delay_interval=delay), **fields).vanish()
    if after:
        world.pass_time(after - 0.5)
        assert listener.messages() == []
        world.pass_time(0.5)
    assert [message.payload for message in listener.messages()] == [b"gone"]
    world.pass_time(1_000)
    assert listener.messages() == []


@pytest.mark.mqtt("MQTT-3.1.2-8", version=5)
def test_a_clean_start_ends_the_session_and_publishes_the_will_that_waits() -> None:
    world = World()
    listener = listening(world, V5)
    world.connect("mortal", will=will(will_delay_interval=30), **lasting(V5)).vanish()
    assert listener.messages() == []
    world.connect("mortal")
    assert [message.payload for message in listener.messages()] == [b"gone"]


@pytest.mark.mqtt("MQTT-3.1.2-8", version=5)
def test_a_disconnect_that_ends_the_session_publishes_a_delayed_will_at_once() -> None:
    world = World()
    listener = listening(world, V5)
    mortal = world.connect("mortal", will=will(will_delay_interval=30), **lasting(V5))
    mortal.say(Disconnect(ReasonCode.DISCONNECT_WITH_WILL_MESSAGE, Properties(session_expiry_interval=0)))
    assert [message.payload for message in listener.messages()] == [b"gone"]


@pytest.mark.mqtt("MQTT-3.1.3-10", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-18", version=5)
def test_a_will_has_its_properties_and_not_its_delay() -> None:
    world = World()
    listener = listening(world, V5)
    said = {
        "payload_format_indicator": 1, "message_expiry_interval": 60, "content_type": "text/plain",
        "response_topic": "r", "correlation_data": b"\0\1", "user_properties": (("b", "1"), ("a", "2"), ("b", "3")),
    }  # fmt: skip
    world.connect("mortal", will=will(1, will_delay_interval=10, **said), **lasting(V5)).vanish()
    world.pass_time(10)
    (message,) = listener.messages()
    assert message.properties == Properties(**said)  # its time runs from its publication


@pytest.mark.mqtt("MQTT-3.2.2-6", version=3)
@pytest.mark.mqtt("MQTT-3.1.4-2", version=5)
@versions
def test_a_will_on_a_topic_of_the_brokers_own_is_refused_with_its_connect(version: Version) -> None:
    world = World()
    peer = world.open(version)
    peer.say(connect("mortal", version, will=will(topic="$SYS/broker/version")))
    assert peer.gone
    if version is V3:
        assert peer.received == b""
        return
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == ReasonCode.TOPIC_NAME_INVALID
