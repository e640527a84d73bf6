"""The three qualities of service (4.3), as a sender and as a receiver, and the order of messages (4.6)."""

from dataclasses import replace

import pytest

from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import PubAck, PubComp, Publish, PubRec, PubRel
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import Peer, World
from tests.broker.protocols.world import KIB
from tests.conformance.clients import back, lasting, payloads, publishes, versions

pytestmark = pytest.mark.usefixtures("either_lane")

TOPIC = bytes.fromhex("000161")


def pair(version: Version, qos: int = 2) -> tuple[World, Peer, Peer]:
    """A subscriber to `a` and a publisher."""
    world = World()
    subscriber, publisher = world.connect("s", version), world.connect("p", version)
    subscriber.subscribe("a", qos=qos)
    return world, subscriber, publisher


def empty(version: Version) -> bytes:
    """The properties of a PUBLISH that has none."""
    return b"" if version is V3 else b"\0"


# -- as a sender -------------------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-4.3.1-1")
@pytest.mark.mqtt("MQTT-2.3.1-5", version=3)
@pytest.mark.mqtt("MQTT-2.2.1-2", version=5)
@pytest.mark.mqtt("MQTT-3.3.1-2")
def test_qos_0_is_a_publish_without_an_identifier_and_dup(version: Version) -> None:
    _, subscriber, publisher = pair(version, qos=0)
    publisher.publish("a", b"x", 2, dup=True)
    body = TOPIC + empty(version) + b"x"
    assert subscriber.received == bytes([0x30, len(body)]) + body


@versions
@pytest.mark.mqtt("MQTT-4.3.2-1")
@pytest.mark.mqtt("MQTT-4.3.2-2", version=5)
@pytest.mark.mqtt("MQTT-4.3.2-3", version=5)
@pytest.mark.mqtt("MQTT-2.2.1-4", version=5)
@pytest.mark.mqtt("MQTT-2.3.1-4", version=3)
def test_qos_1_is_unacknowledged_until_its_puback(version: Version) -> None:
    _, subscriber, publisher = pair(version)
    window = subscriber.protocol.session.window
    for number in (1, 2):
        publisher.publish("a", b"x", 1)
        body = TOPIC + number.to_bytes(2, "big") + empty(version) + b"x"
        assert subscriber.received == bytes([0x32, len(body)]) + body
        subscriber.received = b""
        assert window.in_flight == number
    subscriber.send(bytes.fromhex("40020001"))
    assert [flight.tag for flight in window.flights()] == [2]
    subscriber.send(bytes.fromhex("40020002"))
    assert window.in_flight == 0


