"""Acknowledgements of the wrong kind for a message in flight: a protocol error (4.3, 4.8; 5.0: 4.13)."""

from typing import Final

import pytest

from fanlight_broker.protocols.mqtt.packets import Acknowledgement, Packet, PubAck, PubComp, Publish, PubRec, PubRel
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import Peer, World
from tests.conformance.clients import assert_closed, back, lasting, payloads, publishes, versions

R = ReasonCode

# What the broker waits for, by the QoS of its message and whether a PUBREC has come; and what does not answer that.
WRONG: Final = [
    pytest.param(1, False, PubRec, id="PUBREC for QoS 1"),
    pytest.param(1, False, PubComp, id="PUBCOMP for QoS 1"),
    pytest.param(2, False, PubAck, id="PUBACK for QoS 2"),
    pytest.param(2, False, PubComp, id="PUBCOMP for QoS 2 before PUBREC"),
    pytest.param(2, True, PubAck, id="PUBACK for QoS 2 after PUBREC"),
]
# The same with an error, which 5.0 has; and the one packet that is right there with a success only.
WRONG_WITH_AN_ERROR: Final = [
    pytest.param(1, False, PubRec, R.UNSPECIFIED_ERROR, id="PUBREC with an error for QoS 1"),
    pytest.param(1, False, PubComp, R.PACKET_IDENTIFIER_NOT_FOUND, id="PUBCOMP with an error for QoS 1"),
    pytest.param(2, False, PubAck, R.UNSPECIFIED_ERROR, id="PUBACK with an error for QoS 2"),
    pytest.param(2, False, PubComp, R.PACKET_IDENTIFIER_NOT_FOUND, id="PUBCOMP with an error before PUBREC"),
    pytest.param(2, True, PubAck, R.UNSPECIFIED_ERROR, id="PUBACK with an error after PUBREC"),
    pytest.param(2, True, PubRec, R.UNSPECIFIED_ERROR, id="PUBREC with an error after PUBREC"),
]


def in_flight(version: Version, qos: int, *, released: bool) -> tuple[World, Peer, int]:
    """A session with one message on its way, and its identifier; two more wait behind a Receive Maximum of 1."""
    world = World(inflight_messages_max=1)
    peer, publisher = world.connect("s", version, **lasting(version)), world.connect("p", version)
    peer.subscribe("a", qos=qos)
    for number in range(3):
        publisher.publish("a", str(number).encode(), qos)
    (message,) = publishes(peer.packets())
    identifier = message.packet_id or 0
    if released:
        peer.say(PubRec(identifier))
        assert peer.packets() == [PubRel(identifier)]
    return world, peer, identifier


def assert_kept(world: World, version: Version, qos: int, identifier: int, *, released: bool) -> None:
    """The message is where it was: it comes again on the next connection, and the others after it."""
    peer, rest = back(world, "s", version)
    got = []
    if released:
        assert rest.pop(0) == PubRel(identifier)  # which takes nothing of a new connection's Receive Maximum (4.9)
        peer.say(PubComp(identifier))
    else:
        (again,) = publishes(rest)
        assert (again.payload, again.dup, again.packet_id) == (b"0", True, identifier)
        peer.say(*complete(again))
        rest = peer.packets()
    while any(isinstance(packet, Publish) for packet in rest):
        (message,) = publishes([packet for packet in rest if isinstance(packet, Publish)])
        got.append(message.payload)
        peer.say(*complete(message))
        rest = peer.packets()
    assert got == [b"1", b"2"]


def complete(message: Publish) -> list[Packet]:
    identifier = message.packet_id or 0
    return [PubAck(identifier)] if message.qos == 1 else [PubRec(identifier), PubComp(identifier)]


@versions
@pytest.mark.mqtt("MQTT-4.8.0-1", version=3)
@pytest.mark.mqtt("MQTT-4.13.1-1", version=5)
@pytest.mark.parametrize(("qos", "released", "kind"), WRONG)
def test_a_wrong_acknowledgement_closes_the_connection_and_the_message_comes_again(
    version: Version, qos: int, released: bool, kind: type[Acknowledgement]
) -> None:
    world, peer, identifier = in_flight(version, qos, released=released)
    peer.say(kind(identifier))
    assert_closed(peer, R.PROTOCOL_ERROR)
    assert_kept(world, version, qos, identifier, released=released)


@pytest.mark.mqtt("MQTT-4.13.1-1", version=5)
@pytest.mark.parametrize(("qos", "released", "kind", "reason"), WRONG_WITH_AN_ERROR)
def test_a_wrong_acknowledgement_with_an_error_closes_the_connection_and_the_message_comes_again(
    qos: int, released: bool, kind: type[Acknowledgement], reason: ReasonCode
) -> None:
    world, peer, identifier = in_flight(V5, qos, released=released)
    peer.say(kind(identifier, reason))
    assert_closed(peer, R.PROTOCOL_ERROR)
    assert_kept(world, V5, qos, identifier, released=released)


@versions
def test_a_pubrec_may_be_repeated_until_the_pubcomp(version: Version) -> None:
    _, peer, identifier = in_flight(version, 2, released=True)
    peer.say(PubRec(identifier))
    assert peer.packets() == [PubRel(identifier)]
    peer.say(PubComp(identifier))
    assert payloads(peer.packets()) == [b"1"]


@versions
@pytest.mark.parametrize("kind", [PubAck, PubRec, PubComp])
def test_an_acknowledgement_of_nothing_leaves_the_connection_open(
    version: Version, kind: type[Acknowledgement]
) -> None:
    world, peer, identifier = in_flight(version, 1, released=False)
    unknown = identifier + 1
    peer.say(kind(unknown))
    not_found = PubRel(unknown) if version is V3 else PubRel(unknown, R.PACKET_IDENTIFIER_NOT_FOUND)
    assert peer.packets() == ([not_found] if kind is PubRec else [])
    assert not peer.gone
    assert world.counts.unknown_acknowledgements == 1
    peer.say(PubAck(identifier))
    assert payloads(peer.packets()) == [b"1"]


@versions
def test_a_pubcomp_and_a_puback_may_be_repeated(version: Version) -> None:
    _, peer, identifier = in_flight(version, 2, released=True)
    peer.say(PubComp(identifier), PubComp(identifier))
    assert payloads(peer.packets()) == [b"1"]
    assert not peer.gone
    _, peer, identifier = in_flight(version, 1, released=False)
    peer.say(PubAck(identifier), PubAck(identifier))
    assert payloads(peer.packets()) == [b"1"]
    assert not peer.gone
