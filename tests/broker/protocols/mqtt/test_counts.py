"""What is counted of all MQTT connections together, as /stats and /metrics show it."""

import pytest

from fanlight_broker.protocols.mqtt.options import COUNTERS
from fanlight_broker.protocols.mqtt.packets import PubAck, PubComp, PubRec, PubRel, Subscribe, Subscription
from fanlight_broker.protocols.mqtt.version import V3, V5
from tests.broker.protocols.mqtt.world import World, connect


def test_everything_counted_has_a_name_that_is_explained() -> None:
    counts = World().counts
    assert {*counts.counters(), *counts.reasons()} == set(COUNTERS)


def test_connections_closed_for_an_error_are_counted_by_its_reason() -> None:
    """MQTT 5, 4.13"""
    world = World()
    for _ in range(2):
        world.connect().send(b"\x00\x00")
    world.connect().say(connect("again"))
    world.connect(version=V3).send(b"\x30\x03\0\1#")
    assert world.counts.reasons()["mqtt_errors"] == {
        "malformed_packet": 2, "protocol_error": 1, "topic_name_invalid": 1,
    }  # fmt: skip
    assert world.counts.reasons()["mqtt_connects_refused"] == {}


def test_clients_that_are_not_let_in_are_counted_by_the_reason_they_were_told() -> None:
    """MQTT 5, 3.2.2.2"""
    world = World()
    world.open(V3).say(connect("", V3, clean_start=False))
    world.open(V5).say(connect("a", authentication_method="none such"))
    world.open(V5).say(connect("a", authentication_method="none such"))
    assert world.counts.reasons()["mqtt_connects_refused"] == {
        "client_identifier_not_valid": 1, "bad_authentication_method": 2,
    }  # fmt: skip
    assert world.counts.reasons()["mqtt_errors"] == {}


@pytest.mark.parametrize(
    ("octets", "reason"),
    [(b"\x10\0", "malformed_packet"), (b"\xc0\0", "protocol_error"), (b"\x10\xff\xff\x7f", "packet_too_large")],
    ids=["no protocol name", "PINGREQ first", "too large"],
)  # fmt: skip
def test_who_is_closed_without_a_connack_is_counted_among_the_errors(octets: bytes, reason: str) -> None:
    """MQTT 5, 4.13.1: there is no version to answer in."""
    world = World()
    peer = world.open()
    peer.send(octets)
    assert (peer.gone, peer.received) == (True, b"")
    assert world.counts.reasons() == {"mqtt_errors": {reason: 1}, "mqtt_connects_refused": {}}


def test_acknowledgements_of_what_was_not_sent_are_counted() -> None:
    world = World()
    peer = world.connect()
    peer.say(PubAck(1), PubRec(2), PubRel(3), PubComp(4))
    assert not peer.gone
    assert world.counts.counters()["mqtt_unknown_acknowledgements"] == 4


def test_answers_that_a_client_has_no_room_for_are_counted() -> None:
    """[MQTT-3.1.2-24]"""
    world = World()
    peer = world.connect(maximum_packet_size=60)
    peer.packets()
    peer.say(Subscribe(1, tuple(Subscription(f"a/{n}") for n in range(80))))
    assert peer.gone
    assert world.counts.reasons()["mqtt_errors"] == {"packet_too_large": 1}
    assert world.counts.counters()["mqtt_answers_too_large"] == 1