@versions
@pytest.mark.mqtt("MQTT-4.3.3-1")
@pytest.mark.mqtt("MQTT-4.3.3-2", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-3", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-4", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-5", version=5)
@pytest.mark.mqtt("MQTT-2.3.1-6", version=3)
@pytest.mark.mqtt("MQTT-2.2.1-5", version=5)
def test_qos_2_is_unacknowledged_until_its_pubrec_and_its_pubrel_until_the_pubcomp(version: Version) -> None:
    _, subscriber, publisher = pair(version)
    window = subscriber.protocol.session.window
    publisher.publish("a", b"x", 2)
    body = TOPIC + b"\x00\x01" + empty(version) + b"x"
    assert subscriber.received == bytes([0x34, len(body)]) + body
    subscriber.received = b""
    subscriber.send(bytes.fromhex("50020001"))
    assert subscriber.received == bytes.fromhex("62020001")
    assert window.in_flight == 1
    subscriber.send(bytes.fromhex("70020001"))
    assert window.in_flight == 0


@pytest.mark.mqtt("MQTT-4.3.3-4", version=5)
def test_a_pubrec_with_an_error_gets_no_pubrel_and_frees_its_identifier() -> None:
    _, subscriber, publisher = pair(V5)
    publisher.publish("a", b"x", 2)
    subscriber.received = b""
    subscriber.send(bytes.fromhex("5003000197"))
    assert subscriber.received == b""
    assert subscriber.protocol.session.window.in_flight == 0


@versions
def test_the_pubrel_for_a_pubrec_of_nothing_says_so(version: Version) -> None:
    world = World()
    peer = world.connect("s", version)
    peer.send(bytes.fromhex("50020007"))
    assert peer.received == bytes.fromhex("62020007" if version is V3 else "6203000792")  # 3.6.2.1
    assert world.counts.unknown_acknowledgements == 1


@versions
@pytest.mark.mqtt("MQTT-2.3.1-4", version=3)
@pytest.mark.mqtt("MQTT-2.2.1-4", version=5)
@pytest.mark.mqtt("MQTT-4.3.2-1", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-1", version=5)
def test_no_two_messages_in_flight_have_one_identifier(version: Version) -> None:
    """Round the whole circle of identifiers, one message of each quality staying in flight all the time."""
    batch = 500
    world = World(inflight_messages_max=batch + 2)
    subscriber, publisher = world.connect("s", version), world.connect("p", version)
    subscriber.subscribe("a", qos=2)
    publisher.publish("a", b"", 1)
    publisher.publish("a", b"", 2)
    stays = {packet.packet_id for packet in publishes(subscriber.packets())}
    one = b"\x32" + bytes([5 + len(empty(version))]) + TOPIC + b"\x00\x01" + empty(version)
    size, seen = len(one), set()
    for _ in range(0xFFFF // batch + 1):
        publisher.send(one * batch)
        publisher.received = b""
        got, subscriber.received = subscriber.received, b""
        assert len(got) == size * batch
        now = {int.from_bytes(got[at + 5 : at + 7], "big") for at in range(0, len(got), size)}
        assert len(now) == batch
        assert not now & stays
        assert 0 not in now
        seen |= now
        subscriber.send(b"".join(b"\x40\x02" + identifier.to_bytes(2, "big") for identifier in now))
    assert len(seen) < batch * (0xFFFF // batch + 1)  # they have come round


# -- as a receiver -----------------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-4.3.2-2", version=3)
@pytest.mark.mqtt("MQTT-4.3.2-4", version=5)
@pytest.mark.mqtt("MQTT-4.3.2-5", version=5)
def test_qos_1_is_acknowledged_and_the_identifier_then_stands_for_a_new_message(version: Version) -> None:
    _, subscriber, publisher = pair(version)
    for payload, dup in ((b"1", False), (b"2", False), (b"2", True)):
        publisher.send(encode(Publish("a", payload, 1, dup=dup, packet_id=9), version))
        assert publisher.received == bytes.fromhex("40020009")
        publisher.received = b""
    assert [message.payload for message in subscriber.messages()] == [b"1", b"2", b"2"]


@versions
@pytest.mark.mqtt("MQTT-4.3.3-2", version=3)
@pytest.mark.mqtt("MQTT-4.3.3-8", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-10", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-11", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-12", version=5)
@pytest.mark.mqtt("MQTT-2.3.1-6", version=3)
@pytest.mark.mqtt("MQTT-2.2.1-5", version=5)
@pytest.mark.parametrize("dup", [False, True])
def test_qos_2_goes_on_once_until_its_pubrel(version: Version, dup: bool) -> None:
    _, subscriber, publisher = pair(version)
    for _ in range(2):
        publisher.send(encode(Publish("a", b"x", 2, packet_id=9), version))
        assert publisher.received == bytes.fromhex("50020009")
        publisher.received = b""
        publisher.send(encode(Publish("a", b"x", 2, dup=dup, packet_id=9), version))
        assert publisher.received == bytes.fromhex("50020009")
        publisher.received = b""
        publisher.send(bytes.fromhex("62020009"))
        assert publisher.received == bytes.fromhex("70020009")
        publisher.received = b""
        assert [message.payload for message in subscriber.messages()] == [b"x"]
    publisher.send(bytes.fromhex("62020009"))  # again: the PUBCOMP may have been lost
    assert publisher.received == bytes.fromhex("70020009" if version is V3 else "7003000992")


@versions
def test_a_qos_1_message_may_have_the_identifier_of_a_qos_2_message_that_is_released(version: Version) -> None:
    _, subscriber, publisher = pair(version)
    publisher.publish("a", b"1", 2, packet_id=9)
    publisher.publish("a", b"2", 1, packet_id=9)
    publisher.publish("a", b"3", 2, packet_id=9)
    assert [message.payload for message in subscriber.messages()] == [b"1", b"2", b"3"]


@pytest.mark.mqtt("MQTT-4.3.3-13", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-7", version=5)
def test_the_handshakes_go_on_when_the_message_has_expired() -> None:
    world = World()
    peer, publisher = world.connect("s", **lasting(V5)), world.connect("p")
    peer.subscribe("a", qos=2)
    short = Publish("a", b"short", 2, packet_id=10, properties=Properties(message_expiry_interval=1))
    publisher.say(short)
    assert publisher.packets() == [PubRec(10)]
    (message,) = publishes(peer.packets())
    world.pass_time(100)
    # As a receiver:
    publisher.say(replace(short, dup=True))
    assert publisher.packets() == [PubRec(10)]
    publisher.say(PubRel(10))
    assert publisher.packets() == [PubComp(10)]
    # As a sender: it is sent again, for the client may have it.
    peer.vanish()
    peer, rest = back(world, "s", V5)
    assert payloads(rest) == [b"short"]
    peer.say(PubRec(message.packet_id or 0))
    assert peer.packets() == [PubRel(message.packet_id or 0)]
    peer.vanish()
    peer, rest = back(world, "s", V5)
    assert rest == [PubRel(message.packet_id or 0)]
    peer.say(PubComp(message.packet_id or 0))
    assert peer.protocol.session.window.in_flight == 0


# -- order -------------------------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-4.6.0-6")
@pytest.mark.mqtt("MQTT-4.6.0-5")
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_messages_of_one_topic_and_qos_come_in_their_order(version: Version, qos: int, granted: int) -> None:
    world = World(receive_bytes=32 * KIB)
    subscriber, publisher = world.connect("s", version), world.connect("p", version)
    subscriber.subscribe("a", "a/#", qos=granted)
    # In one stream, which is read in pieces, with other packets and messages of another topic among them.
    stream = b""
    for number in range(500):
        identifier = number + 1 if qos else None
        stream += encode(Publish("a", str(number).encode(), qos, packet_id=identifier), version)
        stream += encode(Publish("b", b"y" * 200, 0, retain=number % 7 == 0), version)
        if number % 5 == 0:
            stream += b"\xc0\x00"
    publisher.send(stream)
    assert [message.payload for message in subscriber.messages()] == [str(n).encode() for n in range(500)]


@versions
@pytest.mark.mqtt("MQTT-4.6.0-6", version=3)
@pytest.mark.mqtt("MQTT-4.6.0-5", version=5)
@pytest.mark.parametrize("qos", [1, 2])
def test_the_order_is_kept_over_broken_connections(version: Version, qos: int) -> None:
    world = World(inflight_messages_max=10)
    publisher = world.connect("p", version)
    peer = world.connect("s", version, **lasting(version))
    peer.subscribe("a", qos=qos)
    for number in range(100):
        publisher.publish("a", str(number).encode(), qos)
    got: list[bytes] = []  # each for the first time
    held = publishes(peer.packets())
    for _ in range(200):
        assert len(held) <= 10
        got += [packet.payload for packet in held if packet.payload not in got]
        # Three are acknowledged, and the connection breaks.
        for packet in held[:3]:
            identifier = packet.packet_id or 0
            peer.say(PubAck(identifier)) if qos == 1 else peer.say(PubRec(identifier), PubComp(identifier))
        peer.vanish()
        peer, rest = back(world, "s", version)
        held = publishes(rest)
        again = [packet.payload for packet in held if packet.dup]
        assert again == sorted(again, key=int)
        if not held:
            break
    assert got == [str(number).encode() for number in range(100)]


def test_reason_codes_of_acknowledgements_tell_whether_somebody_got_it() -> None:
    world = World()
    publisher = world.connect("p")
    for qos in (1, 2):
        (first, *_) = publisher.publish("a", b"x", qos)
        assert isinstance(first, PubAck | PubRec)
        assert first.reason_code == ReasonCode.NO_MATCHING_SUBSCRIBERS  # 3.4.2.1, 3.5.2.1
    world.connect("s").subscribe("a")
    for qos in (1, 2):
        (first, *_) = publisher.publish("a", b"x", qos)
        assert isinstance(first, PubAck | PubRec)
        assert first.reason_code == ReasonCode.SUCCESS
